/* The words for a fault: in the run's log, and in the note why a run has stopped. */
#ifndef RP_CONTROL_STOPPING_H
#define RP_CONTROL_STOPPING_H

#include "control/fault_remedy.h"
#include "control/recovery_progress.h"

/* "transient, in state train: TEXT" */
void rp_stopping_describe(const rp_machine *machine, char *text, size_t bytes);
/* The fault of a run that stops goes to its log; `record` NULL: nothing is written. */
void rp_stopping_log(const rp_machine *machine, rp_record *record, uint64_t step);

/* Each sets or extends machine->note. `step`: where the run stands after its last way back. */
void rp_stopping_note_why(rp_machine *machine, const rp_recovery *recovery, uint64_t step);
/* Boards have not come, and other boards would go on if the run file allowed it. `why_stay`: see
 * rp_membership_why_fixed(). */
void rp_stopping_note_not_fewer(rp_machine *machine, const rp_remedy_facts *facts,
                                const char *why_stay);
void rp_stopping_note_not_back(rp_machine *machine, const rp_remedy_facts *facts);
/* To mend the fault was tried, and failed with `why`. */
void rp_stopping_note_failed(rp_machine *machine, const char *why);

#endif
