/* A ring of some boards of another one, for a planner that tries it. */
#ifndef RP_PLANNING_SOME_BOARDS_H
#define RP_PLANNING_SOME_BOARDS_H

#include "planning/profile.h"

/* The run and the profile as if only the boards at these places were there, in this order; `names`:
 * of the boards. `to_run` shares all else with `run`, its stages too. errors  MEMORY */
rp_err rp_some_boards(rp_arena *arena, const rp_runfile *run, const rp_profile *profile,
                      const uint32_t *place, uint32_t count, rp_runfile *to_run,
                      rp_profile *to_profile, const char ***names) RP_MUST_CHECK;

#endif
