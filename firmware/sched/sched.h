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

typedef struct {
    rp_op_kind kind;
    uint64_t step;    /* optimiser step, from 0 over the whole run */
    rp_range samples; /* of an update: all of its step */
    uint32_t micro;   /* index of the range within its step */
} rp_op;

/* "F", "B" (both kinds of backward), "W", "U", as in the drawings. */
const char *rp_op_letter(rp_op_kind kind);

typedef struct {
    uint32_t stages, stage;
    uint64_t step_first, step_end; /* [first, end): a resumed run begins in the middle */
    uint64_t epoch_samples;        /* samples of one epoch; its last step may be short */
    uint32_t batch, micro;         /* samples a step, samples a microbatch at most */
    uint32_t advance;              /* forwards more per hop behind this stage: covers slow links */
    uint32_t steps_open; /* unflushed: a step is begun when fewer than so many wait for their update
                            (replicas, 2BW); 0 = any number */
    bool drain;          /* unflushed: empty pipes at every epoch's end */
} rp_sched_shape;

/* Forwards that a stage may have open: D - k, and `advance` more for every hop behind it (1F1B;
 * AvgPipe's figure is advance 1: 2 (D - 1 - k) + 1). */
uint32_t rp_sched_in_flight_max(const rp_sched_shape *shape);
uint64_t rp_sched_epoch_steps(const rp_sched_shape *shape); /* ceil(samples / batch) */
uint32_t rp_sched_step_samples(const rp_sched_shape *shape, uint64_t step); /* batch, or the rest */
uint32_t rp_sched_micro_count(const rp_sched_shape *shape, uint64_t step);
rp_range rp_sched_micro_range(const rp_sched_shape *shape, uint64_t step, uint32_t micro);

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

/* What happens between replicas of the weights after an update (METHODS 8, 9). */
typedef enum { RP_AVERAGE_NONE, RP_AVERAGE_ELASTIC, RP_AVERAGE_REFERENCE } rp_average_rule;

/* A method is an order of ops, a rule for the weights, and an average: the last two are defaults
 * that a run file may combine in another way (sched/method.h). */
typedef struct {
    const char *name;
    const char *source;
    bool flushed;        /* every step ends with empty pipes and one weight version */
    bool split_backward; /* issues BACKWARD_INPUT and BACKWARD_WEIGHT */
    bool accumulates;    /* unflushed, and made for several microbatches a step */
    rp_weights_rule weights;
    rp_average_rule average;
    bool (*next)(rp_sched_state *state, rp_op *op); /* false: the run is over */
} rp_sched_kind;

extern const rp_sched_kind *const rp_sched_kinds[];
const rp_sched_kind *rp_sched_find(const char *name);

/* At the first op: state->shape set, step = step_first. A shape with a zero size, or a stage
 * outside of the ring, is a programmer's mistake. */
void rp_sched_start(rp_sched_state *state, const rp_sched_shape *shape);

/* For the kinds: an op on one microbatch, and the update that ends the step in work (counters back
 * to 0, then the next step). */
rp_op rp_sched_micro_op(const rp_sched_state *state, rp_op_kind kind, uint64_t step,
                        uint64_t micro);
rp_op rp_sched_end_step(rp_sched_state *state);

/* `next` of all unflushed schedules: 1F1B over the whole run, an update as soon as a step has its
 * last backward (METHODS 1). */
bool rp_sched_next_unflushed(rp_sched_state *state, rp_op *op);

/* ---- looking ahead --------------------------------------------------------------------------- */

/* Own updates between a forward and its backward: walks the list on from behind the forward. With
 * replicas r only every r-th update counts, those of the forward's own replica. */
uint32_t rp_sched_gap(const rp_sched_kind *kind, const rp_sched_state *behind, const rp_op *forward,
                      uint32_t replicas);

/* The same in the steady state of an endless run, for microbatch `micro` of a full step. */
uint32_t rp_sched_steady_gap(const rp_sched_kind *kind, const rp_sched_shape *shape, uint32_t micro,
                             uint32_t replicas);

/* The same of the first microbatch of `step`, in a run whose pipes were filled at step_first.
 * Quick: a settled order depends on its last steps only. 0 when the run has no such step. */
uint32_t rp_sched_gap_at(const rp_sched_kind *kind, const rp_sched_shape *shape, uint64_t step,
                         uint32_t replicas);

/* Own updates that are over when a step's last backward begins on stage 0, counted from its first
 * forward and from its first backward here; steady state, every op one unit long (SpecTrain's s).
 * errors MEMORY */
rp_err rp_sched_round_trip(const rp_sched_kind *kind, const rp_sched_shape *shape,
                           uint32_t *from_forward, uint32_t *from_backward) RP_MUST_CHECK;

/* ---- replay ---------------------------------------------------------------------------------- */

/* Costs in any one unit; per stage arrays of `stages` entries. send[k]: from stage k to either
 * neighbour, overlapping compute; one parcel at a time in each direction. delay[k]: how long what
 * is sent is on its way besides, while the link takes the next one. A NULL array: forward 1,
 * backward 1 (input and weight 1/2 each), update 0, send 0, delay 0. Costs are per full microbatch
 * and scaled by count / micro, except an update's and a delay. */
typedef struct {
    const double *forward, *backward_input, *backward_weight, *update, *send, *delay;
} rp_sched_costs;

typedef struct {
    uint32_t stage;
    rp_op op;
    double start, end;
} rp_sched_slot;

typedef struct {
    uint32_t in_flight_max;   /* forwards not yet followed by their (input) backward */
    uint32_t weight_debt_max; /* input gradients whose weight gradient is still to come */
    uint32_t stash_max;       /* both together: what was saved by forward and is still needed */
    uint32_t gap_max;         /* own updates between forward and backward of a microbatch */
    uint32_t versions_max;    /* weight versions alive when forward's are kept for backward */
    double busy, end;
} rp_sched_stage_facts;

typedef struct {
    double makespan;
    double bubble; /* 1 - sum of busy / (stages * makespan) */
    rp_sched_stage_facts *stage;
} rp_sched_facts;

/* Runs all stages against each other. shape->stage is ignored, `costs` may be NULL, out->stage lies
 * in `arena`. `visit` (may be NULL) sees every op in order of its start.
 *
 * A forward waits for the activations of all of its samples from the stage before, a backward for
 * its own forward and the gradients of all of its samples from the stage after, a weight gradient
 * for its input gradient. Ranges are matched by sample: stages may cut a step differently. A stash
 * of which the middle was taken counts as two.
 *
 * source  METHODS 10: compute and serial, duplex links; gives (M+D-1)(tF+tB) for GPipe
 * errors  FAULT on deadlock, naming each stage's waiting op, and when a stage leaves work behind;
 *         MEMORY
 */
rp_err rp_sched_replay(rp_arena *arena, const rp_sched_kind *kind, const rp_sched_shape *shape,
                       const rp_sched_costs *costs,
                       void (*visit)(void *context, const rp_sched_slot *slot), void *context,
                       rp_sched_facts *out) RP_MUST_CHECK;

#endif
