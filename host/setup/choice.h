/* The choice of the next setup (next_setup.h) in progress, as the choosers share it. Choosers see
 * no board, link or file; each changes `next` and gives its reasons. */
#ifndef RP_SETUP_CHOICE_H
#define RP_SETUP_CHOICE_H

#include "planning/joint.h"
#include "setup/facts.h"

typedef struct {
    rp_arena *arena;
    const rp_runfile *wish;
    const rp_setup_facts *facts;
    rp_profile placed; /* facts->profile, with its boards in the places that they have in `next` */
    rp_setup next;
    rp_runfile run; /* the run file with `next`; call rp_choice_refresh() after a change */
    rp_setup_why *why;
} rp_choice;

/* errors MEMORY */
rp_err rp_choice_open(rp_choice *c, const rp_runfile *wish, const rp_setup_facts *facts,
                      const rp_setup *now, rp_arena *arena, rp_setup_why *why) RP_MUST_CHECK;
void rp_choice_refresh(rp_choice *c);
/* Adds an event. errors MEMORY */
rp_err rp_choice_say(rp_choice *c, const rp_run_event *event) RP_MUST_CHECK;
/* The plan is given or has shared stages, so choices for one board per stage do not apply. */
bool rp_choice_is_fixed(const rp_choice *c);
const char *rp_choice_name(const rp_choice *c, uint32_t place); /* name of a board in `next` */
/* Question to the planner for the current boards, with cuts and shares as open as the run file
 * allows. */
rp_joint_ask rp_choice_ask(const rp_choice *c);
/* Forward and backward seconds of each layer, [2 * layers], for the cut of `next`; 0 without a
 * profile. errors MEMORY */
rp_err rp_choice_layer_seconds(rp_choice *c, double **out) RP_MUST_CHECK;

/* Writes choices that hold for the whole run into run.yaml. */
typedef struct {
    rp_arena *arena;
    const rp_runfile *run; /* the run file with `now` */
    const rp_setup *was, *now;
    rp_setup_settled *out;
} rp_settling;

/* Sets a key of run.yaml. errors MEMORY */
rp_err rp_settle(const rp_settling *s, const char *key, const char *value) RP_MUST_CHECK;

/* ---- choosers: a row of the table in next_setup.c each --------------------------------------- */

rp_err rp_boards_choose(rp_choice *c) RP_MUST_CHECK; /* boards.c: plan.boards, plan.share */
rp_err rp_boards_settle(const rp_settling *s) RP_MUST_CHECK;
rp_err rp_cut_choose(rp_choice *c) RP_MUST_CHECK; /* cut.c: cut, microbatch, plan.schedules */
bool rp_cut_is_open(const rp_choice *c);
rp_err rp_cut_settle(const rp_settling *s) RP_MUST_CHECK;
rp_err rp_codecs_choose(rp_choice *c) RP_MUST_CHECK; /* codecs.c: links.codec */
bool rp_codecs_are_open(const rp_choice *c);
rp_err rp_sizes_choose(rp_choice *c) RP_MUST_CHECK; /* sizes.c: schedule.planner */
bool rp_sizes_are_open(const rp_choice *c);
rp_err rp_ahead_choose(rp_choice *c) RP_MUST_CHECK; /* ahead.c: ahead: measured */
bool rp_ahead_is_open(const rp_choice *c);
/* The schedule limits the lead of forwards over updates, as with split stages. */
bool rp_ahead_is_bounded(const rp_choice *c);
rp_err rp_ahead_settle(const rp_settling *s) RP_MUST_CHECK;

/* ---- parts of them --------------------------------------------------------------------------- */

/* cut.c: takes microbatch or schedule from the planner's answer; keeps the current one if `answer`
 * is NULL or not known. errors MEMORY */
rp_err rp_micro_take(rp_choice *c, const rp_joint_answer *answer) RP_MUST_CHECK;
rp_err rp_schedule_take(rp_choice *c, const rp_joint_answer *answer) RP_MUST_CHECK;
/* Copies the cut; if sizes were chosen for another number of stages, they are open again. errors
 * MEMORY */
rp_err rp_cut_take(rp_choice *c, const rp_cut *cut) RP_MUST_CHECK;
/* Finds the best cut with one stage per board. `answer`: also has the next best ones. errors of
 * rp_joint_search() */
rp_err rp_cut_find(rp_choice *c, rp_joint_answer *answer, rp_cut *cut) RP_MUST_CHECK;
/* shares.c: takes the whole plan for the current boards. errors MEMORY */
rp_err rp_plan_take(rp_choice *c, const rp_joint_plan *plan) RP_MUST_CHECK;
/* codecs.c. _take: takes codecs from an answer, if they are open and it has any. _set: takes these.
 * _find: chooses them, for one stage per board. errors MEMORY */
rp_err rp_codecs_take(rp_choice *c, const rp_joint_answer *answer) RP_MUST_CHECK;
rp_err rp_codecs_set(rp_choice *c, const rp_codec (*codec)[2]) RP_MUST_CHECK;
rp_err rp_codecs_find(rp_choice *c) RP_MUST_CHECK;
/* sizes.c: chooses sizes for the cut of `next`. errors those of rp_choose_sizes() */
rp_err rp_sizes_find(rp_choice *c) RP_MUST_CHECK;
/* Takes the sizes of a plan with shared stages; they are open again if it has none. errors
 * MEMORY */
rp_err rp_sizes_take(rp_choice *c, const rp_joint_plan *plan) RP_MUST_CHECK;

#endif
