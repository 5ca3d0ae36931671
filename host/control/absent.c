/* Boards that have had their time to come and have not: spares take their places, or the ring goes
 * on without them. And those that have come back join it. */
#include <stdio.h>

#include "control/controller_own.h"

/* Those that are there have had to wait; all have their time from now. */
static void greet_all(rp_controller *c) {
    rp_ring_end_greeting(&c->ring);
    c->recovery.on_the_way = 0; /* it is another ring */
    rp_controller_forget_fault(c);
    rp_controller_enter(c, RP_CONTROL_RESTART);
}

/* A board that computes wrong is the last of the spares now, and is tried no more. */
static void forget_wrong(rp_controller *c) {
    if (c->machine.wrong != RP_FAULT_NO_BOARD) {
        c->machine.wrong = RP_FAULT_NO_BOARD;
        rp_arrangement_drop_spare(c->setup);
        c->recovery.spares_taken--;
    }
}

/* ---- spares ---------------------------------------------------------------------------------- */

static const char *why_of(const rp_controller *c, uint32_t k) {
    const rp_board_state *board = &c->ring.board[k];
    return c->machine.wrong != RP_FAULT_NO_BOARD        ? "computes wrong"
           : rp_recovery_is_portless(c, k)              ? "lacks a port that another process keeps"
           : board->silence.why == RP_SILENT_REFUSES    ? "refuses the handshake"
           : board->silence.why == RP_SILENT_BROKEN_OFF ? "breaks off every handshake"
           : board->silence.why == RP_SILENT_UNANSWERED
               ? "does not answer: it is stopped or too busy"
               : "has not come";
}

static rp_err say_spare(rp_controller *c, const char *lost, const char *why, const char *spare) {
    char text[240];
    (void)snprintf(text, sizeof text, "board %s %s: the spare board %s takes its place", lost, why,
                   spare);
    return rp_record_event(rp_folder_record(c->folder), "spare", c->position.step, text);
}

/* As many as there are. */
static rp_err take_spares(rp_controller *c) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < c->ring.count && rp_recovery_spares(c) > 0; k++) {
        const char *lost = c->ring.board[k].name;
        const char *why = why_of(c, k);
        if (!rp_recovery_lacks(c, k)) {
            continue;
        }
        RP_ASSERT(rp_arrangement_take_spare(c->setup, k));
        c->recovery.spares_taken++;
        rp_ring_take_entry(&c->ring, k);
        rp_ring_expect_hello(&c->ring, k, false); /* it is to have its time */
        RP_TRY(say_spare(c, lost, why, c->ring.board[k].name));
    }
fail:
    return err;
}

rp_err rp_absent_take_spares(rp_controller *c) {
    rp_err err;
    RP_TRY(take_spares(c));
    forget_wrong(c);
    rp_ring_reset(&c->ring, RP_FAULT_NO_BOARD);
    greet_all(c);
fail:
    return err;
}

/* ---- fewer boards ---------------------------------------------------------------------------- */

/* NULL: the schedule can be divided among the boards that are left. An interleaved one takes
 * microbatches in groups of one a board, and one that splits all stages has two boards for each. */
static const char *why_not_divided(const rp_controller *c) {
    static const char AHEAD[] = "schedule.ahead has a number for each stage";
    const rp_method *method = &c->run->method;
    const uint32_t absent = rp_recovery_absent(c);
    const uint32_t spares = rp_recovery_spares(c);
    const uint32_t left = c->run->boards - (absent > spares ? absent - spares : 0);
    const uint32_t micros = (c->run->batch - 1) / c->run->micro + 1;
    if (rp_split_is_listed(c->setup)) {
        return rp_split_may_be_on(c->setup, left) ? NULL : AHEAD;
    }
    if (method->kind->splits) {
        return left < 2 || left - left % 2 < c->run->safety.at_least
                   ? "each stage has two boards, and too few are left (ring.at_least)"
               : method->ahead_count > 1 ? AHEAD
                                         : NULL;
    }
    if (method->chunks > 1 && (left == 0 || micros % left > 0)) {
        return "the boards left do not divide the microbatches of a step (schedule.chunks)";
    }
    return left == 0 || rp_method_replicas_fit(method, left * method->chunks)
               ? NULL
               : "schedule.weights needs more stages, or fewer schedule.replicas";
}

/* What a person has said of places in the ring has no meaning in a smaller one. */
const char *rp_absent_why_stay(const rp_controller *c) {
    return c->run->local            ? "its agents are on this machine"
           : !c->run->cut_auto      ? "the cut is given"
           : c->run->hops.count > 0 ? "ring.link has hops"
           : c->run->sizes.by_stage ? "schedule.forward or backward has a number for each stage"
           : !c->run->codec_auto && !rp_codecs_are_alike(c->run->codec, c->run->stages)
               ? "links.codec is not the same for all links"
               : why_not_divided(c);
}

static rp_err say_left(rp_controller *c, const char *names, uint32_t absent, const char *why,
                       const char *odd) {
    char text[500];
    char split[120] = "";
    const char *what = absent == 1 ? why : "have not come";
    if (rp_split_is_listed(c->setup)) {
        rp_split_put_stages(c->setup, split, sizeof split);
    }
    (void)snprintf(text, sizeof text,
                   "%s %.160s %s: the model is cut anew over the %u board%s left%s%.60s%s%s",
                   absent == 1 ? "board" : "boards", names, what, c->ring.count,
                   c->ring.count == 1 ? "" : "s", odd ? "; board " : "", odd ? odd : "",
                   odd ? " is a spare now, for each stage has two boards" : "", split);
    return rp_record_event(rp_folder_record(c->folder), "fewer", c->position.step, text);
}

/* The stages of the boards that there are now; of those that can reach each other where which of
 * them are split depends on what was measured. */
static rp_err count_stages(rp_controller *c) {
    if (rp_measure_has_profile(c->measure) && rp_split_is_listed(c->setup)) {
        rp_measure_place(c->measure);
        rp_split_count_stages(c->setup, true);
        if (rp_runfile_check_cut(c->run) == RP_OK) {
            return RP_OK;
        }
    }
    rp_split_count_stages(c->setup, false);
    return rp_runfile_check_cut(c->run);
}

/* From the last one, so that the places of the others hold until they are looked at. */
static uint32_t leave(rp_controller *c, char *names, size_t bytes, const char **why) {
    size_t used = 0;
    uint32_t count = 0;
    names[0] = '\0';
    for (uint32_t k = c->ring.count; k-- > 0;) {
        if (!rp_recovery_lacks(c, k)) {
            continue;
        }
        const int more = snprintf(names + used, bytes - used, "%s%s", count++ ? ", " : "",
                                  c->ring.board[k].name);
        *why = why_of(c, k);
        used += more > 0 && used + (size_t)more < bytes ? (size_t)more : 0;
        rp_arrangement_leave_board(c->setup, k);
        rp_ring_leave(&c->ring, k);
    }
    return count;
}

/* Where each stage has two boards, one may be too many: the last one that is there is a spare then.
 * NULL: none is. */
static const char *leave_odd(rp_controller *c) {
    uint32_t left = 0;
    uint32_t last = 0;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        if (!rp_recovery_lacks(c, k)) {
            left++;
            last = k;
        }
    }
    if (!c->run->method.kind->splits || rp_split_is_listed(c->setup) || left % 2 == 0) {
        return NULL;
    }
    const char *name = c->run->roster[last].name;
    rp_arrangement_put_aside(c->setup, last);
    rp_ring_leave(&c->ring, last);
    return name;
}

/* The model is to be cut for as many boards as there are now. */
static rp_err cut_anew(rp_controller *c) {
    rp_record_take_boards(rp_folder_record(c->folder), c->run->boards, c->run->stages);
    c->machine.fault.board = RP_FAULT_NO_BOARD; /* places have changed */
    return rp_controller_go_back(c);
}

rp_err rp_absent_leave(rp_controller *c) {
    char names[200];
    const char *why = "";
    rp_err err;
    RP_TRY(take_spares(c));
    const char *odd = leave_odd(c);
    const uint32_t absent = leave(c, names, sizeof names, &why);
    c->recovery.spares_taken += absent; /* they have had their time */
    rp_away_note_left(&c->ring, absent);
    RP_TRY(count_stages(c));
    RP_TRY(cut_anew(c));
    RP_TRY(say_left(c, names, absent, why, odd));
    forget_wrong(c);
    greet_all(c);
fail:
    return err;
}

/* ---- more boards again ----------------------------------------------------------------------- */

static rp_err say_joined(const rp_controller *c) {
    char text[440];
    char split[120] = "";
    if (rp_split_is_listed(c->setup)) {
        rp_split_put_stages(c->setup, split, sizeof split);
    }
    (void)snprintf(text, sizeof text,
                   "%.200s can be reached again: the model is cut anew over %u boards%s",
                   c->machine.joined, c->ring.count, split);
    return rp_record_event(rp_folder_record(c->folder), "joined", c->position.step, text);
}

/* The newest checkpoint is of here, so no step is done again. */
rp_err rp_absent_return(rp_controller *c) {
    rp_err err;
    RP_TRY(count_stages(c));
    RP_TRY(cut_anew(c));
    RP_TRY(say_joined(c));
    if (c->env.on_joined) {
        c->env.on_joined(c->env.context);
    }
    c->machine.joined[0] = '\0';
    greet_all(c);
fail:
    return err;
}
