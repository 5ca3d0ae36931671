/* Memory of stages, as their boards will count it; and which stages recompute forwards or offload
 * stashes so that they fit. */
#ifndef RP_PLANNING_FIT_MEMORY_H
#define RP_PLANNING_FIT_MEMORY_H

#include "plan/plan.h"
#include "planning/profile.h"
#include "run/runfile.h"

/* Sets plan->stage[].offload, .leave_tensors, .recompute, .group, .offload_bytes, .stay_bytes and
 * .memory_why. Bytes are those of the boards' own layouts, with the usual alignment.
 * - If the run file says what a stage does, that is taken.
 * - If it says auto, and a board's stages exceed its limit (plan->node[].memory_bytes), stages
 *   change until they fit, the largest first. Each gets the cheapest way that suffices, else the
 *   smallest: recompute, in the one to eight groups that need least memory; offload, to the host's
 *   memory if the device has its own, else to flash; both. As few tensors of a stash are offloaded
 * as necessary, those first that wait longest for their backward. Without times in the profile,
 * recompute is preferred if it suffices.
 * - Not with `advance: auto`, where memory limits the forwards in flight.
 * `profile` may be NULL.
 * errors  USAGE: it still does not fit; the message names board and numbers, or why the schedule
 *         allows no recompute; MEMORY */
rp_err rp_fit_memory(rp_arena *arena, const rp_runfile *run, const rp_cut *cut,
                     const rp_profile *profile, rp_plan *plan) RP_MUST_CHECK;

/* For a plan that the user gave, whose cut is `cut`: sets .offload_bytes and .stay_bytes of the
 * stages that it offloads. errors MEMORY */
rp_err rp_fit_memory_note(const rp_runfile *run, const rp_cut *cut, rp_plan *plan) RP_MUST_CHECK;

/* Bytes that each node's stages need on its device as planned, whatever its limit. `out`: [nodes].
 * errors  MEMORY; those of the layout */
rp_err rp_fit_memory_needs(const rp_runfile *run, const rp_cut *cut, rp_plan *plan,
                           uint64_t *out) RP_MUST_CHECK;

#endif
