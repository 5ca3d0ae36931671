/* A few plans of one ring that are tried in turn, each for some steps of the run: a prediction is a
 * guess, a trial is not. They differ in their cuts and, where boards may share stages, in who
 * shares which. What was measured, which one is next, and which is kept. */
#ifndef RP_PLANNING_TRIAL_H
#define RP_PLANNING_TRIAL_H

#include "planning/joint.h"

enum { RP_TRIAL_PLANS_MAX = 3 };

typedef struct {
    uint32_t stages;
    uint32_t first[RP_JOINT_BOARDS_MAX + 1]; /* layers, as rp_cut */
    bool is_shared;                          /* else each board has a stage */
    uint32_t group[RP_JOINT_BOARDS_MAX + 1]; /* as rp_plan_options */
    double share[RP_JOINT_BOARDS_MAX];
    bool has_codecs; /* .. that were chosen with it */
    rp_codec codec[RP_JOINT_BOARDS_MAX][2];
    bool has_sizes;                        /* schedule.planner, where boards share stages: .. */
    uint32_t size[RP_JOINT_BOARDS_MAX][2]; /* .. forward and backward, by stage, .. */
    double even_s;      /* .. and what a step takes with train.microbatch on all */
    double predicted_s; /* of a step; 0: not known */
    double measured_s;  /* the median of the steps tried; NaN: not yet; infinite: none was seen */
} rp_trial_plan;

typedef struct {
    uint32_t count; /* 0: nothing is tried */
    uint32_t boards;
    rp_trial_plan plan[RP_TRIAL_PLANS_MAX];
} rp_trial;

/* The stages of a plan with one hold a board; its cut has `cut`. */
rp_trial_plan rp_trial_plan_in_force(const rp_plan *plan, const rp_cut *cut);

/* As a search has found it; not measured yet. */
rp_trial_plan rp_trial_plan_of(const rp_joint_plan *plan);

/* `first`, which is in force, and the next best plans of the same ring with the same schedule.
 * Nothing is tried where there is no other. */
void rp_trial_open(rp_trial *trial, const rp_joint_plan *first, const rp_joint_answer *answer);

/* The plan with the stages of `own`, of so many boards; `count`: none has them. */
uint32_t rp_trial_find(const rp_trial *trial, uint32_t boards, const rp_trial_plan *own);

/* The first that is not measured yet; behind the last the fastest, of equal ones the first. */
uint32_t rp_trial_next(const rp_trial *trial);
bool rp_trial_is_measured(const rp_trial *trial); /* all of them */

/* Of `count` > 0 values, which it sorts; of an even count the mean of the two in the middle. */
double rp_trial_median(double *seconds, uint32_t count);

/* As a checkpoint has it, "predicted/measured/first,first;...": seconds, `-` for what is not
 * measured, `inf` where nothing could be, and the first layers of all stages but the first. Where
 * boards share stages more parts follow: "/g" and the first boards of these stages, "/s" and where
 * the share of each board ends; and "/c" with codecs, "activations:gradients,..." by boundary. ""
 * where nothing is tried. */
rp_err rp_trial_text(rp_arena *arena, const rp_trial *trial, char **out) RP_MUST_CHECK;
/* For a model of so many layers. False: the text is none; nothing is tried then. */
bool rp_trial_read(const char *text, uint32_t layers, rp_trial *out) RP_MUST_CHECK;

#endif
