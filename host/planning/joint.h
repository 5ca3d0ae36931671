/* Which boards of a ring, in which order round it, and with which cut, would train fastest: more
 * boards share the work, and fill and drain longer; a slow one, or one behind a slow wire, may cost
 * more than it gives. */
#ifndef RP_PLANNING_JOINT_H
#define RP_PLANNING_JOINT_H

#include "base/clock.h"
#include "planning/predict.h"

enum { RP_JOINT_BOARDS_MAX = 128, RP_JOINT_PLANS_MAX = 8, RP_JOINT_WORDS = 600 };

/* Who made a plan. */
typedef enum {
    RP_JOINT_ALIKE,   /* the layers shared out as if boards were alike */
    RP_JOINT_MATCHED, /* .. by the speed of each */
    RP_JOINT_DP_CUT,  /* dp_cut.c */
    RP_JOINT_NEAR     /* one of them, with a layer or more on the other side of a boundary */
} rp_joint_origin;

typedef struct {
    rp_joint_origin origin;
    uint32_t count;  /* of boards */
    uint32_t stages; /* as many, or fewer where boards next to each other share some */
    uint32_t place[RP_JOINT_BOARDS_MAX];     /* of the ring as it is, in the order of this one */
    uint32_t first[RP_JOINT_BOARDS_MAX + 1]; /* layers, as rp_cut */
    uint32_t group[RP_JOINT_BOARDS_MAX + 1]; /* of stages that are shared: as rp_plan_options */
    double share[RP_JOINT_BOARDS_MAX];
    rp_codec codec[RP_JOINT_BOARDS_MAX][2]; /* by boundary, where they are chosen: .. */
    double plain_s; /* .. and what a step takes without any; 0: they are not */
    double step_s;  /* by replay, with the sizes below */
    uint32_t size[RP_JOINT_BOARDS_MAX][2]; /* samples forward and backward of its stages, where the
                                              run's planner chooses them (schedule.planner) .. */
    double even_s;     /* .. and what a step takes with train.microbatch on all; 0: not chosen */
    uint32_t schedule; /* of the run's schedules; 0: its own, or there are no others */
    double own_s;      /* what a step takes with the run's own; 0: no other one was tried */
    bool has_advance;  /* it is left to us (advance: auto), and was chosen: .. */
    uint32_t advance;  /* .. that */
    char limits[160];
} rp_joint_plan;

typedef struct {
    const rp_runfile *run;
    const rp_profile *profile; /* with its boards at their places */
    double delay_s;            /* of a wire whose latency nobody knows */
    bool boards_open;          /* boards may be left out, and their order is another one */
    bool cuts_open;            /* more cuts of the ring as it is are replayed: see below */
    bool codecs_open;          /* links.codec: auto, and nothing is chosen yet */
    bool schedules_open;       /* plan.schedules: another one than the run's own may be taken */
    uint32_t share_most;       /* boards of one stage; 0, 1: none share any */
    bool micro_open;           /* train.microbatch is another one where that is faster: see below */
    const rp_clock *clock;     /* may be NULL when there is no limit of time */
    int64_t limit_ns;          /* 0: none. What is best until then is the answer, then another one
                                  on another machine; without it the same question has the same */
    uint32_t rounds;           /* rings that are looked at, at most; 0: 600 */
} rp_joint_ask;

typedef struct {
    bool is_known; /* else nothing was found: see below */
    uint32_t count;
    rp_joint_plan plan[RP_JOINT_PLANS_MAX]; /* by step_s, rising: [0] is the best, then the next
                                               best; of each set of boards one, but for the ring as
                                               it is, of which there are several cuts */
    rp_joint_plan alike, now; /* of the ring as it is: RP_JOINT_ALIKE, RP_JOINT_MATCHED */
    double micro_s[RP_JOINT_BOARDS_MAX]; /* of `now`, by place: of a microbatch, both ways */
    double bound_s;      /* no plan takes less: all the work on all boards at once, and a wire */
    uint32_t with_micro; /* train.microbatch of all plans: the run's, but with micro_open */
    uint32_t micro;      /* with which `plan[0]` would be fastest, where the model is the same with
                            another; else `with_micro` */
    double micro_step_s;
    char schedule[RP_JOINT_WORDS]; /* of plan.schedules: which was taken and why, as a sentence; "":
                                      none but the run's own may be */
    uint32_t tried, replays;
    bool is_complete; /* it ended by itself, not by a limit */
} rp_joint_answer;

/* The ring as it is by three cuts: as if boards were alike, by speed, and dp-cut's; with cuts open
 * also those that differ from the fastest by one layer at one boundary, and so on from the fastest
 * of these, as long as that gains and 24 times at most. With boards open, where the run says
 * nothing of places (hops, codecs that differ) and every board was measured: all rings of up to
 * five boards; of more, from the ring as it is, those by speed, and those without its slowest ones
 * on, by leaving out one, taking one back and exchanging two, as long as that gains. Where stages
 * may be shared, the ring as it is and the best few by dp-cut's cost are cut once more, with
 * boards next to each other on one stage, in proportion to their speeds. The best few are
 * replayed. A cut that needs more memory than its boards have is none. Where the run's planner
 * chooses sizes by stage and direction, it is asked for the best three plans, and their order is
 * that with these sizes; where boards share stages all stages have the same ones, found by replay
 * from train.microbatch on, by halving and doubling. With codecs open plans are replayed with the
 * strongest that may be chosen, and for the best three each boundary and direction gets the
 * mildest that costs no time. With schedules open, or with `advance: auto`, the best three are
 * replayed with each schedule that the run file allows and with the advance that it would have
 * there; the fastest is taken where it saves 1 % of a step, or 5 % where it changes what is
 * trained. Replicas and versions of weights count in the memory. With micro_open the search begins
 * anew with the microbatch that would be fastest, as long as that gains; there twice as many ops
 * have to win 3 %, and where the profile does not say what handling an op costs each counts as 1
 * ms more. Not known: one board alone, interleaved or split stages, a cut that is given. errors
 * USAGE: nothing fits into the memory, with the board and the numbers; MEMORY; those of
 * rp_predict() but USAGE and FAULT, with which a plan is left out */
rp_err rp_joint_search(const rp_joint_ask *ask, rp_joint_answer *out) RP_MUST_CHECK;

/* The board at this place of the ring as it is has a stage. */
bool rp_joint_has(const rp_joint_plan *plan, uint32_t place);

/* Boards share stages of it. */
bool rp_joint_is_shared(const rp_joint_plan *plan);

/* Boards share stages of it, and its sizes were chosen with it. */
bool rp_joint_has_sizes(const rp_joint_plan *plan);

/* It has all boards of the run in their order, each with a stage. */
bool rp_joint_is_ring(const rp_joint_plan *plan, uint32_t boards);

/* In a few lines, for people. `name`: of the boards as the ring is. */
void rp_joint_say(FILE *file, const rp_joint_answer *answer, const char *const *name);

#endif
