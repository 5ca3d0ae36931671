/* Kinds that split stages: which weights a forward sees, and how far forwards have to run ahead
 * (METHODS 12). The forward of step n waits for the update of step n - ahead, and sees exactly what
 * that one has made, never anything newer that happens to have come. */
#ifndef RP_SCHED_SPLIT_H
#define RP_SCHED_SPLIT_H

#include "sched/sched.h"

/* ---- who does what --------------------------------------------------------------------------- */

/* Nodes of D stages: node k has the forwards of stage k, and all else of it where bit k of `whole`
 * is set; the nodes behind them have the backwards and updates of the stages that are split, of the
 * last one first. */
static inline bool rp_sched_is_split(uint32_t whole, uint32_t stage) {
    return stage < RP_SPLIT_STAGES_MAX && !(whole >> stage & 1u);
}
/* Of the stages from `first` on, up to `end`. */
uint32_t rp_sched_split_count(uint32_t whole, uint32_t first, uint32_t end);
static inline uint32_t rp_sched_split_nodes(uint32_t stages, uint32_t whole) {
    return stages + rp_sched_split_count(whole, 0, stages);
}
/* The node with the backwards and updates of a stage, the stage of a node, and its part in it. */
uint32_t rp_sched_split_backward(uint32_t stages, uint32_t whole, uint32_t stage);
uint32_t rp_sched_split_stage(uint32_t stages, uint32_t whole, uint32_t node);
rp_role rp_sched_split_role(uint32_t stages, uint32_t whole, uint32_t node);

enum { RP_SPLIT_WIRES_MAX = 3 * RP_SPLIT_STAGES_MAX };
/* Pairs of nodes that something goes between, each once: up the stages, from the last one's forward
 * to its backward, down the stages, from forward to backward of the others. Returns how many. */
uint32_t rp_sched_split_wires(uint32_t stages, uint32_t whole, uint32_t out[][2]);

/* ---- which weights --------------------------------------------------------------------------- */

/* `ahead` of stage k is the number of nodes that hold stages from k on, 2 (D - k) where all are
 * split, and D - k, which is PipeDream's, where none is: the smallest at which nobody waits where
 * every node works as long as the others, its forward as long as its backward, and nothing else
 * takes any time. On a stage that is not split `ahead` means the same: forward n comes next behind
 * the update of step n - ahead, on one node. */
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
    uint32_t
        whole; /* of a stage that is not split stash and weights go nowhere: theirs is not read */
} rp_split_times;

/* The longest of them: no order needs more for a step, and none less. */
double rp_sched_split_period(const rp_split_times *times);

/* The smallest `ahead` of every stage at which a step takes no longer than rp_sched_split_period():
 * what lies between a forward and the arrival of the weights that its own update has made, in
 * periods, rounded up; no smaller than that of the stage above, which would run ahead in vain. A
 * stage that is not split does forwards and backwards in one row, so that either may wait for the
 * other: those below may have to be further ahead for it. More than `most`: `most`.
 * source  METHODS 11.2 of the design, with times that differ by stage */
void rp_sched_split_ahead(const rp_split_times *times, uint16_t most,
                          uint16_t out[RP_SPLIT_STAGES_MAX]);

#endif
