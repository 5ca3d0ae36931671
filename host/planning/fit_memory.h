/* What stages need of their boards' memory, as the boards will count it, and which of them compute
 * forwards again so that it fits. */
#ifndef RP_PLANNING_FIT_MEMORY_H
#define RP_PLANNING_FIT_MEMORY_H

#include "plan/plan.h"
#include "run/runfile.h"

/* Sets plan->stage[].offload as the run file says, and .recompute, .group and .memory_why: as
 * `recompute` of the run file says; with auto, of a board with a limit (plan->node[].memory_bytes)
 * that its stages exceed, stage for stage, those first that need most, until they fit: in one to
 * eight groups, whichever need least; not with `advance: auto`, where memory decides how many
 * forwards are in flight. Bytes are those of the boards' own layouts, with their usual
 * alignment. errors  USAGE: it does not fit with that either, with the board and the numbers;
 * `recompute` says what the schedule can not do; MEMORY */
rp_err rp_fit_memory(rp_arena *arena, const rp_runfile *run, const rp_cut *cut,
                     rp_plan *plan) RP_MUST_CHECK;

#endif
