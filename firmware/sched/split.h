/* Kinds that split stages: which weights a forward sees, and how far forwards must run ahead
 * (METHODS 12). The forward of step n waits for the update of step n - ahead, and sees exactly the
 * weights that this update made, never newer ones that have already arrived. */
#ifndef RP_SCHED_SPLIT_H
#define RP_SCHED_SPLIT_H

#include "sched/sched.h"

/* ---- nodes and roles ------------------------------------------------------------------------- */

/* Nodes of D stages: node k does the forwards of stage k, and everything else of it if bit k of
 * `whole` is set. The next nodes do the backwards and updates of the split stages, starting with
 * the last stage. */
static inline bool rp_sched_is_split(uint32_t whole, uint32_t stage) {
    return stage < RP_SPLIT_STAGES_MAX && !(whole >> stage & 1u);
}
/* Number of split stages in [first, end). */
uint32_t rp_sched_split_count(uint32_t whole, uint32_t first, uint32_t end);
static inline uint32_t rp_sched_split_nodes(uint32_t stages, uint32_t whole) {
    return stages + rp_sched_split_count(whole, 0, stages);
}
/* The node that does a stage's backwards and updates, the stage of a node, and its role. */
uint32_t rp_sched_split_backward(uint32_t stages, uint32_t whole, uint32_t stage);
uint32_t rp_sched_split_stage(uint32_t stages, uint32_t whole, uint32_t node);
rp_role rp_sched_split_role(uint32_t stages, uint32_t whole, uint32_t node);

enum { RP_SPLIT_WIRES_MAX = 3 * RP_SPLIT_STAGES_MAX };
/* Pairs of nodes with traffic between them, each once: from stage to stage upwards, from the last
 * stage's forward to its backward, from stage to stage downwards, and from forward to backward of
 * all remaining stages. Returns the count. */
uint32_t rp_sched_split_wires(uint32_t stages, uint32_t whole, uint32_t out[][2]);

/* ---- which weights --------------------------------------------------------------------------- */

/* Sets `ahead` of stage k to the number of nodes that hold stages from k on: 2 (D - k) if all
 * stages are split, and D - k, as in PipeDream, if none is. This is the smallest value at which no
 * node waits if all forwards and backwards take the same time and nothing else takes any. For a
 * stage that is not split, `ahead` orders the list of its node: forward n follows the update of
 * step n - ahead. */
void rp_sched_split_default(rp_sched_shape *shape);

/* The version that the step's forward sees on the shape's stage: the updates up to that of step -
 * ahead that have been published; in a run that began at step_first, at least the version of then.
 * `publish` > 1: an update is published when its number is a multiple. */
uint64_t rp_sched_split_version(const rp_sched_shape *shape, uint64_t step);
/* Whether the step's forward is the first to see a version of this run, and waits for it. */
bool rp_sched_split_takes(const rp_sched_shape *shape, uint64_t step);
/* The step whose forwards wait for the weights of the update of `step`; UINT64_MAX: none. */
uint64_t rp_sched_split_taker(const rp_sched_shape *shape, uint64_t step);

/* Largest staleness in a long run, and the number of weight versions that the node with the
 * backward keeps: those of forwards in progress, and the newest. */
uint32_t rp_sched_split_staleness(const rp_sched_shape *shape);
uint32_t rp_sched_split_versions(const rp_sched_shape *shape);

/* Times of one step, in any unit, by stage or by the boundary above a stage. NULL: 0. */
typedef struct {
    uint32_t stages;
    const double *forward, *backward; /* backward: with the update */
    const double *activation, *gradient;
    const double *stash, *weight;
    double delay;   /* additional delay of everything that is sent */
    uint32_t whole; /* bit k: stage k is not split, so its stash and weight times are ignored */
} rp_split_times;

/* The longest of these times: the shortest possible time of a step. */
double rp_sched_split_period(const rp_split_times *times);

/* The smallest `ahead` of every stage at which a step takes no longer than rp_sched_split_period():
 * the time from a forward to the arrival of the weights made by its own update, in periods, rounded
 * up; not smaller than that of the stage above, because a larger lead is useless. A stage
 * that is not split does forwards and backwards in one list, where each kind may wait for the
 * opposite kind; stages below it may then have to be further ahead. Values are capped at `most`.
 *
 * source  METHODS 12.2, with times that differ by stage */
void rp_sched_split_ahead(const rp_split_times *times, uint16_t most,
                          uint16_t out[RP_SPLIT_STAGES_MAX]);

#endif
