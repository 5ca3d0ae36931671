/* Inside of the arrangement; only for the files of this room. */
#ifndef RP_SETUP_SETUP_OWN_H
#define RP_SETUP_SETUP_OWN_H

#include "measure/drift.h"
#include "measure/losses.h"
#include "measure/measure.h"
#include "planning/choose_sizes.h"
#include "planning/cost.h"
#include "planning/halves.h"
#include "setup/arrangement.h"

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

struct rp_arrangement {
    rp_arena *arena; /* of the run */
    rp_ring *ring;
    rp_folder *folder;
    const rp_position *position;
    rp_measure *measure;
    const char *resume, *given_path; /* NULL: not said */
    bool trains, evaluates, profiles;
    bool has_begun; /* boards have been loaded once: the ring stays as it is chosen */

    rp_runfile opened;   /* as it was read; nothing of it changes */
    rp_setup now;        /* what the ring runs with, or will with the next plan */
    rp_runfile run;      /* as it runs: it follows `now` */
    rp_setup written;    /* the choices that run.yaml has */
    uint32_t *cut_first; /* [RP_CUT_STAGES_MAX + 1] for now.cut, once there is one */

    /* chosen, for the next plan that is made here */
    bool advance_chosen;
    rp_advance_choice advance; /* advance: auto */
    uint32_t advance_max;      /* that the boards have memory for, as far as is known */
    rp_codec_choice codecs;
    uint32_t size[RP_CUT_STAGES_MAX][2]; /* schedule.planner: storage of now.size */
    char *schedule_words;                /* why this schedule; or NULL */
    char *plan_words; /* why these boards, where the planner chose them; or NULL */

    /* in force */
    rp_plan *plan;  /* of the assignment; NULL before the first */
    rp_plan *given; /* by somebody, or by shares.c: then no other is made */
    rp_own_shares shares;
    rp_arena plan_arena;   /* of `plan`, unless it is given, and of what is read off it: */
    uint32_t *stage_board; /* the first that updates the stage */
    rp_cut plan_cut;
    char *plan_text;  /* every board gets it */
    char *model_text; /* every board gets it; NULL: it is not written yet */
};

/* The plan in force is not one that somebody else has given. */
static inline bool rp_arrangement_may_change(const rp_arrangement *a) {
    return !a->given || a->shares.is_own;
}

/* in_force.c: call it after each change of `now`: the run file as it runs follows. */
void rp_arrangement_refresh(rp_arrangement *a);
/* .. after a choice that holds for the whole run: run.yaml gets it, too. errors MEMORY; LIMIT */
rp_err rp_arrangement_settle(rp_arrangement *a) RP_MUST_CHECK;
/* plan.c: what was measured of the boards, or at least what they have said of themselves, in
 * `bare`. errors MEMORY */
rp_err rp_arrangement_know_boards(rp_arrangement *a, rp_arena *arena, rp_profile *bare,
                                  const rp_profile **out) RP_MUST_CHECK;
/* shares.c: what the planner is asked for the ring as it is, with stages that are shared where they
 * may */
rp_joint_ask rp_shares_ask(rp_arrangement *a);
/* .. the boards' next plan, of the ring as it is; borrowed until then. errors USAGE, MEMORY */
rp_err rp_shares_take(rp_arrangement *a, const rp_joint_plan *plan) RP_MUST_CHECK;
/* .. which plan.json the run begins with; NULL: with none. errors MEMORY */
rp_err rp_shares_read(rp_arrangement *a, const char **path) RP_MUST_CHECK;
/* .. where each stage begins, in the next plan. errors MEMORY */
rp_err rp_arrangement_keep_cut(rp_arrangement *a, const rp_cut *cut) RP_MUST_CHECK;
/* arrange.c: boards and order, where the planner may choose them. errors MEMORY, USAGE, IO */
rp_err rp_arrange_ring(rp_arrangement *a) RP_MUST_CHECK;
/* .. the best cut of the ring as it is with a stage for each board, by the profile; `answer`: with
 * the next best ones. errors of rp_joint_search() */
rp_err rp_arrangement_find_cut(rp_arrangement *a, rp_arena *arena, rp_joint_answer *answer,
                               rp_cut *cut) RP_MUST_CHECK;
/* .. train.microbatch: auto, once in a run: the run file as it is resolved has the number. NULL:
 * nothing was asked. errors MEMORY, IO */
rp_err rp_arrangement_take_micro(rp_arrangement *a, const rp_joint_answer *answer) RP_MUST_CHECK;
/* schedule.c: plan.schedules, once in a run: the schedule of the answer, NULL: the run's own stays;
 * .. that of the plan that is given. errors MEMORY, IO */
rp_err rp_schedule_take(rp_arrangement *a, const rp_joint_answer *answer) RP_MUST_CHECK;
rp_err rp_schedule_take_given(rp_arrangement *a) RP_MUST_CHECK;
/* .. that a run which is resumed had; and its microbatch. errors MEMORY */
rp_err rp_schedule_resume(rp_arrangement *a) RP_MUST_CHECK;
rp_err rp_arrangement_resume_micro(rp_arrangement *a) RP_MUST_CHECK;
/* ahead.c: once a cut is there and boards are measured. errors MEMORY, IO */
rp_err rp_ahead_choose(rp_arrangement *a) RP_MUST_CHECK;
/* codecs.c: links.codec: auto. They are to be chosen, once for a number of stages; .. those of the
 * answer, if it has any; .. by the cut and what was measured. errors MEMORY */
bool rp_codecs_are_wanted(const rp_arrangement *a);
rp_err rp_codecs_keep(rp_arrangement *a, const rp_joint_answer *answer) RP_MUST_CHECK;
rp_err rp_codecs_choose(rp_arrangement *a) RP_MUST_CHECK;
/* .. where each board has a stage again: as before, else these; NULL: chosen now. errors MEMORY */
rp_err rp_codecs_of_row(rp_arrangement *a, const rp_codec (*codec)[2]) RP_MUST_CHECK;
/* .. bytes a second from board to board, [boards^2], as far as they are known; of all wires, or of
 * those that were full in a segment of so many seconds. */
void rp_codecs_find_rates(const rp_arrangement *a, bool full_only, double segment_s, double *rate);
/* .. those that a checkpoint was made with. errors MEMORY */
rp_err rp_codecs_resume(rp_arrangement *a, const rp_setup *then) RP_MUST_CHECK;
/* sizes.c: schedule.planner. They are to be chosen, once for a number of stages; .. by the cut and
 * what was measured, if so; .. these, [stages]; .. those with which a plan was found in which
 * boards share stages, before it is made, else none are chosen yet. The log says them. errors IO,
 * those of rp_choose_sizes() */
bool rp_sizes_are_wanted(const rp_arrangement *a);
rp_err rp_sizes_choose(rp_arrangement *a) RP_MUST_CHECK;
rp_err rp_sizes_keep(rp_arrangement *a, const uint32_t (*size)[2],
                     const rp_size_choice *choice) RP_MUST_CHECK;
void rp_sizes_forget(rp_arrangement *a);
rp_err rp_sizes_take(rp_arrangement *a, const rp_joint_plan *plan) RP_MUST_CHECK;
/* .. those that a checkpoint was made with. */
void rp_sizes_resume(rp_arrangement *a, const rp_setup *then);

#endif
