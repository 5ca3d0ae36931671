/* Private to the joint search: joint.c and the files joint_*.c that it calls. */
#ifndef RP_PLANNING_JOINT_OWN_H
#define RP_PLANNING_JOINT_OWN_H

#include "planning/joint.h"
#include "planning/least_memory.h"
#include "planning/sums.h"

enum { RP_JOINT_REPLAYS = 6, RP_JOINT_SIZED = 3 };
/* Of a step, that another cut of the same ring saves where it is taken: less is noise. */
#define RP_JOINT_WORTH 0.01

/* The ring as it is, summed up: what the layers in front of one cost. */
typedef struct {
    const rp_joint_ask *ask;
    uint32_t layers, micros, rounds;
    int64_t start_ns;
    rp_sums sums;
    uint32_t *statistics;  /* [layers + 1]: layers in front with statistics of a batch */
    double *limit;         /* [boards]: bytes that each may use, 0: not known */
    rp_codec (*strong)[2]; /* [boards]: the strongest codecs, where they are open; NULL */
    uint64_t medium;       /* that wires of more than one pair of boards take turns on; 0: none */
    double *bytes;         /* [layers]: that cross in front of it, one way; infinite: too much */
    rp_least_memory memory;
    struct {
        rp_joint_plan plan[RP_JOINT_REPLAYS];
        uint32_t count;
    } kept[2]; /* the best by dp-cut, rising, step_s is its cost; [1]: of those with shared stages,
                  whose cost is nearer to a guess */
    rp_joint_answer *out;
} rp_joint;

/* ---- joint_plan.c: the lists ----------------------------------------------------------------- */

/* Into the answer, by step_s; one that can not be goes nowhere. */
void rp_joint_list(rp_joint_answer *out, const rp_joint_plan *plan);

/* The first `count` plans of the answer have changed: each to where its time puts it now. */
void rp_joint_list_anew(rp_joint_answer *out, const rp_joint_plan *changed, uint32_t count);

/* For a replay. Of each set of boards the best order, shared or not: else the last ones would be
 * orders of one. */
void rp_joint_keep(rp_joint *j, const rp_joint_plan *plan);

/* The time is over, or enough rings were tried; the answer is then not complete. */
bool rp_joint_is_over(const rp_joint *j);

/* ---- joint_dp.c: dp-cut, and what stages and wires take for it ------------------------------- */

bool rp_joint_fits(const rp_joint *j, uint32_t place, uint32_t first, uint32_t end,
                   uint32_t behind);

/* Of a microbatch, both ways; infinite: the layers do not fit. */
double rp_joint_board_s(const rp_joint *j, uint32_t place, uint32_t first, uint32_t end,
                        uint32_t behind);

/* All layers, whether they fit or not. */
double rp_joint_whole_s(const rp_joint *j, uint32_t place);

/* step_s infinite: no cut is allowed. errors  those of rp_dp_cut() */
rp_err rp_joint_cut_ring(const rp_joint *j, uint32_t share_most, rp_joint_plan *plan) RP_MUST_CHECK;

/* Of a plan whose stages and groups are there: the samples of each group among its boards. False:
 * some group can not have its stage. */
bool rp_joint_share_out(const rp_joint *j, rp_joint_plan *plan);

/* ---- joint_replay.c -------------------------------------------------------------------------- */

/* The run and the profile as if only the plan's boards were there. errors  MEMORY */
rp_err rp_joint_run_of(rp_arena *arena, const rp_joint *j, const rp_joint_plan *plan,
                       rp_runfile *run, rp_profile *profile, const char ***names) RP_MUST_CHECK;

/* step_s infinite: the plan can not be. errors  those of rp_predict() but USAGE and FAULT */
rp_err rp_joint_predict(const rp_joint *j, const rp_joint_plan *plan, uint32_t micro,
                        rp_prediction *found) RP_MUST_CHECK;

/* The same into the plan, where its cut fits. */
rp_err rp_joint_replay(const rp_joint *j, rp_joint_plan *plan) RP_MUST_CHECK;

/* ---- one decision each ----------------------------------------------------------------------- */

/* joint_cuts.c: the ring as it is by three cuts, replayed and listed. `now` has its boards.
 * `dp_fits`: some cut fits into their memory. */
rp_err rp_joint_cut_as_it_is(rp_arena *arena, rp_joint *j, const rp_joint_plan *now,
                             bool *dp_fits) RP_MUST_CHECK;
/* joint_cuts.c: and those near the fastest of them. */
rp_err rp_joint_search_near(rp_joint *j, uint32_t boards) RP_MUST_CHECK;
/* joint_shares.c: the ring as it is, and the best in `kept`, with stages that are shared, into
 * `kept`. */
rp_err rp_joint_share_rings(rp_joint *j, const rp_joint_plan *now) RP_MUST_CHECK;
/* joint_shares.c: those near the fastest of the answer's that share stages. */
rp_err rp_joint_search_near_shares(rp_joint *j) RP_MUST_CHECK;
/* joint_cuts.c: what a cut saves too little by is behind the cut by speed: measured twice, it may
 * be the other way round. */
void rp_joint_prefer_matched(rp_joint_answer *out, uint32_t boards);

/* joint_order.c: which boards in which order, into `kept`. */
rp_err rp_joint_search_rings(rp_joint *j, const rp_joint_plan *now) RP_MUST_CHECK;

/* joint_sizes.c: by stage and direction, where the run's planner chooses them. */
rp_err rp_joint_search_sizes(rp_joint *j) RP_MUST_CHECK;

/* joint_codecs.c: by boundary and direction, where they are open. */
rp_err rp_joint_search_codecs(rp_joint *j) RP_MUST_CHECK;

/* joint_schedules.c: of the run's schedules, where they are open; the advance that is left to us.
 */
rp_err rp_joint_search_schedules(rp_joint *j) RP_MUST_CHECK;

/* joint_micro.c: train.microbatch with which the best plan would be fastest. */
rp_err rp_joint_find_micro(rp_joint *j) RP_MUST_CHECK;

/* joint_bound.c: no plan of these boards takes less. */
double rp_joint_bound_s(const rp_joint *j);

#endif
