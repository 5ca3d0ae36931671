/* Do the boards of a ring train faster where stages, all or some, have their forward on one and
 * their backward on another (schedule pipefb), and which of them has which? */
#ifndef RP_PLANNING_SPLIT_CHOICE_H
#define RP_PLANNING_SPLIT_CHOICE_H

#include "planning/joint.h"

typedef struct {
    const rp_runfile *run;     /* of any schedule */
    const rp_profile *profile; /* with its boards at their places */
    double delay_s;            /* of a wire whose latency nobody knows */
    double without_s;          /* of a step of the best plan of pipedream, which splits no stage; 0:
                                  it is looked for, too */
    const rp_clock *clock;     /* may be NULL where there is no limit of time */
    int64_t limit_ns;          /* 0: none */
    uint32_t rounds;           /* orders that are looked at where all stages are split, and again
                                  where some are, at most; 0: 600 */
} rp_split_ask;

typedef struct {
    bool is_known;                           /* else nothing is known of a split: see below */
    bool is_allowed;                         /* there is a split whose stashes hold up nothing */
    bool pays;                               /* it saves 5 % of a step */
    uint32_t stages;                         /* of the best split: */
    uint32_t whole;                          /* bit k: stage k is not split */
    uint32_t count;                          /* boards */
    uint32_t place[2 * RP_SPLIT_STAGES_MAX]; /* of the ring as it is: [k] has the forward of stage
                                                k, [rp_sched_split_backward()] its backward */
    uint32_t first[RP_SPLIT_STAGES_MAX + 1]; /* layers, as rp_cut */
    uint16_t ahead[RP_SPLIT_STAGES_MAX];
    double step_s, without_s; /* by replay */
    double now_s; /* where the run's schedule is pipefb: its boards as they stand; else 0 */
    char why[320];
    uint32_t tried;
} rp_split_answer;

/* From two boards on, for one stage to half as many as there are boards, each of them split, and
 * then for as many stages as let all boards have work where only some are split: those whose
 * backwards take longest beside their forwards have forwards, and from there on by exchanging two
 * boards, or which stages are split, as long as that shortens what all others wait for. Where the
 * run says which stages are split, only boards are exchanged. The best of each number of stages is
 * replayed, with the fewest steps ahead that hold up nothing. A split whose stash takes longer on
 * its wire than any of its boards computes is never the answer. Not known: one board, a cut that is
 * given, hops or codecs by place, shapes that pipefb refuses (why says it). errors  MEMORY; those
 * of rp_joint_search() but USAGE */
rp_err rp_split_choose(const rp_split_ask *ask, rp_split_answer *out) RP_MUST_CHECK;

/* In a few lines, for people. `name`: of the boards as the ring is. */
void rp_split_say(FILE *file, const rp_split_answer *answer, const char *const *name);

#endif
