/* Coverage marks: how often a run came to what its tests want to see again and again. */
#ifndef RP_SIM_MARKS_H
#define RP_SIM_MARKS_H

#include "control/fault_remedy.h"
#include "sim/faults.h"

typedef struct {
    uint32_t kind[RP_SIM_FAULT_KINDS];   /* faults that have begun, with an effect */
    uint32_t remedy[RP_REMEDIES];        /* decided on in the controller's state recover */
    uint32_t failed[RP_CONTROL_RECOVER]; /* states that a fault ended */
    uint32_t passed[RP_CONTROL_RECOVER]; /* states that were entered between a fault, or the start
                                            of a controller that resumes, and work */
    uint32_t rejoined;                   /* times that boards that were away have joined again */
} rp_sim_marks;

void rp_sim_marks_add(rp_sim_marks *to, const rp_sim_marks *more);
/* By names, as the controller tells them. */
void rp_sim_marks_note(rp_sim_marks *marks, const char *failed, const char *remedy);
void rp_sim_marks_pass(rp_sim_marks *marks, const char *state);

#endif
