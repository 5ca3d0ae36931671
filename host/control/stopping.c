/* Texts about a fault that stops a run. */
#include "control/stopping.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "record/record.h"

rp_run_event rp_stopping_fault(rp_event_kind kind, const rp_machine *machine, const rp_ring *ring) {
    const rp_controller_fault *fault = &machine->fault;
    const bool has_board = ring->board && fault->board < ring->count;
    return (rp_run_event){.kind = kind,
                          .fault_class = rp_fault_class_name(fault->fault_class),
                          .state = rp_control_states[machine->failed].name,
                          .board = has_board ? ring->board[fault->board].name : NULL,
                          .error = fault->text};
}

/* The log then also tells why the run stopped. */
void rp_stopping_log(const rp_machine *machine, const rp_ring *ring, rp_record *record,
                     uint64_t step) {
    rp_run_event event = rp_stopping_fault(RP_EVENT_FAULT_STOP, machine, ring);
    if (!record || machine->fault.err == RP_ERR_INTERRUPTED) {
        return; /* no fault */
    }
    event.step = step;
    if (rp_record_event(record, &event) != RP_OK) {
        rp_log_debug("controller: the fault is not in the run's log");
    }
}

/* If a recovery was in progress, the note also has the fault that began it. */
void rp_stopping_note_why(rp_machine *machine, const rp_recovery *recovery, uint64_t step) {
    if (!recovery->is_on || machine->fault.err == RP_ERR_INTERRUPTED) {
        (void)snprintf(machine->note, sizeof machine->note, "%s", machine->fault.text);
    } else {
        (void)snprintf(machine->note, sizeof machine->note,
                       "%.220s; the run had gone back to step %" PRIu64 " after this: %.200s",
                       machine->fault.text, step, recovery->fault.text);
    }
}

void rp_stopping_note_not_fewer(rp_machine *machine, const rp_remedy_facts *facts,
                                const char *why_stay) {
    rp_remedy_facts other = *facts;
    char at_least[48];
    other.may_shrink = true;
    other.places_stay = false;
    other.at_least = 1;
    if (rp_remedy_choose(&other) != RP_REMEDY_FEWER) {
        return;
    }
    (void)snprintf(at_least, sizeof at_least, "ring.at_least is %" PRIu32, facts->at_least);
    const char *stay = facts->places_stay ? "the plan is given" : why_stay;
    const size_t used = strlen(machine->note);
    (void)snprintf(machine->note + used, sizeof machine->note - used,
                   "; the run does not go on with fewer boards, because %s",
                   stay ? stay : at_least);
}

void rp_stopping_note_not_back(rp_machine *machine, const rp_remedy_facts *facts) {
    const size_t used = strlen(machine->note);
    (void)snprintf(machine->note + used, sizeof machine->note - used,
                   "; the run does not go back once more: there were at least %" PRIu32
                   " faults since its newest checkpoint",
                   facts->in_a_row + facts->on_the_way);
}

void rp_stopping_note_failed(rp_machine *machine, const char *why) {
    (void)snprintf(machine->note, sizeof machine->note, "%.220s (while recovering from: %.200s)",
                   why, machine->fault.text);
}
