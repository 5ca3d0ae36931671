/* Texts about a fault: in the run's log, and in the note that says why a run stopped. */
#ifndef RP_CONTROL_STOPPING_H
#define RP_CONTROL_STOPPING_H

#include "control/fault_remedy.h"
#include "control/recovery_progress.h"
#include "record/record.h"

/* The fault as an event, for the log; its texts are borrowed from `machine` and `ring`. */
rp_run_event rp_stopping_fault(rp_event_kind kind, const rp_machine *machine, const rp_ring *ring);
/* Logs the fault of a run that stops; record NULL: does nothing. */
void rp_stopping_log(const rp_machine *machine, const rp_ring *ring, rp_record *record,
                     uint64_t step);

/* These functions set or extend machine->note. `step`: where the run is after its last recovery. */
void rp_stopping_note_why(rp_machine *machine, const rp_recovery *recovery, uint64_t step);
/* Adds why the run does not continue with fewer boards, if that was the only obstacle. `why_stay`:
 * see rp_membership_why_fixed(). */
void rp_stopping_note_not_fewer(rp_machine *machine, const rp_remedy_facts *facts,
                                const char *why_stay);
void rp_stopping_note_not_back(rp_machine *machine, const rp_remedy_facts *facts);
/* The remedy itself failed with `why`. */
void rp_stopping_note_failed(rp_machine *machine, const char *why);

#endif
