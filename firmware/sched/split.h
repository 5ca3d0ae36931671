/* Kinds that split stages: which weights a forward sees, and how far forwards have to run ahead
 * (METHODS 12). The forward of step n waits for the update of step n - ahead, and sees exactly what
 * that one has made, never anything newer that happens to have come. */
#ifndef RP_SCHED_SPLIT_H
#define RP_SCHED_SPLIT_H

#include "sched/sched.h"

/* ahead = 2 (D - k) on every stage: the smallest at which nobody waits where forward and backward
 * take equally long and nothing else takes any time. */
void rp_sched_split_default(rp_sched_shape *shape);

/* Updates that the weights of the step's forward have seen on the shape's stage: those up to that
 * of step - ahead, as far as they have been published; in a run that began at step_first, those of
 * then at least. `publish` > 1: an update is published when their number divides by it. */
uint64_t rp_sched_split_version(const rp_sched_shape *shape, uint64_t step);
/* Is the forward of the step the first with weights of this run's? Then it waits for them. */
bool rp_sched_split_takes(const rp_sched_shape *shape, uint64_t step);
/* The step whose forwards wait for the weights of the update of `step`; UINT64_MAX: none does. */
uint64_t rp_sched_split_taker(const rp_sched_shape *shape, uint64_t step);

/* The most own updates between a forward and its backward, in a long run, and weight versions that
 * the node with the backward keeps: those of forwards under way, and the newest. */
uint32_t rp_sched_split_staleness(const rp_sched_shape *shape);
uint32_t rp_sched_split_versions(const rp_sched_shape *shape);

/* Times of one step, in any one unit: by stage, or of the boundary above a stage. NULL: 0. */
typedef struct {
    uint32_t stages;
    const double *forward, *backward; /* with the update */
    const double *activation, *gradient;
    const double *stash, *weight;
    double delay; /* each of what is sent is on its way so long besides, whatever else is */
} rp_split_times;

/* The longest of them: no order needs more for a step, and none less. */
double rp_sched_split_period(const rp_split_times *times);

/* The smallest `ahead` of every stage at which a step takes no longer than rp_sched_split_period():
 * what lies between a forward and the arrival of the weights that its own update has made, in
 * periods, rounded up; no smaller than that of the stage above, which would run ahead in vain. More
 * than `most`: `most`.
 * source  METHODS 11.2 of the design, with times that differ by stage */
void rp_sched_split_ahead(const rp_split_times *times, uint16_t most,
                          uint16_t out[RP_SPLIT_STAGES_MAX]);

#endif
