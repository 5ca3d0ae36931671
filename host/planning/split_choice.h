/* Finds out whether the boards of a ring train faster with split stages (schedule pipefb), which
 * stages to split, and which board gets which forward or backward. */
#ifndef RP_PLANNING_SPLIT_CHOICE_H
#define RP_PLANNING_SPLIT_CHOICE_H

#include "planning/joint.h"

typedef struct {
    const rp_runfile *run;     /* with any schedule */
    const rp_profile *profile; /* with the run's boards at their places */
    double delay_s;            /* assumed latency of a wire that was not measured */
    double without_s;          /* seconds of a step of the best plan of pipedream, which splits no
                                  stage; 0: search for it */
    const rp_clock *clock;     /* may be NULL without a time limit */
    int64_t limit_ns;          /* 0: none */
    uint32_t rounds; /* most orders to examine with all stages split, and as many with some
                        stages split; 0: 600 */
} rp_split_ask;

typedef struct {
    bool is_known;   /* false: the question is outside the search, see below */
    bool is_allowed; /* a split exists whose stashes block nothing */
    bool pays;       /* it saves 5 % of a step */
    uint32_t stages; /* the best split, up to `ahead`: */
    uint32_t whole;  /* bit k: stage k is not split */
    uint32_t count;  /* boards */
    uint32_t place[2 * RP_SPLIT_STAGES_MAX]; /* of the run's ring: [k] has the forward of stage k,
                                                [rp_sched_split_backward()] its backward */
    uint32_t first[RP_SPLIT_STAGES_MAX + 1]; /* layers, as rp_cut */
    uint16_t ahead[RP_SPLIT_STAGES_MAX];
    double step_s, without_s; /* by replay */
    double now_s;             /* the boards in their present order; 0: the run's schedule is not
                                 pipefb */
    char why[320];
    uint32_t tried;
} rp_split_answer;

/* Tries splits of all stages, for 1 stage to half the number of boards, then splits of some stages,
 * for every number of stages that gives each board work. The first order gives forwards to the
 * boards with the slowest backwards relative to their forwards. Then it exchanges two boards, or
 * moves a split to another stage, while that shortens the longest part of a step. If the run file
 * says which stages are split, only boards are exchanged. The best order of each number of stages
 * is replayed with the smallest `ahead` that blocks nothing. A split is not allowed if a stash
 * occupies its wire longer than any board computes. is_known is false for one board, a cut that the
 * run file gives, hops or codecs by place, and shapes that pipefb refuses (see `why`). errors
 * MEMORY; those of rp_joint_search(), except USAGE */
rp_err rp_split_choose(const rp_split_ask *ask, rp_split_answer *out) RP_MUST_CHECK;

/* Prints a few lines for people. `name`: of the boards, by place in the run's ring. */
void rp_split_say(FILE *file, const rp_split_answer *answer, const char *const *name);

#endif
