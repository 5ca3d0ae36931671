/* What stages need of their boards' memory, as the boards will count it, and which of them compute
 * forwards again, or have their stashes elsewhere, so that it fits. */
#ifndef RP_PLANNING_FIT_MEMORY_H
#define RP_PLANNING_FIT_MEMORY_H

#include "plan/plan.h"
#include "planning/profile.h"
#include "run/runfile.h"

/* Sets plan->stage[].offload, .leave_tensors, .recompute, .group, .offload_bytes, .stay_bytes and
 * .memory_why. Where the run
 * file says what to do, that; where it says auto, of a board with a limit
 * (plan->node[].memory_bytes) that its stages exceed, stage for stage, those first that need most,
 * until they fit: the cheaper one of computing forwards again (in one to eight groups, whichever
 * need least) and offload, to the host's memory where the device has its own and to flash where it
 * has not, or both. Of an offloaded stash as few tensors leave as have to, those that wait longest
 * for their backward. Where the profile has no times for it, or there is none, forwards are
 * computed again if that is enough. Not with `advance: auto`, where memory decides how many
 * forwards are in flight. Bytes are those of the boards' own layouts, with their usual alignment.
 * `profile` may be NULL. errors  USAGE: it does not fit with that either, with the board and the
 * numbers; `recompute` says what the schedule can not do; MEMORY */
rp_err rp_fit_memory(rp_arena *arena, const rp_runfile *run, const rp_cut *cut,
                     const rp_profile *profile, rp_plan *plan) RP_MUST_CHECK;

/* Of a plan that is given: sets .offload_bytes and .stay_bytes of the stages that it offloads.
 * `cut`: its own. errors MEMORY */
rp_err rp_fit_memory_note(const rp_runfile *run, const rp_cut *cut, rp_plan *plan) RP_MUST_CHECK;

/* Bytes that each node's stages take on its device, with what the plan says of them; limits do not
 * count. `out`: [nodes]. errors  MEMORY; those of the layout */
rp_err rp_fit_memory_needs(const rp_runfile *run, const rp_cut *cut, rp_plan *plan,
                           uint64_t *out) RP_MUST_CHECK;

#endif
