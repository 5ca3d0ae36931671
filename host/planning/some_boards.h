/* A ring of some of a run's boards, which a planner tries. */
#ifndef RP_PLANNING_SOME_BOARDS_H
#define RP_PLANNING_SOME_BOARDS_H

#include "planning/profile.h"

/* Makes the run and the profile of a ring of the boards at these places, in this order, and their
 * names. `to_run` shares everything else with `run`, including `stages`. errors MEMORY */
rp_err rp_some_boards(rp_arena *arena, const rp_runfile *run, const rp_profile *profile,
                      const uint32_t *place, uint32_t count, rp_runfile *to_run,
                      rp_profile *to_profile, const char ***names) RP_MUST_CHECK;

#endif
