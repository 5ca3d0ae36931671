/* A choice at work (next_setup.h): what the files that choose share. They see no board, no link and
 * no file; each changes `next` and says why. */
#ifndef RP_SETUP_CHOICE_H
#define RP_SETUP_CHOICE_H

#include "planning/joint.h"
#include "setup/facts.h"

typedef struct {
    rp_arena *arena;
    const rp_runfile *wish;
    const rp_setup_facts *facts;
    rp_profile
        placed; /* facts->profile with the boards of `next` at their places, if there is one */
    rp_setup next;
    rp_runfile run; /* the run file with `next`: call rp_choice_refresh() after a change */
    rp_setup_why *why;
} rp_choice;

/* errors MEMORY */
rp_err rp_choice_open(rp_choice *c, const rp_runfile *wish, const rp_setup_facts *facts,
                      const rp_setup *now, rp_arena *arena, rp_setup_why *why) RP_MUST_CHECK;
void rp_choice_refresh(rp_choice *c);
/* Adds an event. errors MEMORY */
rp_err rp_choice_say(rp_choice *c, const char *event, const char *text) RP_MUST_CHECK;
/* The plan is a person's, or one of shared stages: no choice for rows of boards applies. */
bool rp_choice_is_fixed(const rp_choice *c);
const char *rp_choice_name(const rp_choice *c, uint32_t place); /* of a board of `next` */
/* What the planner is asked for the boards as they stand, with any cut and the shares that the run
 * allows. */
rp_joint_ask rp_choice_ask(const rp_choice *c);
/* Forward and backward seconds of each layer, [2 * layers], with the cut of `next`; 0 without a
 * profile. errors MEMORY */
rp_err rp_choice_layer_seconds(rp_choice *c, double **out) RP_MUST_CHECK;

/* A choice that holds for the whole run, on its way into run.yaml. */
typedef struct {
    rp_arena *arena;
    const rp_runfile *run; /* with `now` */
    const rp_setup *was, *now;
    rp_setup_settled *out;
} rp_settling;

/* run.yaml has this value from here on. errors MEMORY */
rp_err rp_settle(const rp_settling *s, const char *key, const char *value) RP_MUST_CHECK;

/* ---- choosers: a row of the table in next_setup.c each
 * --------------------------------------------- */

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
/* Whether the schedule bounds how far forwards run ahead of updates, as one that splits stages
 * does. */
bool rp_ahead_is_bounded(const rp_choice *c);
rp_err rp_ahead_settle(const rp_settling *s) RP_MUST_CHECK;

/* ---- parts of them --------------------------------------------------------------------------- */

/* cut.c: what a search has found, or `answer` NULL or not known: the run's own stays.
 * errors MEMORY */
rp_err rp_micro_take(rp_choice *c, const rp_joint_answer *answer) RP_MUST_CHECK;
rp_err rp_schedule_take(rp_choice *c, const rp_joint_answer *answer) RP_MUST_CHECK;
/* Copies the cut; sizes of another number of stages are open again. errors MEMORY */
rp_err rp_cut_take(rp_choice *c, const rp_cut *cut) RP_MUST_CHECK;
/* The best cut with a stage for each board. `answer`: with the next best ones. errors of
 * rp_joint_search() */
rp_err rp_cut_find(rp_choice *c, rp_joint_answer *answer, rp_cut *cut) RP_MUST_CHECK;
/* shares.c: all that the plan says of the boards as they stand. errors MEMORY */
rp_err rp_plan_take(rp_choice *c, const rp_joint_plan *plan) RP_MUST_CHECK;
/* codecs.c: those of an answer that has any, if they are open; .. those of boards that have a stage
 * each, chosen now. errors MEMORY */
rp_err rp_codecs_take(rp_choice *c, const rp_joint_answer *answer) RP_MUST_CHECK;
rp_err rp_codecs_set(rp_choice *c, const rp_codec (*codec)[2]) RP_MUST_CHECK;
rp_err rp_codecs_find(rp_choice *c) RP_MUST_CHECK;
/* sizes.c: for the cut of `next`. errors those of rp_choose_sizes() */
rp_err rp_sizes_find(rp_choice *c) RP_MUST_CHECK;
/* .. of a plan in which boards share stages; without any they are open again. errors MEMORY */
rp_err rp_sizes_take(rp_choice *c, const rp_joint_plan *plan) RP_MUST_CHECK;

#endif
