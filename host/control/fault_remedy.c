#include "control/fault_remedy.h"

enum {
    /* Faults on one way back, for each board: all may be lost at a time, be missed one after the
     * other, and be lost once more. */
    ON_THE_WAY_MAX = 4,
    AT_ONCE = 3 /* faults that the run goes back from without a pause */
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

/* One that it is to compute again. */
static bool lacks_memory_for_another(const rp_remedy_facts *f) {
    return f->failed == RP_CONTROL_VERIFY && f->err == RP_ERR_LIMIT;
}

bool rp_remedy_lacks_port(rp_err err, rp_control_state_id failed) {
    return failed == RP_CONTROL_ASSIGN && err == RP_ERR_IO;
}

/* Another process keeps it. */
static bool is_out_of_time_for_port(const rp_remedy_facts *f) {
    return rp_remedy_lacks_port(f->err, f->failed) && f->had_time;
}

/* Boards have had their time to come and have not, or one is not wanted, or gets no port. One that
 * refuses the handshake, or has another key, is as good as away; but from the first start on it is
 * a mistake in the roster. */
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

/* What spares there are take places; the other places go. When the run has never had these boards
 * the roster is wrong, which a person has to know. */
static bool may_leave(const rp_remedy_facts *f) {
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

/* What comes of a mistake comes again; and memory, devices and numbers that have not been good
 * enough for a first step are not good enough for a second try. */
static bool comes_again(const rp_remedy_facts *f) {
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
        return !f->begun || lacks_memory_for_stage(f) || lacks_memory_for_another(f);
    case RP_ERR_IO:
        return is_out_of_time_for_port(f);
    case RP_ERR_TIMEOUT: /* a board has had its time to come */
        return f->failed == RP_CONTROL_START || f->failed == RP_CONTROL_RESTART ||
               f->failed == RP_CONTROL_HELLO;
    default:
        return false;
    }
}

static bool can_go_back(const rp_remedy_facts *f) {
    return f->trains && f->waits && !f->interrupted && f->has_boards &&
           (f->fault_class == RP_FAULT_TRANSIENT || f->fault_class == RP_FAULT_BOARD) &&
           !comes_again(f) && !f->is_wrong;
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
    if (may_leave(f)) {
        return RP_REMEDY_FEWER;
    }
    return !can_go_back(f)              ? RP_REMEDY_STOP
           : has_gone_back_too_often(f) ? RP_REMEDY_GIVE_UP
                                        : RP_REMEDY_BACK;
}
