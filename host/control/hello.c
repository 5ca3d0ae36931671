/* The state `hello`: boards are greeted until all have answered, or their time is over. */
#include <inttypes.h>
#include <stdio.h>

#include "control/controller_own.h"
#include "control/next.h"
#include "ring/greeting.h"

static int64_t longest_greeting_ns(const rp_controller *c) {
    if (rp_warm_patience_ns(c->warm) > 0) {
        return rp_warm_patience_ns(c->warm);
    }
    return rp_controller_is_return(c) ? c->run->safety.wait_s * RP_NS_PER_S
                                      : rp_ring_patience_ns(c->run);
}

static int64_t spare_wait_ns(const rp_runfile *run, int64_t longest_ns) {
    const int64_t wait_ns = (int64_t)(run->safety.spare_wait_s * (double)RP_NS_PER_S);
    return wait_ns < longest_ns ? wait_ns : longest_ns;
}

/* Boards whose agents have ended have lost what they held: they can come back as spares. */
static bool spares_may_come_in(const rp_controller *c) {
    const rp_lost_boards lost = rp_recovery_lost(
        &c->recovery, &c->machine, c->run->safety.wait_s * RP_NS_PER_S, c->ring.now_ns);
    const uint32_t absent = rp_lost_count(&lost, &c->ring);
    return rp_controller_is_return(c) && !rp_arrangement_given(c->setup) && absent > 0 &&
           rp_ring_count_ended(&c->ring) == absent &&
           absent <= rp_recovery_spares(&c->recovery, c->run);
}

rp_err rp_hello_late(const rp_controller *c) {
    const int64_t waited_ns = longest_greeting_ns(c);
    const rp_missing missing = rp_controller_missing(c);
    const uint32_t k = rp_missing_first(&missing, rp_ring_find_missing(&c->ring));
    const rp_board_state *board = &c->ring.board[k];
    if (spares_may_come_in(c)) {
        return rp_fail(RP_ERR_TIMEOUT,
                       "board %s at %s: its agent has ended and was not back within %g s "
                       "(ring.spare_wait)",
                       board->name, board->address.endpoint,
                       (double)spare_wait_ns(c->run, waited_ns) * 1e-9);
    }
    if (board->silence.why == RP_SILENT_REFUSES) {
        return rp_ring_why_silent(&c->ring, k);
    }
    if (board->address.dials && rp_link_health_of(board->control).last_heard_ns == 0) {
        return rp_ring_never_came(&c->ring, k, waited_ns);
    }
    if (rp_missing_cause(&missing, k)) {
        return rp_missing_fail(&missing, k, waited_ns);
    }
    return rp_fail(RP_ERR_TIMEOUT, "board %s at %s: no hello within %" PRId64 " s%s%s", board->name,
                   board->address.endpoint, waited_ns / RP_NS_PER_S,
                   rp_controller_is_return(c) ? " (ring.wait)" : "",
                   board->silence.why == RP_SILENT_BROKEN_OFF
                       ? ": every handshake there was broken off, as by another key"
                   : board->silence.why == RP_SILENT_UNANSWERED
                       ? ": its machine accepts the connection, but its agent does not answer: "
                         "it is stopped or suspended, or has too much to do"
                       : "");
}

static void limit_time(rp_controller *c, int64_t within_ns, int64_t from_ns) {
    c->machine.timeout_ns = rp_ring_greeting_left_ns(&c->ring, longest_greeting_ns(c), within_ns,
                                                     c->machine.since_ns, from_ns);
}

/* A HELLO ends what is under way on a board, and its answer says that it has ended. */
rp_err rp_hello_enter(rp_controller *c) {
    const rp_Frame greeting = rp_ring_greeting(&c->ring);
    rp_keep_ask_for_holders(c->keep, rp_arrangement_plan(c->setup));
    rp_ring_begin_greeting(&c->ring, rp_controller_is_return(c));
    limit_time(c, longest_greeting_ns(c), c->ring.now_ns);
    rp_ring_watch_boards(&c->ring,
                         c->run->safety.wait_s > 0); /* a board that is lost now is greeted again */
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < c->ring.count && err == RP_OK; k++) {
        rp_ring_expect_hello(&c->ring, k, !rp_warm_rests(c->warm, k));
        err = c->ring.board[k].hello ? RP_OK : rp_ring_post(&c->ring, k, &greeting, NULL);
    }
    return err;
}

/* Not all boards have answered yet. */
static rp_err go_on_waiting(rp_controller *c) {
    const int64_t longest_ns = longest_greeting_ns(c);
    const rp_missing missing = rp_controller_missing(c);
    rp_missing_say(&missing, &c->ring, longest_ns);
    if (rp_missing_ends_wait(&missing)) {
        return rp_hello_late(c);
    }
    limit_time(c, spares_may_come_in(c) ? spare_wait_ns(c->run, longest_ns) : longest_ns,
               c->ring.progress_ns);
    if (c->run->safety.wait_s > 0 &&
        c->ring.now_ns - c->machine.since_ns > rp_ring_greet_ns(longest_ns)) {
        rp_ring_greet_again(&c->ring);
        rp_machine_enter(&c->machine, RP_CONTROL_RESTART);
    }
    return RP_OK;
}

rp_err rp_hello_step(rp_controller *c) {
    rp_err err;
    RP_TRY(rp_ring_report_refusals(&c->ring, rp_folder_record(c->folder), c->position.step));
    if (!rp_machine_all_done(&c->machine, &c->ring, c->measure)) {
        return go_on_waiting(c);
    }
    for (uint32_t k = 0; k < c->ring.count; k++) {
        if (!rp_warm_rests(c->warm, k)) { /* else it was not asked */
            rp_link_set_wire(c->ring.board[k].control, c->ring.wire.max);
        }
    }
    rp_ring_end_greeting(&c->ring);
    RP_TRY(rp_keep_wants_copies(c->keep) || c->way.reassigning
               ? RP_OK
               : rp_arrangement_check_least_memory(c->setup));
    rp_controller_leave_hello(c);
fail:
    return err;
}

/* With copies that are wanted the boards are still watched: RESCUE waits for what they send. */
void rp_controller_leave_hello(rp_controller *c) {
    const rp_next_facts facts = {
        .place = RP_NEXT_AFTER_HELLO,
        .copies_wanted = rp_keep_wants_copies(c->keep),
        .keeps_cut = c->way.reassigning && rp_arrangement_has_cut(c->setup),
        .lacks_profile =
            rp_arrangement_needs_profile(c->setup) && !rp_measure_has_profile(c->measure),
    };
    const rp_next_answer next = rp_next(&facts);
    if (!rp_keep_wants_copies(c->keep)) { /* `plan` waits for pings itself */
        rp_ring_watch_boards(&c->ring, false);
    }
    rp_machine_enter(&c->machine, next.state);
}
