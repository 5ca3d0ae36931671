/* The best cut, boards of each stage and boards left out, for boards in a given order. */
#ifndef RP_PLANNING_DP_CUT_H
#define RP_PLANNING_DP_CUT_H

#include "nn/cut.h"

enum { RP_DP_BOARDS_MAX = 256 };

/* Adjacent boards of the order, which share the samples of one stage. */
typedef struct {
    uint32_t first, count;
} rp_dp_group;

/* All costs are seconds of a microbatch, forward and backward, >= 0; infinite or NaN: not allowed.
 * They must depend on their arguments alone.
 * The total to minimise is steady * max(slowest stage or wire, sum of turns_s) + fill * (sum of all
 * stages and wires), with steady and fill >= 0. */
typedef struct {
    uint32_t layers, boards; /* boards: at most RP_DP_BOARDS_MAX */
    uint32_t stages_most;    /* 0: no limit */
    uint32_t share_most;     /* boards of one stage, >= 1 */
    uint32_t skip_most;      /* boards left out between two groups, before the first and after the
                                last */
    double steady, fill;
    /* The layers [first, end) on a group, with `later` stages after it, because a schedule keeps
     * more on earlier stages, which may then exceed the memory. More layers never cost less. */
    double (*stage_s)(const void *context, rp_dp_group group, uint32_t first, uint32_t end,
                      uint32_t later);
    /* The boundary before `layer`, from a group to the next. */
    double (*wire_s)(const void *context, rp_dp_group from, rp_dp_group to, uint32_t layer);
    /* Time for that boundary on a medium that several wires share. NULL: wires share nothing. */
    double (*turns_s)(const void *context, rp_dp_group from, rp_dp_group to, uint32_t layer);
    const void *context;
    uint32_t rounds; /* most rounds of the search over the slowest stage; 0: until it ends */
} rp_dp_ask;

typedef struct {
    double cost, slowest, sum, turns;
    uint32_t stage_count;                 /* 0: no cut is allowed */
    uint32_t first[RP_DP_BOARDS_MAX + 1]; /* layers, as rp_cut */
    rp_dp_group group[RP_DP_BOARDS_MAX];
    uint32_t rounds;
    bool is_exact; /* `rounds` did not end the search; see rp_dp_cut() for shared media */
} rp_dp_answer;

/* Finds the best of all cuts, groups and boards left out. With fill 0 and without turns_s one
 * round is exact. Otherwise each round finds the least sum with a slowest stage below that of the
 * round before. With turns_s there is a second series of rounds, for the least fill * sum + steady
 * * turns; the result is then near the best, and the best if either the slowest stage or the turns
 * always dominate. errors  USAGE: invalid question; MEMORY source  PipeDream's planner (Narayanan
 * and others, SOSP 2019, section 3.1) over a row of boards that differ, by suffixes; the sweep over
 * the slowest stage is that of Alpa (Zheng and others, OSDI 2022, section 5) */
rp_err rp_dp_cut(const rp_dp_ask *ask, rp_dp_answer *out) RP_MUST_CHECK;

#endif
