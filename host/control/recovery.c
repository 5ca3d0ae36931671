/* What is noted of a recovery: when it began, what is done again, and when the run is at work. */
#include <inttypes.h>
#include <stdio.h>

#include "control/controller_own.h"
#include "control/remedy.h"

/* Microbatches of the steps that are done again: those that had been started may be one more. */
static uint64_t count_again(const rp_controller *c, uint64_t from) {
    const rp_sched_shape shape = rp_runfile_sched_shape(c->run, 0);
    uint64_t count = 0;
    for (uint64_t step = c->position.step; step < from; step++) {
        count += rp_sched_micro_count(&shape, step);
    }
    return count;
}

/* A fault on the way back belongs to the same recovery. */
void rp_recovery_begin(rp_controller *c, uint64_t from) {
    rp_recovery *recovery = &c->recovery;
    if (!recovery->is_on) {
        recovery->row_since_ns = recovery->in_a_row > 0 ? recovery->row_since_ns : c->ring.now_ns;
        recovery->is_on = true;
        recovery->fault = c->machine.fault;
        recovery->since_ns = c->ring.now_ns;
        recovery->step = from;
        recovery->on_the_way = recovery->ports_lacked = 0;
        recovery->in_a_row++;
    }
    recovery->microbatches = count_again(c, recovery->step);
    recovery->assign_ns = 0;
    recovery->on_the_way++;
    const uint32_t ways_before = recovery->in_a_row > 0 ? recovery->in_a_row - 1 : 0;
    recovery->not_before_ns =
        recovery->row_since_ns + rp_remedy_pause_ns(ways_before + recovery->on_the_way);
}

static double seconds(int64_t ns) {
    return ns > 0 ? (double)ns * 1e-9 : 0;
}

rp_err rp_recovery_note_work(rp_controller *c) {
    rp_recovery *recovery = &c->recovery;
    char text[200];
    recovery->spares_taken = 0;
    if (!recovery->is_on) {
        return RP_OK;
    }
    const rp_summary_recovery told = {.board = recovery->fault.board,
                                      .detect_s = seconds(recovery->fault.silent_ns),
                                      .replan_s = seconds(recovery->assign_ns - recovery->since_ns),
                                      .restore_s = seconds(c->ring.now_ns - recovery->assign_ns),
                                      .replay_microbatches = recovery->microbatches};
    recovery->is_on = false;
    if (recovery->done_count < RP_RECOVERIES_TOLD) {
        recovery->done[recovery->done_count++] = told;
    }
    (void)snprintf(text, sizeof text,
                   "at work again from step %" PRIu64
                   ", %.1f s after the fault was noticed (%.1f s "
                   "to get the boards back, %.1f s to load them); %" PRIu64 " steps are done again",
                   c->position.step, told.replan_s + told.restore_s, told.replan_s, told.restore_s,
                   recovery->step > c->position.step ? recovery->step - c->position.step : 0);
    return rp_record_event(rp_folder_record(c->folder), "recovered", c->position.step, text);
}

void rp_recovery_note_checkpoint(rp_controller *c) {
    c->recovery.in_a_row = 0;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        c->ring.board[k].keep.microbatches_kept = c->ring.board[k].facts.microbatches;
    }
}

/* ---- who is there ---------------------------------------------------------------------------- */

bool rp_recovery_had_time_for_port(const rp_controller *c) {
    const rp_recovery *recovery = &c->recovery;
    return recovery->is_on && recovery->ports_lacked > 0 &&
           c->ring.now_ns - recovery->port_since_ns > c->run->safety.wait_s * RP_NS_PER_S;
}

bool rp_recovery_is_portless(const rp_controller *c, uint32_t board) {
    return rp_remedy_lacks_port(c->machine.fault.err, c->machine.failed) &&
           rp_recovery_had_time_for_port(c) && c->machine.fault.board == board;
}

bool rp_recovery_lacks(const rp_controller *c, uint32_t board) {
    return c->machine.wrong != RP_FAULT_NO_BOARD
               ? c->machine.wrong == board
               : !c->ring.board[board].hello || rp_recovery_is_portless(c, board);
}

uint32_t rp_recovery_absent(const rp_controller *c) {
    uint32_t count = 0;
    for (uint32_t k = 0; c->ring.board && k < c->ring.count; k++) {
        count += rp_recovery_lacks(c, k);
    }
    return count;
}

uint32_t rp_recovery_spares(const rp_controller *c) {
    return rp_spares_untried(c->run->roster, c->run->boards, c->run->spares,
                             c->recovery.spares_taken);
}

bool rp_recovery_is_return(const rp_controller *c) {
    return c->recovery.is_on || (c->run->safety.wait_s > 0 && rp_controller_had_boards(c));
}
