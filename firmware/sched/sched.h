/* A schedule is one pure function next(state) -> op. Everything else about it (drawing, duration,
 * activations held, weight versions, staleness) is measured by one replay, never typed. */
#ifndef RP_SCHED_SCHED_H
#define RP_SCHED_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/config.h"

/* BACKWARD does both halves; INPUT is the gradient of the stage's input (on the critical path),
 * WEIGHT the gradient of its weights (may be moved later). The numbers go over the wire in traces:
 * a new kind comes last. */
typedef enum {
    RP_OP_FORWARD,
    RP_OP_BACKWARD,
    RP_OP_BACKWARD_INPUT,
    RP_OP_BACKWARD_WEIGHT,
    RP_OP_UPDATE,
    RP_OP_KINDS
} rp_op_kind;

/* Samples [first, first + count) of a step. A microbatch is a range, not an index: sizes may differ
 * by stage and direction (UMPIPE), and the last one of a step may be short. */
typedef struct {
    uint32_t first, count;
} rp_range;
/* The samples that are in both; .count 0: none. */
static inline rp_range rp_range_common(rp_range a, rp_range b) {
    const uint32_t a_end = a.first + a.count;
    const uint32_t b_end = b.first + b.count;
    const uint32_t first = a.first > b.first ? a.first : b.first;
    const uint32_t end = a_end < b_end ? a_end : b_end;
    return (rp_range){first, end > first ? end - first : 0};
}

/* What a node does with a stage that it holds. Zero is the usual case: all of it. */
typedef enum {
    RP_ROLE_BOTH,     /* forward, backward and update */
    RP_ROLE_FORWARD,  /* forward only: what backward needs is sent to another node */
    RP_ROLE_BACKWARD, /* backward and update */
    RP_ROLE_AVERAGE,  /* keeps an average of the weights of others */
    RP_ROLES
} rp_role;

/* Does a node in that role do such ops of its stage's list? */
bool rp_role_does(rp_role role, rp_op_kind kind);

typedef struct {
    rp_op_kind kind;
    uint32_t stage;   /* of the model: a node may hold several */
    rp_role role;     /* in which the node holds the stage */
    uint64_t step;    /* optimiser step, from 0 over the whole run */
    rp_range samples; /* of an update: all of its step */
    uint32_t micro;   /* index of the range within its step */
} rp_op;

/* "F", "B" (both kinds of backward), "W", "U", as in the drawings. */
const char *rp_op_letter(rp_op_kind kind);

enum { RP_SPLIT_STAGES_MAX = 32 }; /* of a kind that splits them: 64 nodes */

/* `stages` of the model, and the one that is asked about. A node holds `chunks` of them: of D
 * nodes, node k holds the stages k, k + D, k + 2 D ..; with one chunk a node is a stage. A list of
 * ops is that of the node which holds `stage`. */
typedef struct {
    uint32_t stages, stage;
    uint32_t chunks;               /* 0 = 1 */
    double share[2];               /* of every step's samples, [first, end); both 0 = all of them */
    uint64_t step_first, step_end; /* [first, end): a resumed run begins in the middle */
    uint64_t epoch_samples;        /* samples of one epoch; its last step may be short */
    uint32_t batch, micro;         /* samples a step, samples a microbatch at most */
    uint32_t micro_backward;       /* kinds with `sizes`: the same of a backward; 0: the backward
                                      takes the microbatches of the forward */
    uint32_t advance;              /* forwards more per hop behind this stage: covers slow links */
    uint32_t steps_open; /* unflushed: a step is begun when fewer than so many wait for their update
                            (replicas, 2BW); 0 = any number */
    bool drain;          /* unflushed: empty pipes at every epoch's end */
    /* Kinds that split stages, by stage: the forward of step n waits for the update of step
     * n - ahead. 0 = no such bound. */
    uint16_t ahead[RP_SPLIT_STAGES_MAX];
    uint32_t publish; /* of them: updates from one publication of the weights to the next; 0 = 1 */
    uint32_t whole;   /* of them: bit k: stage k is not split, one node does all of it */
} rp_sched_shape;

/* For the kinds: 1F1B's definition of its order. Forwards that a stage may have open: D - k, and
 * `advance` more for every hop behind it (AvgPipe's figure is advance 1: 2 (D - 1 - k) + 1); where
 * `ahead` bounds it, those of so many steps. Memory and windows are counted in the list itself,
 * rp_sched_in_flight(). */
uint32_t rp_sched_in_flight_max(const rp_sched_shape *shape);
static inline uint32_t rp_sched_ahead(const rp_sched_shape *shape) {
    return shape->stage < RP_SPLIT_STAGES_MAX ? shape->ahead[shape->stage] : 0;
}
uint64_t rp_sched_epoch_steps(const rp_sched_shape *shape); /* ceil(samples / batch) */
uint32_t rp_sched_step_samples(const rp_sched_shape *shape, uint64_t step); /* batch, or the rest */
/* The samples of a step of so many that belong to a share. Shares that meet at a number meet at a
 * sample: nothing is left out, nothing comes twice. */
rp_range rp_sched_share(const double share[2], uint32_t step_samples);
/* Microbatches of the shape's share of a step. */
uint32_t rp_sched_micro_count(const rp_sched_shape *shape, uint64_t step);
rp_range rp_sched_micro_range(const rp_sched_shape *shape, uint64_t step, uint32_t micro);
/* The same of backwards. Where they have a size of their own, they are counted off from the last
 * sample, so that the one with the remainder, microbatch 0, has the first samples and comes last
 * (METHODS 14). */
uint32_t rp_sched_backward_count(const rp_sched_shape *shape, uint64_t step);
rp_range rp_sched_backward_range(const rp_sched_shape *shape, uint64_t step, uint32_t micro);

uint32_t rp_sched_nodes(const rp_sched_shape *shape);
uint32_t rp_sched_node(const rp_sched_shape *shape); /* that holds `stage` */

/* Counters only; zeroed at the start but for `shape`. Copying it copies the schedule's position. */
typedef struct {
    rp_sched_shape shape;
    uint64_t step;      /* the step in work (flushed schedules) */
    uint64_t f, b, w;   /* forwards, input gradients, weight gradients issued in their step */
    uint64_t f_step;    /* unflushed: the step that forwards are at, `step` or a later one */
    uint64_t in_flight; /* unflushed: forwards without their backward */
} rp_sched_state;

/* Which weights a forward and its backward see (METHODS 13). W_t: newest at the forward. */
typedef enum {
    RP_WEIGHTS_CURRENT,   /* the newest, both times */
    RP_WEIGHTS_STASH,     /* W_t, kept for the backward: PipeDream */
    RP_WEIGHTS_ENTRY,     /* the newest of stage 0 when the microbatch entered: vertical sync */
    RP_WEIGHTS_DOUBLE,    /* those of one step before, both times: 2BW */
    RP_WEIGHTS_PIPEOPTIM, /* W_t moved to the backward's version; the newest in the backward */
    RP_WEIGHTS_SPECTRAIN, /* both moved to the version at the end of the round trip */
    RP_WEIGHTS_XPIPE,     /* the same by step: its first microbatch predicts for the others */
    RP_WEIGHTS_RULES
} rp_weights_rule;
extern const char *const rp_weights_rules[]; /* their words, NULL behind the last */

/* What happens between replicas of the weights after an update (METHODS 8, 9). */
typedef enum { RP_AVERAGE_NONE, RP_AVERAGE_ELASTIC, RP_AVERAGE_REFERENCE } rp_average_rule;

/* A method is an order of ops, a rule for the weights, and an average: the last two are defaults
 * that a run file may combine in another way (sched/method.h). */
typedef struct {
    const char *name;
    const char *manual; /* what it does, for the manual: "keeps ..." */
    const char *source;
    bool flushed;        /* every step ends with empty pipes and one weight version */
    bool split_backward; /* issues BACKWARD_INPUT and BACKWARD_WEIGHT */
    bool accumulates;    /* unflushed, and made for several microbatches a step */
    bool interleaves;    /* a node may hold several chunks */
    bool sizes;          /* a microbatch has a size by stage and direction */
    bool splits;         /* forward and backward of a stage may be on different nodes */
    rp_weights_rule weights;
    rp_average_rule average;
    bool (*next)(rp_sched_state *state, rp_op *op); /* false: the run is over */
} rp_sched_kind;

extern const rp_sched_kind *const rp_sched_kinds[];
const rp_sched_kind *rp_sched_find(const char *name);

/* The next op of the shape's own stage: the node's list without its other stages. */
bool rp_sched_next_of_stage(const rp_sched_kind *kind, rp_sched_state *state, rp_op *op);

/* At the first op: state->shape set, step = step_first. A shape with a zero size, or a stage
 * outside of the ring, is a programmer's mistake. */
void rp_sched_start(rp_sched_state *state, const rp_sched_shape *shape);

/* For the kinds: an op on one microbatch, and the update that ends the step in work (counters back
 * to 0, then the next step). */
rp_op rp_sched_micro_op(const rp_sched_state *state, rp_op_kind kind, uint64_t step,
                        uint64_t micro);
rp_op rp_sched_backward_op(const rp_sched_state *state, uint64_t step, uint64_t micro);
rp_op rp_sched_end_step(rp_sched_state *state);

/* `next` of all unflushed schedules: 1F1B over the whole run, an update as soon as a step has its
 * last backward (METHODS 1). */
bool rp_sched_next_unflushed(rp_sched_state *state, rp_op *op);

/* ---- looking ahead --------------------------------------------------------------------------- */

/* Microbatches that the shape's stage has in flight at most, counted in its list: what a forward
 * has saved and no (input) backward has taken. 0 for a list without ops. */
uint32_t rp_sched_in_flight(const rp_sched_kind *kind, const rp_sched_shape *shape);

/* For such counts: forwards that are open behind an op, of `open` in front of it. A backward closes
 * its forward, or the half of it that is named; with sizes, where one may take a part of several,
 * the update closes all. */
uint32_t rp_sched_open_behind(const rp_sched_kind *kind, uint32_t open, const rp_op *op,
                              rp_op_kind half);

/* Own updates between a forward and its backward: walks the list on from behind the forward. With
 * replicas r only every r-th update counts, those of the forward's own replica. */
uint32_t rp_sched_staleness(const rp_sched_kind *kind, const rp_sched_state *behind,
                            const rp_op *forward, uint32_t replicas);

/* The same in the steady state of an endless run, for microbatch `micro` of a full step. */
uint32_t rp_sched_steady_staleness(const rp_sched_kind *kind, const rp_sched_shape *shape,
                                   uint32_t micro, uint32_t replicas);

/* The same of the first microbatch of `step`, in a run whose pipes were filled at step_first.
 * Quick: a settled order depends on its last steps only. 0 when the run has no such step. */
uint32_t rp_sched_staleness_at(const rp_sched_kind *kind, const rp_sched_shape *shape,
                               uint64_t step, uint32_t replicas);

/* Own updates that are over when a step's last backward begins on stage 0, counted from its first
 * forward and from its first backward here; steady state, every op one unit long (SpecTrain's s).
 * errors MEMORY */
rp_err rp_sched_round_trip(const rp_sched_kind *kind, const rp_sched_shape *shape,
                           uint32_t *from_forward, uint32_t *from_backward) RP_MUST_CHECK;

#endif
