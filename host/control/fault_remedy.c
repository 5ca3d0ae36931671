#include "control/fault_remedy.h"

enum {
    /* Faults in one recovery, as a multiple of the boards: all boards may be lost at once, then be
     * noticed missing one by one, and be lost again. */
    ON_THE_WAY_MAX = 4,
    AT_ONCE = 3 /* recoveries without a pause */
};

static const int64_t PORT_PAUSE_MAX_NS = 60 * RP_NS_PER_S;

const char *rp_remedy_name(rp_remedy remedy) {
    static const char *const names[RP_REMEDIES] = {
#define X(id, text, about) text,
        RP_REMEDY_LIST(X)
#undef X
    };
    return (unsigned)remedy < RP_REMEDIES ? names[remedy] : "unknown";
}

static bool lacks_memory_for_stage(const rp_remedy_facts *f) {
    return f->failed == RP_CONTROL_ASSIGN && f->err == RP_ERR_LIMIT;
}

/* A board that is to verify a stage lacks the memory for it. */
static bool lacks_memory_to_verify(const rp_remedy_facts *f) {
    return f->failed == RP_CONTROL_VERIFY && f->err == RP_ERR_LIMIT;
}

bool rp_remedy_lacks_port(rp_err err, rp_control_state_id failed, bool of_board) {
    return failed == RP_CONTROL_ASSIGN && err == RP_ERR_IO && of_board;
}

/* Another process has used the port for all of ring.wait. */
static bool is_out_of_time_for_port(const rp_remedy_facts *f) {
    return rp_remedy_lacks_port(f->err, f->failed, f->of_board) && f->had_time;
}

/* A board counts as absent: it has not come in time, computes wrong, or gets no port. A board that
 * refuses the handshake or has another key counts as absent, too, but at the first start that is a
 * mistake in the roster. */
static bool is_absence(const rp_remedy_facts *f) {
    const bool refuses = f->err == RP_ERR_REFUSED && f->had_boards;
    const bool has_not_come =
        f->failed == RP_CONTROL_HELLO && (f->err == RP_ERR_TIMEOUT || refuses);
    return (has_not_come || f->is_wrong || is_out_of_time_for_port(f)) && !f->places_stay &&
           f->waits && !f->interrupted && f->absent > 0;
}

static bool have_spares(const rp_remedy_facts *f) {
    return is_absence(f) && f->absent <= f->spares;
}

/* The ring may shrink: spares take as many places as possible, and all remaining places are
 * removed. If the run never had these boards, the roster is wrong, and the user has to know. */
static bool can_shrink(const rp_remedy_facts *f) {
    const uint32_t left = f->boards - f->absent + f->spares;
    return is_absence(f) && f->had_boards && f->may_shrink && left > 0 && left >= f->at_least;
}

int64_t rp_remedy_pause_ns(uint32_t faults) {
    int64_t pause_ns = faults > AT_ONCE ? RP_NS_PER_S : 0;
    for (uint32_t i = AT_ONCE; i < faults && pause_ns < RP_REMEDY_PAUSE_MAX_NS; i++) {
        pause_ns *= 2;
    }
    return pause_ns < RP_REMEDY_PAUSE_MAX_NS ? pause_ns : RP_REMEDY_PAUSE_MAX_NS;
}

int64_t rp_remedy_port_pause_ns(int64_t wait_ns, uint32_t before) {
    const int64_t pause_ns = before == 0 ? wait_ns / 64 : before == 1 ? wait_ns / 16 : wait_ns / 4;
    return pause_ns < PORT_PAUSE_MAX_NS ? pause_ns : PORT_PAUSE_MAX_NS;
}

/* A retry would meet the same error. Mistakes recur; memory, devices and numerics that failed
 * before the first step will fail again. */
static bool would_recur(const rp_remedy_facts *f) {
    switch (f->err) {
    case RP_ERR_PEER:
    case RP_ERR_FORMAT:
    case RP_ERR_SHAPE:
        return true;
    case RP_ERR_MEMORY:
    case RP_ERR_DEVICE:
    case RP_ERR_NUMERIC:
        return !f->begun;
    case RP_ERR_LIMIT:
        return !f->begun || lacks_memory_for_stage(f) || lacks_memory_to_verify(f);
    case RP_ERR_IO:
        return is_out_of_time_for_port(f);
    case RP_ERR_TIMEOUT: /* a board has not come in time */
        return f->failed == RP_CONTROL_START || f->failed == RP_CONTROL_RESTART ||
               f->failed == RP_CONTROL_HELLO;
    default:
        return false;
    }
}

static bool can_go_back(const rp_remedy_facts *f) {
    return f->trains && f->waits && !f->interrupted && f->has_boards &&
           (f->fault_class == RP_FAULT_TRANSIENT || f->fault_class == RP_FAULT_BOARD) &&
           !would_recur(f) && !f->is_wrong;
}

static bool has_gone_back_too_often(const rp_remedy_facts *f) {
    return f->in_a_row >= RP_REMEDY_IN_A_ROW_MAX || f->on_the_way >= ON_THE_WAY_MAX * f->boards;
}

rp_remedy rp_remedy_choose(const rp_remedy_facts *f) {
    if (lacks_memory_for_stage(f) && f->can_lessen) {
        return RP_REMEDY_LESS;
    }
    if (have_spares(f)) {
        return RP_REMEDY_SPARES;
    }
    if (can_shrink(f)) {
        return RP_REMEDY_FEWER;
    }
    return !can_go_back(f)              ? RP_REMEDY_STOP
           : has_gone_back_too_often(f) ? RP_REMEDY_GIVE_UP
                                        : RP_REMEDY_BACK;
}
