/* A stage whose forward is on one board and its backward on another (METHODS 12): what goes between
 * the two, which cut is fastest, how far forwards have to run ahead. Of D stages board k has the
 * forward of stage k, and board 2 D - 1 - k its backward. */
#ifndef RP_PLANNING_HALVES_H
#define RP_PLANNING_HALVES_H

#include "planning/profile.h"
#include "sched/split.h"

/* Bytes of what a full microbatch leaves for its backward, as the layout of the board with the
 * forward has it, and of a stage's weights. errors those of the layout; MEMORY */
rp_err rp_halves_bytes(const rp_runfile *run, const rp_cut *cut, uint32_t stage, double *stash,
                       double *weights) RP_MUST_CHECK;

/* Of one step, by what boards and wires were measured to take; arrays in the arena. `delay_s`: of a
 * wire whose latency nobody knows. errors MEMORY; those of rp_halves_bytes() */
rp_err rp_halves_times(rp_arena *arena, const rp_runfile *run, const rp_profile *profile,
                       const rp_cut *cut, double delay_s, rp_split_times *out) RP_MUST_CHECK;

/* The cut whose longest forward, backward or transfer is shortest, and how long that is, of a step
 * (longest_s: NULL is allowed). Each layer counts as if it left all of its input for its backward.
 * errors  USAGE: fewer layers than stages, or nothing fits into
 * the memory; MEMORY */
rp_err rp_halves_cut(rp_arena *arena, const rp_runfile *run, const rp_profile *profile, rp_cut *out,
                     double *longest_s) RP_MUST_CHECK;

#endif
