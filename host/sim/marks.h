/* Coverage marks: how often runs had each fault, remedy and state, so that tests can check it. */
#ifndef RP_SIM_MARKS_H
#define RP_SIM_MARKS_H

#include "control/fault_remedy.h"
#include "sim/faults.h"

/* States of a federated run in which its host may be killed. */
enum { RP_SIM_KILLS_MAX = 16 };

typedef struct {
    uint32_t kind[RP_SIM_FAULT_KINDS];   /* faults that have begun */
    uint32_t remedy[RP_REMEDIES];        /* chosen in the controller's state recover */
    uint32_t failed[RP_CONTROL_RECOVER]; /* states that a fault ended */
    uint32_t passed[RP_CONTROL_RECOVER]; /* states entered after a fault, or after a resume, until
                                            the next training */
    uint32_t kill[RP_SIM_KILLS_MAX];     /* of the host of a federated run, by its state */
    uint32_t rejoined;                   /* times that lost boards joined the ring again */
} rp_sim_marks;

void rp_sim_marks_add(rp_sim_marks *to, const rp_sim_marks *more);
/* Count by the names that the controller reports. */
void rp_sim_marks_note(rp_sim_marks *marks, const char *failed, const char *remedy);
void rp_sim_marks_pass(rp_sim_marks *marks, const char *state);

#endif
