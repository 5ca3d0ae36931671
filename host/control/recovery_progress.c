/* Keeps the facts of a recovery, and tells which boards count as lost. */
#include "control/recovery_progress.h"

#include "control/fault_remedy.h"
#include "run/spares.h"

/* Counts the microbatches that are done again. If a step was partly done, there may be one more. */
static uint64_t count_again(const rp_runfile *run, uint64_t to, uint64_t from) {
    const rp_sched_shape shape = rp_runfile_sched_shape(run, 0);
    uint64_t count = 0;
    for (uint64_t step = to; step < from; step++) {
        count += rp_sched_micro_count(&shape, step);
    }
    return count;
}

void rp_recovery_begin(rp_recovery *recovery, const rp_recovery_order *order) {
    if (!recovery->is_on) {
        recovery->row_since_ns = recovery->in_a_row > 0 ? recovery->row_since_ns : order->now_ns;
        recovery->is_on = true;
        recovery->fault = *order->fault;
        recovery->since_ns = order->now_ns;
        recovery->step = order->from;
        recovery->on_the_way = recovery->ports_lacked = 0;
        recovery->in_a_row++;
    }
    recovery->microbatches = count_again(order->run, order->to, recovery->step);
    recovery->assign_ns = 0;
    recovery->on_the_way++;
    recovery->not_before_ns =
        recovery->row_since_ns +
        rp_remedy_pause_ns(rp_recovery_ways_before(recovery) + recovery->on_the_way);
}

void rp_recovery_wait_for_port(rp_recovery *recovery, int64_t wait_ns, int64_t now_ns) {
    recovery->port_since_ns = recovery->ports_lacked ? recovery->port_since_ns : now_ns;
    const int64_t until_ns = now_ns + rp_remedy_port_pause_ns(wait_ns, recovery->ports_lacked++);
    recovery->not_before_ns =
        until_ns > recovery->not_before_ns ? until_ns : recovery->not_before_ns;
}

bool rp_recovery_had_time_for_port(const rp_recovery *recovery, int64_t wait_ns, int64_t now_ns) {
    return recovery->is_on && recovery->ports_lacked > 0 &&
           now_ns - recovery->port_since_ns > wait_ns;
}

static double seconds(int64_t ns) {
    return ns > 0 ? (double)ns * 1e-9 : 0;
}

bool rp_recovery_note_work(rp_recovery *recovery, uint64_t step, int64_t now_ns,
                           rp_run_event *event) {
    recovery->spares_tried = 0;
    recovery->hurried = 0;
    recovery->second_round = false;
    if (!recovery->is_on) {
        return false;
    }
    const rp_summary_recovery told = {.board = recovery->fault.board,
                                      .detect_s = seconds(recovery->fault.silent_ns),
                                      .replan_s = seconds(recovery->assign_ns - recovery->since_ns),
                                      .restore_s = seconds(now_ns - recovery->assign_ns),
                                      .replay_microbatches = recovery->microbatches};
    recovery->is_on = false;
    if (recovery->done_count < RP_RECOVERIES_TOLD) {
        recovery->done[recovery->done_count++] = told;
    }
    *event = (rp_run_event){.kind = RP_EVENT_RECOVERED,
                            .step = step,
                            .seconds = told.replan_s + told.restore_s,
                            .replan_s = told.replan_s,
                            .restore_s = told.restore_s,
                            .steps = recovery->step > step ? recovery->step - step : 0};
    return true;
}

void rp_recovery_note_checkpoint(rp_recovery *recovery, rp_ring *ring) {
    recovery->in_a_row = 0;
    for (uint32_t k = 0; k < ring->count; k++) {
        ring->board[k].keep.microbatches_kept = ring->board[k].facts.microbatches;
    }
}

uint32_t rp_recovery_ways_before(const rp_recovery *recovery) {
    return recovery->is_on && recovery->in_a_row > 0 ? recovery->in_a_row - 1 : recovery->in_a_row;
}

uint32_t rp_recovery_spares(const rp_recovery *recovery, const rp_runfile *run) {
    return rp_spares_untried(run->roster, run->boards, run->spares, recovery->spares_tried);
}

bool rp_recovery_try_again(rp_recovery *recovery) {
    const uint32_t tried = recovery->spares_tried;
    if (recovery->hurried == 0 || recovery->second_round) {
        return false;
    }
    /* they left the ring before the spares that were tried after them */
    recovery->spares_tried -= recovery->hurried < tried ? recovery->hurried : tried;
    recovery->second_round = true;
    return true;
}

rp_lost_boards rp_recovery_lost(const rp_recovery *recovery, const rp_machine *machine,
                                const rp_runfile *run, int64_t now_ns) {
    const int64_t wait_ns = run->safety.wait_s * RP_NS_PER_S;
    const bool lacks_port = rp_remedy_lacks_port(machine->fault.err, machine->failed,
                                                 machine->fault.board != RP_NO_BOARD) &&
                            rp_recovery_had_time_for_port(recovery, wait_ns, now_ns);
    return (rp_lost_boards){.wrong = machine->wrong,
                            .portless = lacks_port ? machine->fault.board : RP_NO_BOARD};
}
