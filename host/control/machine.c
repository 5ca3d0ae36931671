/* What all states share: entering, leaving, waiting, failing. */
#include "control/machine.h"

#include <stdio.h>

#include "ring/identity.h"

/* Polling interval of states in which no event announces that local boards start or end. */
static const int64_t LOOK_EVERY_NS = 10 * RP_NS_PER_MS;

void rp_machine_enter(rp_machine *machine, rp_control_state_id next) {
    const bool named = (rp_control_states[machine->state].next & UINT32_C(1) << next) != 0;
    RP_ASSERT(named || next == RP_CONTROL_RECOVER);
    machine->next = next;
}

void rp_machine_begin_state(rp_machine *machine, rp_ring *ring) {
    RP_ASSERT(machine->next < RP_CONTROL_STATES);
    machine->entered = true;
    machine->state = machine->next;
    machine->since_ns = ring->now_ns;
    machine->timeout_ns = rp_control_states[machine->state].timeout_ns;
    rp_ring_note_progress(ring);
}

bool rp_machine_is_failed(const rp_machine *machine) {
    return machine->fault.err != RP_OK && machine->state < RP_CONTROL_RECOVER;
}

bool rp_machine_is_late(const rp_machine *machine, const rp_ring *ring) {
    return machine->timeout_ns != 0 && ring->now_ns - ring->progress_ns > machine->timeout_ns;
}

void rp_machine_limit(rp_machine *machine, int64_t limit_ns) {
    machine->timeout_ns = limit_ns > 0 ? limit_ns : machine->timeout_ns;
}

bool rp_machine_may_grow(const rp_machine *machine) {
    return machine->interrupts == 0 && machine->state >= RP_CONTROL_TRAIN &&
           machine->state <= RP_CONTROL_DRAIN;
}

static int64_t earlier(int64_t a_ns, int64_t b_ns) {
    return a_ns < b_ns ? a_ns : b_ns;
}

int64_t rp_machine_deadline_ns(const rp_machine *machine, const rp_ring *ring,
                               const rp_keep *keep) {
    const rp_control_state_id state = machine->state;
    int64_t at_ns = INT64_MAX;
    if (state == RP_CONTROL_ENDED) {
        return at_ns;
    }
    if (state == RP_CONTROL_START || state == RP_CONTROL_ADOPT || state == RP_CONTROL_RESTART ||
        state == RP_CONTROL_CLOSE) {
        at_ns = ring->now_ns + LOOK_EVERY_NS;
    }
    if (ring->links && state < RP_CONTROL_CLOSE) {
        at_ns = earlier(at_ns, rp_ring_deadline_ns(ring));
        at_ns = earlier(at_ns, rp_keep_disk_deadline_ns(keep));
    }
    if (machine->timeout_ns > 0) {
        at_ns = earlier(at_ns, ring->progress_ns + machine->timeout_ns + 1);
    }
    return at_ns > ring->now_ns ? at_ns : ring->now_ns;
}

static bool is_done(rp_control_done what, const rp_board_state *board) {
    return what == RP_DONE_GREETED    ? board->hello
           : what == RP_DONE_PROFILED ? board->measure.profiled
           : what == RP_DONE_READY    ? board->ready
           : what == RP_DONE_FINISHED ? board->train.finished
           : what == RP_DONE_COPIED   ? board->keep.copied
           : what == RP_DONE_SAVED    ? board->keep.saved
                                      : true;
}

uint32_t rp_machine_first_undone(const rp_machine *machine, const rp_ring *ring,
                                 const rp_measure *measure) {
    const rp_control_done what = rp_control_states[machine->state].done;
    for (uint32_t k = 0; k < ring->count; k++) {
        if (what == RP_DONE_ANSWERED ? !rp_measure_has_answered(measure, k)
                                     : !is_done(what, &ring->board[k])) {
            return k;
        }
    }
    return ring->count;
}

bool rp_machine_all_done(const rp_machine *machine, const rp_ring *ring,
                         const rp_measure *measure) {
    RP_ASSERT(rp_control_states[machine->state].done != RP_DONE_NONE);
    return rp_machine_first_undone(machine, ring, measure) == ring->count;
}

void rp_machine_forget_asked(rp_ring *ring) {
    for (uint32_t k = 0; k < ring->count; k++) {
        ring->board[k].machine.asked = false;
    }
}

/* A checkpoint of a step > 0 was made by all boards. */
bool rp_machine_had_boards(const rp_machine *machine, uint64_t step) {
    return machine->begun || step > 0;
}

/* ---- faults ---------------------------------------------------------------------------------- */

static int64_t silent_ns(const rp_ring *ring, uint32_t board) {
    const rp_link *link = board < ring->count && ring->board ? ring->board[board].control : NULL;
    const int64_t heard_ns = link ? rp_link_health_of(link).last_heard_ns : 0;
    return ring->now_ns - (heard_ns ? heard_ns : ring->progress_ns);
}

void rp_machine_raise(rp_machine *machine, const rp_ring *ring, rp_err err, uint32_t board) {
    const bool over =
        machine->state >= RP_CONTROL_CLOSE; /* while closing nothing can fail any more */
    if (err == RP_OK || machine->fault.err != RP_OK || over) {
        return;
    }
    machine->fault.err = err;
    machine->fault.board = board;
    machine->fault.silent_ns = silent_ns(ring, board);
    machine->fault.fault_class = machine->reported != RP_FAULT_UNKNOWN
                                     ? machine->reported
                                     : rp_fault_classify(err, board != RP_NO_BOARD, machine->begun);
    (void)snprintf(machine->fault.text, sizeof machine->fault.text, "%s", rp_err_message());
}

void rp_machine_forget_fault(rp_machine *machine) {
    machine->fault = (rp_controller_fault){0};
    machine->reported = RP_FAULT_UNKNOWN;
}

rp_err rp_machine_final(rp_machine *machine, rp_err err) {
    machine->reported = RP_FAULT_FATAL;
    return err;
}

rp_err rp_machine_disk_fault(rp_machine *machine, rp_err err) {
    if (err == RP_ERR_IO && machine->begun) {
        machine->reported = RP_FAULT_TRANSIENT;
    }
    return err;
}

rp_err rp_machine_keep_result(rp_machine *machine, rp_err err, rp_keep_outcome outcome) {
    return outcome == RP_KEEP_OVER ? rp_machine_final(machine, err) : err;
}

rp_err rp_machine_disk_failed(rp_machine *machine, rp_keep *keep, uint64_t step) {
    rp_keep_outcome outcome;
    const rp_err err = rp_keep_disk_failed(keep, step, &outcome);
    return rp_machine_keep_result(machine, err, outcome);
}

rp_err rp_machine_begin_term(rp_machine *machine, rp_ring *ring, const rp_folder *folder,
                             uint64_t fresh) {
    const rp_err err = rp_ring_begin_term(ring, rp_folder_paths_of(folder)->folder, fresh);
    return rp_machine_disk_fault(machine, err);
}
