/* The joint planner: chooses which boards of a ring train, in which order and with which cut. More
 * boards share the work, but the pipe fills and drains longer, and a slow board or wire may cost
 * more than it contributes. */
#ifndef RP_PLANNING_JOINT_H
#define RP_PLANNING_JOINT_H

#include "base/clock.h"
#include "planning/predict.h"

enum { RP_JOINT_BOARDS_MAX = 128, RP_JOINT_PLANS_MAX = 8, RP_JOINT_WORDS = 600 };

/* How a plan's cut was found. */
typedef enum {
    RP_JOINT_ALIKE,   /* layers divided as if all boards were like the first */
    RP_JOINT_MATCHED, /* layers divided by the speed of each board */
    RP_JOINT_DP_CUT,  /* dp_cut.c */
    RP_JOINT_NEAR     /* one of these, with boundaries moved */
} rp_joint_origin;

typedef struct {
    rp_joint_origin origin;
    uint32_t count;                          /* of boards */
    uint32_t stages;                         /* fewer than boards if some boards share a stage */
    uint32_t place[RP_JOINT_BOARDS_MAX];     /* the boards in order, by place in the run's ring */
    uint32_t first[RP_JOINT_BOARDS_MAX + 1]; /* layers, as rp_cut */
    uint32_t group[RP_JOINT_BOARDS_MAX + 1]; /* boards of each shared stage: as rp_plan_options */
    double share[RP_JOINT_BOARDS_MAX];
    rp_codec codec[RP_JOINT_BOARDS_MAX][2]; /* by boundary; only if plain_s > 0 */
    double plain_s; /* seconds of a step without codecs; 0: codecs were not chosen here */
    double step_s;  /* predicted seconds of a step, with the sizes below */
    uint32_t size[RP_JOINT_BOARDS_MAX][2]; /* samples of a forward and a backward, by stage; only if
                                              even_s > 0 */
    double even_s;     /* seconds of a step with train.microbatch; 0: sizes were not chosen here */
    uint32_t schedule; /* index in the run's schedules; 0: its own */
    double own_s;      /* seconds of a step with the run's own schedule; 0: no other was tried */
    bool has_advance;  /* `advance: auto`: `advance` was chosen here */
    uint32_t advance;
    char limits[160]; /* rp_prediction.limits */
} rp_joint_plan;

typedef struct {
    const rp_runfile *run;
    const rp_profile *profile; /* with the run's boards at their places */
    double delay_s;            /* assumed latency of a wire that was not measured */
    bool boards_open;          /* boards may be left out or reordered */
    bool cuts_open;            /* also replay cuts near the best of the present ring */
    bool codecs_open;          /* links.codec: auto, and no codecs are chosen yet */
    bool schedules_open;       /* plan.schedules: a schedule other than the run's may be chosen */
    uint32_t share_most;       /* most boards of one stage; 0, 1: stages are not shared */
    bool micro_open;           /* also search with other microbatches, and take a faster one */
    const rp_clock *clock;     /* may be NULL without a time limit */
    int64_t limit_ns;          /* 0: none. With a limit the answer is the best plan so far, so it
                                  depends on the machine; without one it does not */
    uint32_t rounds;           /* most rings to examine; 0: 600 */
} rp_joint_ask;

typedef struct {
    bool is_known; /* false: the question is outside the search, see below */
    uint32_t count;
    rp_joint_plan plan[RP_JOINT_PLANS_MAX]; /* by rising step_s: [0] is the best. One for each set
                                               of boards, but several cuts of the present ring */
    rp_joint_plan alike, now;               /* the present ring: RP_JOINT_ALIKE, RP_JOINT_MATCHED */
    double micro_s[RP_JOINT_BOARDS_MAX];    /* seconds that each board of `now` computes for a
                                               microbatch, forward and backward, by place */
    double bound_s;      /* lower bound for all plans: all boards always busy, and the wires */
    uint32_t with_micro; /* microbatch of all plans: train.microbatch, unless micro_open */
    uint32_t micro;      /* fastest microbatch for plan[0] that trains the same model; may be
                            with_micro */
    double micro_step_s; /* seconds of a step of plan[0] with `micro` */
    char schedule[RP_JOINT_WORDS]; /* plan.schedules: a clause with the choice and its reason; "" if
                                      there is no choice */
    uint32_t tried, replays;
    bool is_complete; /* false: a limit ended the search */
} rp_joint_answer;

/* Searches, and keeps the best plans by replay:
 * - The present ring with the cuts ALIKE, MATCHED and DP_CUT. With cuts_open also cuts that differ
 *   from the fastest by one layer at one boundary, and so on from the best of these while that
 *   gains, at most 24.
 * - With boards_open, if no key of the run file names places (hops, codecs that differ) and every
 *   board was measured: all rings of at most five boards. Of more boards it starts from the present
 *   ring, the boards by speed, and both without the slowest boards; then it leaves out a board,
 *   takes one back or exchanges two, while that gains. The best few by dp_cut's cost are replayed.
 * - With share_most > 1 these rings are cut once more with neighbouring boards on one stage, in
 *   proportion to their speeds.
 * - For the best three plans, where the run leaves the choice to it: sizes by stage and direction
 *   (schedule.planner; plans with shared stages get one size on all stages, by halving and doubling
 *   train.microbatch); for each boundary and direction the mildest codec that costs no time (plans
 *   are compared with the strongest one); schedule and advance. Another schedule must save 1 % of a
 *   step, or 5 % if it changes the gradients.
 * - With micro_open the search is repeated with the microbatch that is fastest, while that gains.
 *   Twice as many ops must save 3 %, and an op counts 1 ms more if its handling was not measured.
 * A plan that exceeds the memory of a board is left out; replicas and weight versions count.
 * is_known is false for one board, interleaved or split stages, or a cut that the run file gives.
 * errors  USAGE: no plan fits into the memory, with the numbers; MEMORY; those of rp_predict(),
 *         except USAGE and FAULT, which only leave out the plan */
rp_err rp_joint_search(const rp_joint_ask *ask, rp_joint_answer *out) RP_MUST_CHECK;

/* The plan uses the board at this place of the run's ring. */
bool rp_joint_has(const rp_joint_plan *plan, uint32_t place);

/* Some boards share a stage. */
bool rp_joint_is_shared(const rp_joint_plan *plan);

/* Some boards share a stage, and sizes were chosen. */
bool rp_joint_has_sizes(const rp_joint_plan *plan);

/* All boards of the run in their order, each with a stage. */
bool rp_joint_is_ring(const rp_joint_plan *plan, uint32_t boards);

/* Prints a few lines for people. `name`: of the boards, by place in the run's ring. */
void rp_joint_say(FILE *file, const rp_joint_answer *answer, const char *const *name);

#endif
