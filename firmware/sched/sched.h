/* A schedule is one pure function next(state) -> op. Everything else about it (drawing, duration,
 * activations held, weight versions, staleness) is measured by the replay, never written by
 * hand. */
#ifndef RP_SCHED_SCHED_H
#define RP_SCHED_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/config.h"

/* BACKWARD computes both gradients; INPUT the gradient of the stage's input (on the critical path),
 * WEIGHT the gradient of its weights (may be deferred). The numbers are part of traces on the wire,
 * so new kinds are added at the end. */
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
/* The samples that are in both ranges; .count 0: none. */
static inline rp_range rp_range_common(rp_range a, rp_range b) {
    const uint32_t a_end = a.first + a.count;
    const uint32_t b_end = b.first + b.count;
    const uint32_t first = a.first > b.first ? a.first : b.first;
    const uint32_t end = a_end < b_end ? a_end : b_end;
    return (rp_range){first, end > first ? end - first : 0};
}

/* What a node does for a stage that it holds. Zero is the usual case, everything. */
typedef enum {
    RP_ROLE_BOTH,     /* forward, backward and update */
    RP_ROLE_FORWARD,  /* forward only; sends what the backward needs to another node */
    RP_ROLE_BACKWARD, /* backward and update */
    RP_ROLE_AVERAGE,  /* keeps an average of the weights of other nodes */
    RP_ROLES
} rp_role;

/* Whether a node in that role runs such ops of its stage's list. */
bool rp_role_does(rp_role role, rp_op_kind kind);

typedef struct {
    rp_op_kind kind;
    uint32_t stage;   /* of the model: a node may hold several stages */
    rp_role role;     /* role of the node for this stage */
    uint64_t step;    /* optimiser step, from 0 over the whole run */
    rp_range samples; /* for an update, all samples of its step */
    uint32_t micro;   /* index of the range within its step */
} rp_op;

/* "F", "B" (BACKWARD and INPUT), "W", "U", as in the drawings. */
const char *rp_op_letter(rp_op_kind kind);

enum { RP_SPLIT_STAGES_MAX = 32 }; /* for a kind that splits stages: 64 nodes */

/* A ring of `stages` stages, and the stage under consideration. A node holds `chunks` stages: of D
 * nodes, node k holds the stages k, k + D, k + 2 D, ...; with one chunk each node is a stage. A
 * list of ops belongs to the node that holds `stage`. */
typedef struct {
    uint32_t stages, stage;
    uint32_t chunks; /* stages per node; 0 = 1 */
    /* fraction of every step's samples, [first, end); both 0 = all samples */
    double share[2];
    uint64_t step_first, step_end; /* [first, end): a resumed run starts in the middle */
    uint64_t epoch_samples;        /* samples of one epoch; its last step may be short */
    uint32_t batch, micro;         /* samples of a step, most samples of a microbatch */
    /* kinds with `sizes`: most samples of a backward's microbatch; 0: the backward uses the
     * forward's microbatches */
    uint32_t micro_backward;
    /* additional forwards for each hop after this stage, to cover slow links */
    uint32_t advance;
    /* unflushed: a step starts only while fewer than this many steps wait for their update
     * (replicas, 2BW); 0 = unlimited */
    uint32_t steps_open;
    bool drain; /* unflushed: empty pipes at the end of every epoch */
    /* For kinds that split stages, by stage: the forward of step n waits for the update of step n -
     * ahead. 0 = unlimited. */
    uint16_t ahead[RP_SPLIT_STAGES_MAX];
    /* for such kinds: updates from one publication of the weights to the next; 0 = 1 */
    uint32_t publish;
    uint32_t whole; /* for such kinds: bit k: stage k is not split, one node does all of it */
} rp_sched_shape;

/* For the kinds: how many forwards a stage may have open, which defines 1F1B's order. It is D - k,
 * and `advance` more for every later hop (AvgPipe's figure has advance 1: 2 (D - 1 - k) + 1); if
 * `ahead` bounds it, the forwards of `ahead` steps. Memory and windows are not taken from this but
 * counted in the list by rp_sched_in_flight(). */
uint32_t rp_sched_in_flight_max(const rp_sched_shape *shape);
static inline uint32_t rp_sched_ahead(const rp_sched_shape *shape) {
    return shape->stage < RP_SPLIT_STAGES_MAX ? shape->ahead[shape->stage] : 0;
}
uint64_t rp_sched_epoch_steps(const rp_sched_shape *shape); /* ceil(samples / batch) */
uint32_t rp_sched_step_samples(const rp_sched_shape *shape, uint64_t step); /* batch, or the rest */
/* The samples of a step that belong to a share. Adjacent shares meet at the same sample: none is
 * omitted, none occurs twice. */
rp_range rp_sched_share(const double share[2], uint32_t step_samples);
/* Number of microbatches in the shape's share of a step. */
uint32_t rp_sched_micro_count(const rp_sched_shape *shape, uint64_t step);
rp_range rp_sched_micro_range(const rp_sched_shape *shape, uint64_t step, uint32_t micro);
/* Number of backward microbatches. If backwards have their own size, they are counted from the last
 * sample, so that the one with the remainder, microbatch 0, has the first samples and runs last
 * (METHODS 14). */
uint32_t rp_sched_backward_count(const rp_sched_shape *shape, uint64_t step);
rp_range rp_sched_backward_range(const rp_sched_shape *shape, uint64_t step, uint32_t micro);

uint32_t rp_sched_nodes(const rp_sched_shape *shape);
uint32_t rp_sched_node(const rp_sched_shape *shape); /* the node that holds `stage` */

/* The position in a list: only counters, zeroed at the start except `shape`. A copy of it is a copy
 * of the position. */
typedef struct {
    rp_sched_shape shape;
    uint64_t step;      /* the current step (flushed schedules) */
    uint64_t f, b, w;   /* forwards, input gradients and weight gradients issued in their step */
    uint64_t f_step;    /* unflushed: the step of the next forward, `step` or later */
    uint64_t in_flight; /* unflushed: forwards without their backward */
} rp_sched_state;

/* The weights that a forward and its backward see (METHODS 13). W_t: newest at the forward. */
typedef enum {
    RP_WEIGHTS_CURRENT, /* the newest, both times */
    RP_WEIGHTS_STASH,   /* W_t, kept for the backward: PipeDream */
    RP_WEIGHTS_ENTRY,   /* stage 0's newest when the microbatch entered: vertical sync */
    RP_WEIGHTS_DOUBLE,  /* the weights of one step before, both times: 2BW */
    /* forward: W_t predicted for the backward's version; backward: the newest */
    RP_WEIGHTS_PIPEOPTIM,
    RP_WEIGHTS_SPECTRAIN, /* both predicted for the version at the end of the round trip */
    RP_WEIGHTS_XPIPE,     /* as spectrain, by step: its first microbatch predicts for all */
    RP_WEIGHTS_RULES
} rp_weights_rule;
extern const char *const rp_weights_rules[]; /* names of the rules, then NULL */

/* What happens between replicas of the weights after an update (METHODS 8, 9). */
typedef enum { RP_AVERAGE_NONE, RP_AVERAGE_ELASTIC, RP_AVERAGE_REFERENCE } rp_average_rule;

/* A method is an order of ops, a rule for the weights, and an averaging rule; the last two are
 * defaults that a run file may override (sched/method.h). */
typedef struct {
    const char *name;
    const char *manual; /* summary for the manual: "keeps ..." */
    const char *source;
    bool flushed;        /* every step ends with empty pipes and one weight version */
    bool split_backward; /* issues BACKWARD_INPUT and BACKWARD_WEIGHT */
    bool accumulates;    /* unflushed, and designed for several microbatches a step */
    bool interleaves;    /* a node may hold several chunks */
    bool sizes;          /* the size of a microbatch may differ by stage and direction */
    bool splits;         /* forward and backward of a stage may be on different nodes */
    rp_weights_rule weights;
    rp_average_rule average;
    bool (*next)(rp_sched_state *state, rp_op *op); /* false: the run is over */
} rp_sched_kind;

extern const rp_sched_kind *const rp_sched_kinds[];
const rp_sched_kind *rp_sched_find(const char *name);

/* The next op of the shape's own stage: the node's list without the node's other stages. */
bool rp_sched_next_of_stage(const rp_sched_kind *kind, rp_sched_state *state, rp_op *op);

/* Initialises `state` for the first op: sets state->shape, and step = step_first. The shape must
 * have no zero size, and its stage must be in the ring. */
void rp_sched_start(rp_sched_state *state, const rp_sched_shape *shape);

/* For the kinds: an op on one microbatch, and the update that ends the current step (resets the
 * counters and goes to the next step). */
rp_op rp_sched_micro_op(const rp_sched_state *state, rp_op_kind kind, uint64_t step,
                        uint64_t micro);
rp_op rp_sched_backward_op(const rp_sched_state *state, uint64_t step, uint64_t micro);
rp_op rp_sched_end_step(rp_sched_state *state);

/* The `next` function of all unflushed schedules: 1F1B over the whole run, with an update as soon
 * as the last backward of a step is done (METHODS 1). */
bool rp_sched_next_unflushed(rp_sched_state *state, rp_op *op);

/* ---- looking ahead --------------------------------------------------------------------------- */

/* Most microbatches that the shape's stage has in flight, counted in its list: a forward has
 * stashed them and no (input) backward has consumed the stash. 0 for an empty list. */
uint32_t rp_sched_in_flight(const rp_sched_kind *kind, const rp_sched_shape *shape);

/* For such counts: the number of open forwards after an op, `open` before it. A backward closes its
 * forward, or only the backward `half` does; in a schedule with sizes, where a backward may take
 * parts of several forwards, the update closes all. */
uint32_t rp_sched_open_behind(const rp_sched_kind *kind, uint32_t open, const rp_op *op,
                              rp_op_kind half);

/* Staleness of a forward: own updates between it and its backward. `behind` is the state right
 * after the forward. With r replicas only every r-th update counts, those of the forward's own
 * replica. */
uint32_t rp_sched_staleness(const rp_sched_kind *kind, const rp_sched_state *behind,
                            const rp_op *forward, uint32_t replicas);

/* The staleness in the steady state of an endless run, for microbatch `micro` of a full step. */
uint32_t rp_sched_steady_staleness(const rp_sched_kind *kind, const rp_sched_shape *shape,
                                   uint32_t micro, uint32_t replicas);

/* The staleness of the first microbatch of `step`, if the pipes were filled at step_first.
 * Fast, because a settled order depends only on its last steps. 0 if the run has no such step. */
uint32_t rp_sched_staleness_at(const rp_sched_kind *kind, const rp_sched_shape *shape,
                               uint64_t step, uint32_t replicas);

/* Own updates that are complete when a step's last backward begins on stage 0, counted from its
 * first forward and from its first backward on this stage; in the steady state, with every op one
 * unit long (SpecTrain's s). errors MEMORY */
rp_err rp_sched_round_trip(const rp_sched_kind *kind, const rp_sched_shape *shape,
                           uint32_t *from_forward, uint32_t *from_backward) RP_MUST_CHECK;

#endif
