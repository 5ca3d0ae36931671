/* Private to the joint planner: joint.c and the files joint_*.c that it calls. */
#ifndef RP_PLANNING_JOINT_OWN_H
#define RP_PLANNING_JOINT_OWN_H

#include "planning/joint.h"
#include "planning/least_memory.h"
#include "planning/sums.h"

/* Plans to replay of each kind; plans that get sizes, codecs and schedules. */
enum { RP_JOINT_REPLAYS = 6, RP_JOINT_SIZED = 3 };
/* Minimum predicted gain, as a fraction of a step. Smaller gains are measurement noise. */
#define RP_JOINT_WORTH 0.01

typedef struct {
    const rp_joint_ask *ask;
    uint32_t layers, micros, rounds;
    int64_t start_ns;
    rp_sums sums;
    uint32_t *statistics;  /* [layers + 1]: layers before this one with statistics of a batch */
    double *limit;         /* [boards]: bytes of memory that each may use; 0: unknown */
    rp_codec (*strong)[2]; /* [boards]: the strongest codecs, if codecs are open; else NULL */
    uint64_t medium;       /* shared by wires of several pairs of boards (cost.h); 0: none */
    double *bytes;         /* [layers]: activations at the boundary before the layer, encoded;
                              infinite: no cut there */
    rp_least_memory memory;
    struct {
        rp_joint_plan plan[RP_JOINT_REPLAYS];
        uint32_t count;
    } kept[2]; /* the best plans by dp_cut's cost (in step_s), rising; [1]: those with shared
                  stages, for which the cost is less accurate */
    rp_joint_answer *out;
} rp_joint;

/* ---- joint_plan.c: the lists ----------------------------------------------------------------- */

/* Inserts a plan into the answer by step_s, unless that is infinite. */
void rp_joint_list(rp_joint_answer *out, const rp_joint_plan *plan);

/* Replaces the first `count` plans of the answer and sorts them in. */
void rp_joint_relist(rp_joint_answer *out, const rp_joint_plan *changed, uint32_t count);

/* Inserts a plan into `kept`. Only the best order of each set of boards stays; otherwise orders of
 * one set would fill the list. */
void rp_joint_keep(rp_joint *j, const rp_joint_plan *plan);

/* The time or the number of rings is used up; then the answer is not complete. */
bool rp_joint_is_over(const rp_joint *j);

/* ---- joint_dp.c: dp_cut for a ring, with the costs of its stages and wires ------------------- */

/* The layers [first, end) fit into the memory of the board at `place`, with `later` stages after
 * them. */
bool rp_joint_fits(const rp_joint *j, uint32_t place, uint32_t first, uint32_t end, uint32_t later);

/* Seconds of the layers for a microbatch, forward and backward; infinite: they do not fit. */
double rp_joint_board_s(const rp_joint *j, uint32_t place, uint32_t first, uint32_t end,
                        uint32_t later);

/* Seconds of all layers for a microbatch, whether they fit or not. */
double rp_joint_whole_s(const rp_joint *j, uint32_t place);

/* Cuts the ring of the plan's boards. step_s gets dp_cut's cost; infinite: no cut is allowed.
 * errors  those of rp_dp_cut() */
rp_err rp_joint_cut_ring(const rp_joint *j, uint32_t share_most, rp_joint_plan *plan) RP_MUST_CHECK;

/* Sets the plan's shares: the samples of each stage among the boards of its group, by speed. False:
 * a stage does not fit its group. */
bool rp_joint_share_out(const rp_joint *j, rp_joint_plan *plan);

/* ---- joint_replay.c -------------------------------------------------------------------------- */

/* The run and the profile with only the plan's boards, its schedule and advance. errors MEMORY */
rp_err rp_joint_run_of(rp_arena *arena, const rp_joint *j, const rp_joint_plan *plan,
                       rp_runfile *run, rp_profile *profile, const char ***names) RP_MUST_CHECK;

/* Replays a plan with a microbatch. found->step_s is infinite if the plan is impossible.
 * errors  those of rp_predict(), except USAGE and FAULT */
rp_err rp_joint_predict(const rp_joint *j, const rp_joint_plan *plan, uint32_t micro,
                        rp_prediction *found) RP_MUST_CHECK;

/* Sets the plan's step_s and limits by a replay; step_s is infinite if its cut does not fit. */
rp_err rp_joint_replay(const rp_joint *j, rp_joint_plan *plan) RP_MUST_CHECK;

/* ---- one decision each ----------------------------------------------------------------------- */

/* joint_cuts.c: replays and lists the three cuts of the present ring, whose boards are in `now`.
 * *dp_fits: some cut fits into the memory. */
rp_err rp_joint_cut_as_it_is(rp_arena *arena, rp_joint *j, const rp_joint_plan *now,
                             bool *dp_fits) RP_MUST_CHECK;
/* joint_cuts.c: replays and lists cuts near the fastest of these. */
rp_err rp_joint_search_near(rp_joint *j, uint32_t boards) RP_MUST_CHECK;
/* joint_shares.c: keeps cuts with shared stages of the present ring and of the rings in `kept`. */
rp_err rp_joint_share_rings(rp_joint *j, const rp_joint_plan *now) RP_MUST_CHECK;
/* joint_shares.c: replays and lists plans near the fastest one with shared stages. */
rp_err rp_joint_search_near_shares(rp_joint *j) RP_MUST_CHECK;
/* joint_cuts.c: puts the cut by speed first, unless another cut of the present ring saves more than
 * RP_JOINT_WORTH, because a second measurement might reverse a smaller difference. */
void rp_joint_prefer_matched(rp_joint_answer *out, uint32_t boards);

/* joint_order.c: searches boards and their order, into `kept`. */
rp_err rp_joint_search_rings(rp_joint *j, const rp_joint_plan *now) RP_MUST_CHECK;

/* joint_sizes.c: sizes by stage and direction, if the run has a planner for them. */
rp_err rp_joint_search_sizes(rp_joint *j) RP_MUST_CHECK;

/* joint_codecs.c: codecs by boundary and direction, if they are open. */
rp_err rp_joint_search_codecs(rp_joint *j) RP_MUST_CHECK;

/* joint_schedules.c: the schedule, if it is open, and `advance: auto`. */
rp_err rp_joint_search_schedules(rp_joint *j) RP_MUST_CHECK;

/* joint_micro.c: the fastest microbatch for the best plan, into the answer. */
rp_err rp_joint_find_micro(rp_joint *j) RP_MUST_CHECK;

/* joint_bound.c: a lower bound for all plans of these boards, in seconds of a step. */
double rp_joint_bound_s(const rp_joint *j);

#endif
