/* What the ring runs with: the plan of the assignment, and the choice of the next one. */
#ifndef RP_CONTROL_OWN_SETUP_H
#define RP_CONTROL_OWN_SETUP_H

#include "checkpoint/checkpoint.h"
#include "planning/choose_sizes.h"
#include "planning/cost.h"
#include "planning/halves.h"
#include "planning/joint.h"
#include "planning/split_choice.h"
#include "planning/trial.h"
#include "run/setup.h"

typedef struct rp_controller rp_controller;

/* advance: auto, when links have changed: what the run goes on with, and where that stands. */
typedef struct {
    enum {
        RP_FOLLOW_NONE,
        RP_FOLLOW_DRAIN,  /* decided; the pipes drain and a checkpoint is written */
        RP_FOLLOW_ASSIGN, /* the boards get their new stages, and the checkpoint back */
        RP_FOLLOW_SAVE    /* the same checkpoint once more, of the new method */
    } phase;
    bool of_advance; /* else the boards get other codecs, which run.codec has already */
    rp_advance_choice choice;
    uint32_t before; /* the advance that was in effect */
} rp_follow;

/* links.codec: auto, by boundary: what is in effect, and what is to be. */
typedef struct {
    rp_codec (*now)[2], (*next)[2];
    uint32_t stages; /* that they were chosen for; 0: not yet */
    bool differ;
    bool measured; /* wires that are not emulated have been looked at */
} rp_codec_choice;

/* shares.c: stages that boards share because the planner has chosen that. */
typedef struct {
    bool is_own;       /* `given` is one of ours */
    rp_arena arena[2]; /* of the one that boards have, and of the one before or behind it */
    uint32_t next;     /* that the next one lies in */
} rp_own_shares;

/* trials.c: the plans that are tried, and the steps of the one that is in force. */
typedef struct {
    rp_trial plans;
    double seconds[RP_PLAN_TRIAL_MAX];
    uint32_t count;   /* of them: the first of a segment is not among them */
    uint64_t trained; /* steps in all */
} rp_trials;

typedef struct {
    rp_runfile opened;   /* the run file as it was read; nothing of it changes */
    rp_setup now;        /* what the ring runs with, or will with the next plan */
    rp_setup written;    /* the choices that run.yaml has */
    uint32_t *cut_first; /* [RP_CUT_STAGES_MAX + 1] for now.cut, once there is one */

    /* chosen, for the next plan that is made here */
    bool advance_chosen;
    rp_advance_choice advance; /* advance: auto */
    uint32_t advance_max;      /* that the boards have memory for, as far as is known */
    uint32_t advance_least;    /* that an assignment may fall back to */
    rp_codec_choice codecs;
    uint32_t size[RP_CUT_STAGES_MAX][2]; /* schedule.planner: storage of now.size */
    char *schedule_words;                /* why this schedule; or NULL */
    char *plan_words; /* why these boards, where the planner chose them; or NULL */

    /* in force */
    rp_plan *plan;  /* of the assignment; NULL before the first */
    rp_plan *given; /* by somebody, or by shares.c: then no other is made */
    rp_own_shares shares;
    rp_trials trial;
    rp_arena plan_arena; /* of `plan`, unless it is given, and of what is read off it: */
    rp_cut plan_cut;
    char *plan_text; /* every board gets it, and: */
    char *model_text;

    /* the way from one plan to the next */
    bool reassigning; /* boards have had stages before */
    rp_follow follow;
    rp_arena follow_arena; /* of a new assignment */
    bool looked_at;        /* links have been measured at this pause */
    uint64_t look_step;    /* of a pause for that, where no other one is sooner; 0: not wanted */
} rp_setup_state;

/* The plan in force is not one that somebody else has given. */
static inline bool rp_setup_may_change(const rp_setup_state *setup) {
    return !setup->given || setup->shares.is_own;
}

/* in_force.c: the run file has been read into setup.opened. errors MEMORY */
rp_err rp_setup_open(rp_controller *c) RP_MUST_CHECK;
/* plan.c: the run goes on with what the checkpoint at hand was made with. errors MEMORY */
rp_err rp_setup_resume(rp_controller *c) RP_MUST_CHECK;
/* .. after a fault: what was to come next is dropped. */
void rp_setup_go_back(rp_controller *c);
/* Call it after each change of setup.now: the run file as it runs follows. */
void rp_setup_refresh(rp_controller *c);
/* The same after a choice that holds for the whole run: run.yaml gets it. errors MEMORY; LIMIT */
rp_err rp_setup_settle(rp_controller *c) RP_MUST_CHECK;
/* A spare takes the place of a board that is lost. False: there is none. */
bool rp_setup_take_spare(rp_controller *c, uint32_t lost);
/* The last spare is no board of the run any more. */
void rp_setup_drop_spare(rp_controller *c);
/* A board that is lost leaves the ring; .. one that is not. It is a spare then (run/spares.h). */
void rp_setup_leave_board(rp_controller *c, uint32_t board);
void rp_setup_put_aside(rp_controller *c, uint32_t board);
/* A spare joins the ring. Returns its place. */
uint32_t rp_setup_return_board(rp_controller *c, uint32_t spare);
/* Another board has a place of the ring. */
void rp_setup_place_board(rp_controller *c, uint32_t place, const rp_roster_entry *entry);
/* The run begins, or goes on, at this step. */
void rp_setup_begin_at(rp_controller *c, uint64_t step);
/* Codecs are chosen once for a number of stages. */
static inline bool rp_setup_may_choose_codecs(const rp_setup_state *setup, const rp_runfile *run) {
    return run->codec_auto && setup->codecs.stages != run->stages;
}

/* The plan of the assignment that begins, and its text: every board gets it.
 * errors those of planning; MEMORY; LIMIT */
rp_err rp_controller_make_plan(rp_controller *c) RP_MUST_CHECK;
/* The plan says what was predicted of it; NULL: nothing was. Borrows the text. */
void rp_setup_take_prediction(rp_plan *plan, const rp_prediction *predicted);
/* The plan by which the boards run already; borrowed. errors MEMORY */
rp_err rp_controller_take_plan(rp_controller *c, rp_plan *plan) RP_MUST_CHECK;
/* What boards and profile have said so far goes into the plan. */
void rp_controller_note_boards(rp_controller *c);
/* Below: by the plan of the assignment. */
uint32_t rp_controller_first_stage(const rp_controller *c, uint32_t board); /* that it holds */
/* The neighbours that dial a board, in ascending order, and how many. */
uint32_t rp_controller_dialled_by(const rp_controller *c, uint32_t board,
                                  uint32_t out[RP_PLAN_NEIGHBOURS_MAX]);
/* replan.c: at a pause. *leaves: c->setup.now.cut, or the sizes, are others now, which the boards
 * are to get. errors IO, MEMORY; of the planner */
rp_err rp_replan_choose(rp_controller *c, bool *leaves) RP_MUST_CHECK;
/* trials.c: plan.trial. For the plan that was chosen just now, with others of the answer; of a
 * checkpoint; and for one that is made, in whose arena the text lies. errors MEMORY */
void rp_trials_open(rp_controller *c, const rp_joint_plan *first, const rp_joint_answer *answer);
void rp_trials_resume(rp_controller *c, const char *text);
rp_err rp_trials_tell(const rp_controller *c, rp_arena *arena, rp_position *out) RP_MUST_CHECK;
/* The boards get stages; a step was done, and took so long, 0: it filled the pipes. */
void rp_trials_begin_plan(rp_controller *c);
void rp_trials_note_step(rp_controller *c, double seconds);
/* The step at which the plan in force has been tried; UINT64_MAX: none is. Is that here, with a
 * step trained since the boards have it? */
uint64_t rp_trials_next(const rp_controller *c);
bool rp_trials_is_due(const rp_controller *c);
/* At a pause. The plan that is to be in force from here on; NULL: the one that is. errors IO */
rp_err rp_trials_choose(rp_controller *c, const rp_trial_plan **plan) RP_MUST_CHECK;
/* shares.c: what the planner is asked for the ring as it is, with stages that are shared where they
 * may */
rp_joint_ask rp_shares_ask(rp_controller *c);
/* .. the boards' next plan, of the ring as it is; borrowed until then. errors USAGE, MEMORY */
rp_err rp_shares_take(rp_controller *c, const rp_trial_plan *plan) RP_MUST_CHECK;
/* .. which plan.json the run begins with; NULL: with none. errors MEMORY */
rp_err rp_shares_read(rp_controller *c, const char **path) RP_MUST_CHECK;
void rp_shares_close(rp_controller *c);
/* arrange.c: boards and order, where the planner may choose them. errors MEMORY, USAGE, IO */
rp_err rp_arrange_ring(rp_controller *c) RP_MUST_CHECK;
/* .. the best cut of the ring as it is with a stage for each board, by the profile; `answer`: with
 * the next best ones. errors of rp_joint_search() */
rp_err rp_controller_find_cut(rp_controller *c, rp_arena *arena, rp_joint_answer *answer,
                              rp_cut *cut) RP_MUST_CHECK;
/* topology.c: what was measured of the boards, or at least what they have said of themselves, in
 * `bare`. errors MEMORY */
rp_err rp_controller_know_boards(rp_controller *c, rp_arena *arena, rp_profile *bare,
                                 const rp_profile **out) RP_MUST_CHECK;
/* schedule.c: plan.schedules, once in a run: the schedule of the answer, NULL: the run's own stays;
 * .. that of the plan that is given; .. that a run which is resumed had. errors MEMORY, IO */
rp_err rp_schedule_take(rp_controller *c, const rp_joint_answer *answer) RP_MUST_CHECK;
rp_err rp_schedule_take_given(rp_controller *c) RP_MUST_CHECK;
rp_err rp_schedule_resume(rp_controller *c) RP_MUST_CHECK;
/* arrange.c: train.microbatch: auto, once in a run: the run file as it is resolved has the number.
 * NULL: nothing was asked. errors MEMORY, IO */
rp_err rp_controller_take_micro(rp_controller *c, const rp_joint_answer *answer) RP_MUST_CHECK;
/* shares.c: where each stage begins, in the next plan. errors MEMORY */
rp_err rp_controller_keep_cut(rp_controller *c, const rp_cut *cut) RP_MUST_CHECK;
/* ahead.c: of halves of stages, once a cut is there and boards are measured. errors MEMORY, IO */
bool rp_ahead_is_wanted(const rp_controller *c);
/* .. as a plan that is given has it, or the checkpoint at hand: others would be another run. With
 * another number of stages than the run's nothing is taken. errors MEMORY */
rp_err rp_ahead_take(rp_controller *c, const uint16_t *ahead, uint32_t count) RP_MUST_CHECK;
rp_err rp_ahead_choose(rp_controller *c) RP_MUST_CHECK;
/* plan.c */
rp_err rp_plan_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_plan_step(rp_controller *c) RP_MUST_CHECK;
bool rp_plan_has_answered(const rp_controller *c, uint32_t board);
/* The state behind HELLO: what has to be measured before there can be a plan? */
bool rp_controller_needs_profile(const rp_controller *c);
/* Whether the cut is for as many stages as the ring has; boards may have left it. */
bool rp_controller_has_cut(const rp_controller *c);
void rp_controller_take_advance(rp_controller *c, const rp_advance_choice *choice);
/* Of the last step trained: a resumed run keeps what is said of it. */
rp_err rp_controller_log_advance(const rp_controller *c, const char *text) RP_MUST_CHECK;
/* Says what is in effect now, and why. `before`: what it is better than. */
rp_err rp_controller_say_advance(const rp_controller *c, uint32_t before) RP_MUST_CHECK;
/* codecs.c: links.codec: auto. They are to be chosen, once for a number of stages; .. those of the
 * answer, if it has any; .. by the cut and what was measured. errors MEMORY */
bool rp_codecs_are_wanted(const rp_controller *c);
rp_err rp_codecs_keep(rp_controller *c, const rp_joint_answer *answer) RP_MUST_CHECK;
rp_err rp_codecs_choose(rp_controller *c) RP_MUST_CHECK;
/* .. where each board has a stage again: as before, else these; NULL: chosen now. errors MEMORY */
rp_err rp_codecs_of_row(rp_controller *c, const rp_codec (*codec)[2]) RP_MUST_CHECK;
/* .. bytes a second from board to board, [boards^2], as far as somebody knows them; of all wires,
 * or of those that were full. */
void rp_codecs_find_rates(const rp_controller *c, bool full_only, double *rate);
/* .. those that a checkpoint was made with. errors MEMORY */
rp_err rp_codecs_resume(rp_controller *c, const rp_setup *then) RP_MUST_CHECK;
/* sizes.c: schedule.planner. They are to be chosen, once for a number of stages; .. by the cut and
 * what was measured, if so; .. these, [stages]; .. those with which a plan was found in which
 * boards share stages, before it is made, else none are chosen yet. The log says them. errors IO,
 * those of rp_choose_sizes() */
bool rp_sizes_are_wanted(const rp_controller *c);
rp_err rp_sizes_choose(rp_controller *c) RP_MUST_CHECK;
rp_err rp_sizes_keep(rp_controller *c, const uint32_t (*size)[2],
                     const rp_size_choice *choice) RP_MUST_CHECK;
void rp_sizes_forget(rp_controller *c);
rp_err rp_sizes_take(rp_controller *c, const rp_trial_plan *plan) RP_MUST_CHECK;
/* .. those that a checkpoint was made with. */
void rp_sizes_resume(rp_controller *c, const rp_setup *then);
/* Says what was chosen for this start. */
rp_err rp_controller_say_codecs(const rp_controller *c) RP_MUST_CHECK;
/* All boards have paused: the losses of the segment go to the record; where one is above
 * links.max_error, a milder codec is next. errors IO */
rp_err rp_controller_note_losses(rp_controller *c) RP_MUST_CHECK;
/* At the end of the first segment: stronger codecs are next where wires that are not emulated were
 * full. errors MEMORY */
rp_err rp_controller_follow_wires(rp_controller *c) RP_MUST_CHECK;
/* At the end of a segment: where too much was lost, and the pipes are empty, milder codecs are in
 * effect, and the boards get their stages again behind the checkpoint. */
void rp_controller_follow_losses(rp_controller *c);
/* Milder codecs wait for empty pipes. */
bool rp_controller_wants_milder(const rp_controller *c);
/* Whether links are to be measured at this pause. */
bool rp_controller_follows_links(const rp_controller *c);
/* split_left.c: of a schedule that splits the stages that a list names (is_listed): may it go on
 * with so many boards? */
bool rp_split_is_listed(const rp_controller *c);
bool rp_split_may_be_on(const rp_controller *c, uint32_t boards);
/* Stages of the boards that there are now and, with such a list, which of them are split.
 * `by_price`: those with which what was measured says that a step is shortest; else the first of
 * the list. */
void rp_split_count_stages(rp_controller *c, bool by_price);
/* "; split are stages 0, 2" */
void rp_split_put_stages(const rp_controller *c, char *out, size_t bytes);

#endif
