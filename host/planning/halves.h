/* Split stages, whose forward is on one board and whose backward is on another (METHODS 12): what
 * the two exchange, the best cut, and the times from which `ahead` is computed. If all D stages are
 * split, board k has the forward of stage k, and board 2 D - 1 - k its backward. */
#ifndef RP_PLANNING_HALVES_H
#define RP_PLANNING_HALVES_H

#include "planning/profile.h"
#include "sched/split.h"

/* Bytes of a stage's stash for a full microbatch, by the layout of the board with the forward, and
 * of the stage's weights. errors those of the layout; MEMORY */
rp_err rp_halves_bytes(const rp_runfile *run, const rp_cut *cut, uint32_t stage, double *stash,
                       double *weights) RP_MUST_CHECK;

/* Times of one step on boards and wires; arrays in the arena. `delay_s`: assumed latency of a wire
 * that was not measured. errors MEMORY; those of rp_halves_bytes() */
rp_err rp_halves_times(rp_arena *arena, const rp_runfile *run, const rp_profile *profile,
                       const rp_cut *cut, double delay_s, rp_split_times *out) RP_MUST_CHECK;

/* The cut with the shortest longest part, which is a forward, backward or transfer of a step.
 * `longest_s`: seconds of that part, may be NULL. The stash of a layer is counted as its input.
 * errors  USAGE: fewer layers than stages, or nothing fits into the memory; MEMORY */
rp_err rp_halves_cut(rp_arena *arena, const rp_runfile *run, const rp_profile *profile, rp_cut *out,
                     double *longest_s) RP_MUST_CHECK;

#endif
