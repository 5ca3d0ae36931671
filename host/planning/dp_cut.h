/* Cut, boards of each stage and boards that are left out, for boards in a given order: exact. */
#ifndef RP_PLANNING_DP_CUT_H
#define RP_PLANNING_DP_CUT_H

#include "nn/cut.h"

enum { RP_DP_BOARDS_MAX = 256 };

/* Boards next to each other in the order, which share the samples of one stage. */
typedef struct {
    uint32_t first, count;
} rp_dp_group;

/* Costs are seconds of a microbatch, both ways, >= 0; infinite (or no number): that can not be.
 * They depend on their arguments alone. */
typedef struct {
    uint32_t layers, boards; /* boards: RP_DP_BOARDS_MAX at most */
    uint32_t stages_most;    /* 0: as many as there can be */
    uint32_t share_most;     /* boards of one stage, >= 1 */
    uint32_t skip_most;      /* boards left out between two groups, in front and behind */
    double steady,
        fill; /* what is minimised: steady * the slowest stage or wire, or what they share
                 where that is busy for longer, + fill * the sum of all of them. >= 0 */
    /* The layers [first, end) on a group, with so many stages behind it: their number says how much
     * a schedule keeps, and with it what fits into the memory. More layers never cost less. */
    double (*stage_s)(const void *context, rp_dp_group group, uint32_t first, uint32_t end,
                      uint32_t behind);
    /* What crosses in front of `layer`, from a group to the next. */
    double (*wire_s)(const void *context, rp_dp_group from, rp_dp_group to, uint32_t layer);
    /* So long it keeps busy what several wires take turns on; their sum is one more thing that may
     * be the slowest. NULL: they share nothing. */
    double (*turns_s)(const void *context, rp_dp_group from, rp_dp_group to, uint32_t layer);
    const void *context;
    uint32_t rounds; /* at most, of the search over the slowest stage; 0: until it ends */
} rp_dp_ask;

typedef struct {
    double cost, slowest, sum, turns;
    uint32_t stage_count;                 /* 0: nothing is allowed, or fits into the memory */
    uint32_t first[RP_DP_BOARDS_MAX + 1]; /* layers, as rp_cut */
    rp_dp_group group[RP_DP_BOARDS_MAX];
    uint32_t rounds;
    bool is_exact; /* it did not end by `rounds` */
} rp_dp_answer;

/* The best of all cuts, groups and boards left out. Exact with fill 0 in one round; else each round
 * finds the least sum with a slowest stage below that of the round before. Where wires take turns
 * there are as many rounds again, which find the least of fill * sum + steady * turns: near the
 * best, and it where one of both sides alone decides. errors  USAGE: the question makes no sense;
 * MEMORY source  PipeDream's planner (Narayanan and others, SOSP 2019, section 3.1) over a row of
 * boards that differ, by suffixes; the sweep over the slowest stage is that of Alpa (Zheng and
 *         others, OSDI 2022, section 5) */
rp_err rp_dp_cut(const rp_dp_ask *ask, rp_dp_answer *out) RP_MUST_CHECK;

#endif
