/* Chooses the next setup of a ring: pure functions of the run file, measurements and the setup in
 * force. They use no link and no file, log nothing, and change only their results. */
#ifndef RP_SETUP_NEXT_SETUP_H
#define RP_SETUP_NEXT_SETUP_H

#include "setup/facts.h"

/* Makes all choices that are open: boards with their order, microbatch, schedule, cut with groups
 * and shares, codecs, sizes, steps ahead. `wish`: the run file as read. `now`: valid for `wish`.
 * *next has a cut, and borrows from `arena`, `wish` and `now`; if nothing was open, it equals `now`
 * (rp_setup_equal()). errors those of the planner; MEMORY */
rp_err rp_setup_next(const rp_runfile *wish, const rp_setup_facts *facts, const rp_setup *now,
                     rp_arena *arena, rp_setup *next, rp_setup_why *why) RP_MUST_CHECK;
/* Lists the choices that were open in `was`, are made in `now`, and hold for the whole run. `run`:
 * the run file with `now`. The texts are in `arena`. errors MEMORY; LIMIT: names of boards are too
 * long */
rp_err rp_setup_settle(const rp_runfile *run, const rp_setup *was, const rp_setup *now,
                       rp_arena *arena, rp_setup_settled *out) RP_MUST_CHECK;
/* An open choice needs a profile. Ignores names, clock and profile of `facts`. */
bool rp_setup_needs_profile(const rp_runfile *wish, const rp_setup_facts *facts,
                            const rp_setup *now);

/* Chooses cut (cut: auto), shares and sizes (schedule.planner) again, for a run in progress with
 * the same boards. A profile is required. Otherwise as rp_setup_next(). */
rp_err rp_setup_follow(const rp_runfile *wish, const rp_setup_facts *facts, const rp_setup *now,
                       rp_arena *arena, rp_setup *next, rp_setup_why *why) RP_MUST_CHECK;
/* Predicts the seconds of a step with this setup, which has a cut. A profile is required. errors
 * those of rp_planfile_make() and rp_predict() */
rp_err rp_setup_price(const rp_runfile *wish, const rp_setup_facts *facts, const rp_setup *setup,
                      rp_arena *arena, double *step_s) RP_MUST_CHECK;

#endif
