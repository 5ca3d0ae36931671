/* A job: the part of one agent in one run. The controller writes it as YAML and copies the parts
 * that the user wrote unchanged; the agent reads it with the parsers and checks of the run file.
 *
 *   stage: 1            stages: 4        cut: [conv2, fc1]
 *   sample: [1, 28, 28] classes: 10      target_width: 1
 *   sample_type: i32    tokens: 65       # for samples of token ids
 *   times: [16, 24]     # lengths of shorter steps, see rp_model_add_times()
 *   seed: 1             batch: 128       microbatch: 32
 *   epoch_samples: 60000                 steps: 2345   step_first: 0
 *   anchor: {mu: 0.1, drift: false} # as train.anchor; missing: none
 *   guard: true         memory_mib: 0    copies: false
 *   memory_bytes: 0     # instead of memory_mib, if that would not be a whole number
 *   loss: cross-entropy optimizer: {...} lr_schedule: {...} schedule: gpipe
 *   advance: 1          # the host's choice, if the schedule has `advance: auto`
 *   normalise: {mean: [0.13], std: [0.31]} # of inputs that arrive as bytes, by channel
 *   link: {...}         # emulation of this agent's links
 *   peers: {host: KEY, boards: [KEY, ..]} # keys that may connect to this agent
 *   storage: bf16       # train.storage.activations; missing: f32
 *   recompute: [0, fc1] # as in the run file; a plan overrides it
 *   offload: host       # as in the run file; a plan overrides it
 *   throttle: {...}     # emulation of a slower board */
#ifndef RP_STAGE_JOB_H
#define RP_STAGE_JOB_H

#include "codec/codec.h"
#include "codec/pixels.h"
#include "nn/cut.h"
#include "nn/loss.h"
#include "nn/model.h"
#include "nn/recompute.h"
#include "optim/optim.h"
#include "sched/method.h"
#include "stage/throttle.h"

enum {
    RP_BATCH_MAX = 65536,
    RP_PROBE_NORMS = 3 /* prediction error, stale error, prediction: see stage/probe.c */
};

typedef struct {
    uint32_t stage;
    /* The part of every step's samples that this board has, as fractions [first, end); {0, 0}:
     * all. */
    double share[2];
    /* For schedules that split stages: the half that this board has. From the plan, not in the
     * text. */
    rp_role role;
    rp_cut cut;
    rp_model *model;
    uint32_t fused; /* number of relus that are computed by the layer before them */
    const rp_loss_kind *loss;
    rp_loss_options loss_options;
    rp_method method;
    rp_optim optim;
    rp_lr_schedule lr;
    uint64_t seed;
    uint64_t steps;         /* in the whole run */
    uint64_t step_first;    /* first step; greater than 0 if the run continues from a checkpoint */
    uint64_t epoch_samples; /* training samples in an epoch */
    uint32_t batch, micro;
    /* For schedules with sizes: samples of a microbatch by stage, {forward, backward}; backward 0 =
     * as forward. NULL = `micro` everywhere. */
    const uint32_t (*size)[2];
    uint32_t target_width; /* values of a sample's target: f32, or int32 classes (see nn/loss.h) */
    uint64_t memory_bytes; /* limit of device memory, 0 = all that the device has */
    rp_throttle throttle;
    rp_pixel_norm pixels; /* for inputs as uint8 */
    bool guard;           /* skip steps with non-finite gradients */
    bool copies;          /* boards exchange copies of their state */
    rp_dtype storage;     /* of activations that wait: f32, bf16 or f16; see nn/rounding.h */
    bool recompute;       /* for this stage; see nn/recompute.h */
    /* Where the stashes of this stage that no op uses are stored; never auto. */
    rp_offload offload;
    /* How many tensors of each stash are offloaded: those that wait longest for their backward. 0:
     * all. From the plan, not in the text. */
    uint32_t leave_tensors;
    /* By layer of the model: true if a new group of its stage begins there; NULL: nowhere. */
    const bool *group_begins;
    /* For boundary tensors: [at the upper boundary][for gradients]. From the plan, not in the
     * text. */
    rp_codec codec[2][2];
} rp_job;

/* Parses a job into `arena`. errors USAGE, SHAPE with the name of the text, line and key */
rp_err rp_job_parse(rp_arena *arena, rp_node *job_root, rp_node *model_root,
                    rp_job *out) RP_MUST_CHECK;

/* Sets the prediction that the method needs, and refuses optimisers that do not fit: a clip norm
 * over all stages needs a flushed schedule. The message names the line of `node`. errors USAGE */
rp_err rp_method_fit(const rp_method *method, rp_optim *optim, const rp_node *node) RP_MUST_CHECK;

/* The shape of the schedule for steps [first, end). */
rp_sched_shape rp_job_sched_shape(const rp_job *job, uint64_t step_first, uint64_t step_end);

/* The next op of the stage's list that job->role executes; false: the list has ended. */
bool rp_job_next(const rp_job *job, rp_sched_state *list, rp_op *op);

/* Refuses models that do not fit: sums over a step's microbatches (deferred batch statistics) need
 * a flushed schedule, because otherwise the sums of two steps would mix. errors USAGE */
rp_err rp_method_fit_model(const rp_method *method, const rp_model *model,
                           const rp_node *node) RP_MUST_CHECK;

/* Refuses a cut that puts layers with one tensor (tied weights) on different stages, if their
 * copies would not stay equal, because stages make different updates. errors USAGE naming the
 * layers, the reason and the ways out */
rp_err rp_method_fit_ties(const rp_method *method, const rp_optim *optim, const rp_model *model,
                          const rp_cut *cut) RP_MUST_CHECK;

/* Mean number of own updates of a replica between a forward and its backward, in the steady state
 * of the order, over the microbatches of a full step; 0 if the schedule flushes. Equal on all
 * boards that share the stage. */
double rp_job_staleness(const rp_job *job);

/* The most samples of a microbatch of this stage: in a forward, in a backward, in either. */
uint32_t rp_job_forward_samples(const rp_job *job);
uint32_t rp_job_backward_samples(const rp_job *job);
uint32_t rp_job_pass_samples(const rp_job *job);
/* The most samples of a parcel between any two stages. */
uint32_t rp_job_parcel_samples(const rp_job *job);
/* Whether the schedule gives each stage its own sizes. */
bool rp_job_has_sizes(const rp_job *job);
/* Whether a backward has its own size, and may need samples of several forwards. One slot then
 * holds all samples of a step that this board has, instead of the samples of one forward. */
bool rp_job_holds_steps(const rp_job *job);
uint32_t rp_job_slot_samples(const rp_job *job);
/* The samples of the step that share a slot with those of a training op. */
rp_range rp_job_slot_range(const rp_job *job, const rp_op *op);

bool rp_job_is_last(const rp_job *job);
/* Targets of a sample that can be right or wrong: the tokens of a sequence, or 1. */
uint32_t rp_job_target_rows(const rp_job *job);
/* Those rows in a step of `time` tokens, see rp_model_view, and the values of a sample's target. */
uint32_t rp_job_target_rows_at(const rp_job *job, uint32_t time);
uint32_t rp_job_target_width_at(const rp_job *job, uint32_t time);
/* Input of rp_throttle_s() for an op of this stage in a step of `time` tokens (rp_model_view). */
rp_throttled_op rp_job_throttled_op(const rp_job *job, const rp_op *op, uint32_t time);
/* Whether other boards have some of the stage's samples. */
bool rp_job_is_shared(const rp_job *job);
/* The samples of a step that this board has; none are possible if the step is short. */
rp_range rp_job_own_samples(const rp_job *job, uint32_t step_samples);

/* Who makes the step decision from the gradients before an update: HOST, the controller, for all
 * stages, if every step flushes (one small message each way); OWN, the stage for itself, if steps
 * do not wait for other stages; NONE, no decision is needed. */
typedef enum { RP_DECISION_NONE, RP_DECISION_HOST, RP_DECISION_OWN } rp_decision_maker;
rp_decision_maker rp_decision_maker_of(const rp_method *method, const rp_optim *optim, bool guard);

#endif
