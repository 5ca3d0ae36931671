/* A job: what one agent has to do in one run. The controller writes it as YAML (the parts that
 * people wrote are handed on as they stood), the agent reads it with the same parsers and the same
 * checks.
 *
 *   stage: 1            stages: 4        cut: [conv2, fc1]
 *   sample: [1, 28, 28] classes: 10      target_width: 1
 *   seed: 1             batch: 128       microbatch: 32
 *   epoch_samples: 60000                 steps: 2345   step_first: 0
 *   guard: true         memory_mib: 0       copies: false
 *   memory_bytes: 0     # in the place of memory_mib, where that is not a whole number
 *   loss: cross-entropy optimizer: {...} lr_schedule: {...} schedule: gpipe
 *   advance: 1          # what the host has chosen where the schedule says `advance: auto`
 *   normalise: {mean: [0.13], std: [0.31]} # of inputs that come as bytes, by channel
 *   link: {...}         # emulation of what this agent sends
 *   peers: {host: KEY, boards: [KEY, ..]} # who may connect here
 *   recompute: [0, fc1] # as in the run file; a plan knows better
 *   offload: host       # as in the run file; a plan knows better
 *   throttle: {...}     # emulation of a slower board */
#ifndef RP_STAGE_JOB_H
#define RP_STAGE_JOB_H

#include "codec/codec.h"
#include "codec/pixels.h"
#include "nn/again.h"
#include "nn/cut.h"
#include "nn/loss.h"
#include "nn/model.h"
#include "optim/optim.h"
#include "sched/method.h"
#include "stage/throttle.h"

enum {
    RP_BATCH_MAX = 65536,
    RP_PROBE_NORMS = 3 /* of the error, the stale error and the prediction: stage/probe.c */
};

typedef struct {
    uint32_t stage;
    double share[2]; /* of every step's samples that this board has, [first, end); both 0: all */
    rp_role role;    /* kinds that split stages: which half of the stage's list is done here. The
                        plan's, not in the text */
    rp_cut cut;
    rp_model *model;
    uint32_t fused; /* relus that the layer before does */
    const rp_loss_kind *loss;
    float label_smoothing;
    rp_method method;
    rp_optim optim;
    rp_lr_schedule lr;
    uint64_t seed;
    uint64_t steps;         /* of the whole run */
    uint64_t step_first;    /* where it begins: behind 0 when it goes on from a checkpoint */
    uint64_t epoch_samples; /* training samples in an epoch */
    uint32_t batch, micro;
    const uint32_t (*size)[2]; /* schedules with sizes: samples of a microbatch by stage, forward
                                  and backward; backward 0: those of the forward. NULL = micro */
    uint32_t target_width;     /* f32 per sample where targets are rows */
    uint64_t memory_bytes;     /* limit of device memory, 0 = what the device has */
    rp_throttle throttle;
    rp_pixel_norm pixels;     /* of inputs as uint8 */
    bool guard;               /* skip steps with non-finite gradients */
    bool copies;              /* pieces of copies travel between boards */
    bool recompute;           /* this stage: see again.h */
    rp_offload offload;       /* where stashes lie, but for those that are in use; never auto */
    uint32_t leave_tensors;   /* of a stash, those that wait longest for the backward, which lie
                                 there;   0: all. The plan's, not in the text */
    const bool *group_begins; /* by layer of the model, true where a further group of its stage
                                 does; NULL: nowhere */
    rp_codec codec[2][2]; /* of boundary tensors: [at the upper boundary][of gradients]. The plan's,
                             not in the text */
} rp_job;

/* Everything lives in `arena`. errors USAGE, SHAPE: with the name of the text, line and key */
rp_err rp_job_parse(rp_arena *arena, rp_node *job_root, rp_node *model_root,
                    rp_job *out) RP_MUST_CHECK;

/* What the method asks of the optimiser: prediction, and no global norm where nothing flushes.
 * `node` stands in the message. errors USAGE */
rp_err rp_method_fit(const rp_method *method, rp_optim *optim, const rp_node *node) RP_MUST_CHECK;

/* The shape a schedule needs, for steps [first, end). */
rp_sched_shape rp_job_sched_shape(const rp_job *job, uint64_t step_first, uint64_t step_end);

/* The next op of the stage's list that is done here, in the job's role; false: there is none. */
bool rp_job_next(const rp_job *job, rp_sched_state *list, rp_op *op);

/* What the method asks of the model: sums over a step's microbatches (deferred batch statistics)
 * need a flush, or those of two steps would mix. errors USAGE */
rp_err rp_method_fit_model(const rp_method *method, const rp_model *model,
                           const rp_node *node) RP_MUST_CHECK;

/* Own updates of a replica between a forward and its backward in the steady state, as the order
 * says: the mean over the microbatches of a full step; 0 with a flush. The same on all boards that
 * share the stage. */
double rp_job_staleness(const rp_job *job);

/* Samples of a microbatch of this stage, at most: of a forward, of a backward, of both. */
uint32_t rp_job_forward_samples(const rp_job *job);
uint32_t rp_job_backward_samples(const rp_job *job);
uint32_t rp_job_pass_samples(const rp_job *job);
/* Of a parcel between any two stages. */
uint32_t rp_job_parcel_samples(const rp_job *job);
/* Stages have sizes of their own: the schedule says so. */
bool rp_job_has_sizes(const rp_job *job);
/* A backward has a size of its own, and may take samples of several forwards: so one slot holds all
 * samples that this board has of a step, in the place of one for each forward. */
bool rp_job_holds_steps(const rp_job *job);
uint32_t rp_job_slot_samples(const rp_job *job);
/* The samples of the slot of a training op. */
rp_range rp_job_slot_range(const rp_job *job, const rp_op *op);

bool rp_job_is_last(const rp_job *job);
/* An op of this stage, as its throttle sees it. */
rp_throttled_op rp_job_throttled_op(const rp_job *job, const rp_op *op);
/* Other boards have the rest of the samples. */
bool rp_job_is_shared(const rp_job *job);
/* Samples of a step that this board has; maybe none of a short one. */
rp_range rp_job_own_samples(const rp_job *job, uint32_t step_samples);

/* Who makes the step decision from the gradients before an update. The controller, of all stages,
 * where every step flushes: one small message each way a step. The stage itself, its own, where no
 * step waits for the other stages. */
typedef enum { RP_DECISION_NONE, RP_DECISION_HOST, RP_DECISION_OWN } rp_decision_maker;
rp_decision_maker rp_decision_maker_of(const rp_method *method, const rp_optim *optim, bool guard);

#endif
