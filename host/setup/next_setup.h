/* What a ring runs with next, as a pure function: from the run file, what is measured, and the
 * setup in force. It reads no link and no file, writes no event, and changes nothing but its
 * results. */
#ifndef RP_SETUP_NEXT_SETUP_H
#define RP_SETUP_NEXT_SETUP_H

#include "setup/facts.h"

/* Chooses everything that is still open: boards with their order, microbatch, schedule, cut with
 * groups and shares, codecs, sizes, steps ahead. `wish`: the run file as it was read. `now` is
 * valid for it. *next has a cut, and borrows from `arena`, `wish` and `now`; it is equal to `now`
 * (rp_setup_equal()) where nothing was open. errors those of the planner; MEMORY */
rp_err rp_setup_next(const rp_runfile *wish, const rp_setup_facts *facts, const rp_setup *now,
                     rp_arena *arena, rp_setup *next, rp_setup_why *why) RP_MUST_CHECK;
/* What was open in `was` and holds for the whole run in `now`. `run`: the run file with `now`. The
 * texts lie in `arena`. errors MEMORY; LIMIT: names of boards are too long */
rp_err rp_setup_settle(const rp_runfile *run, const rp_setup *was, const rp_setup *now,
                       rp_arena *arena, rp_setup_settled *out) RP_MUST_CHECK;
/* Something that is open is chosen by a profile. Names, clock and profile of `facts` do not count.
 */
bool rp_setup_needs_profile(const rp_runfile *wish, const rp_setup_facts *facts,
                            const rp_setup *now);

/* Chooses again, for a run that has begun with `now`: the cut (cut: auto), with the shares of the
 * same boards, and sizes (schedule.planner). Otherwise as above; the profile is needed. */
rp_err rp_setup_follow(const rp_runfile *wish, const rp_setup_facts *facts, const rp_setup *now,
                       rp_arena *arena, rp_setup *next, rp_setup_why *why) RP_MUST_CHECK;
/* Predicted seconds of a step with this setup, which has a cut; the profile is needed. errors those
 * of rp_planfile_make() and rp_predict() */
rp_err rp_setup_price(const rp_runfile *wish, const rp_setup_facts *facts, const rp_setup *setup,
                      rp_arena *arena, double *step_s) RP_MUST_CHECK;

#endif
