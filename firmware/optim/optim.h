/* Optimisers: one fused kernel over a stage's flat parameter block.
 *
 * A stage keeps its trained parameters in one chunk (each tensor aligned, the gaps zero), and
 * likewise gradients and each state, so one launch serves all. The conventions are exactly
 * PyTorch's.
 *
 * source  METHODS section 3; torch.optim */
#ifndef RP_OPTIM_OPTIM_H
#define RP_OPTIM_OPTIM_H

#include "base/config.h"
#include "device/device.h"

enum { RP_OPTIM_STATES_MAX = 5 }; /* three of a kind, two of an anchor */

typedef struct rp_optim_kind rp_optim_kind;

/* The direction that predict() follows. */
typedef enum {
    RP_PREDICT_OWN, /* the direction of the last step, as stored in the optimiser's state */
    /* sgd: mu buf + (1 - dampening) g, as in PipeOptim's released code; other kinds: own. g is the
     * gradient of the last step, kept as a state */
    RP_PREDICT_RELEASED,
    RP_PREDICT_XPIPE /* adam, adamw: moments corrected by 1 - beta instead of 1 - beta^t */
} rp_predict_rule;

/* A term that is added to each gradient before clipping and before the optimiser:
 * mu (w - start) - drift. `start`: the weights at step 0 of the run; the term is the gradient of
 * mu / 2 |w - start|^2. `drift`: given with the start weights, else zeros. Both are stored as
 * states.
 * source  FedProx: Li et al. 2018 (1812.06127), eq. 2; SCAFFOLD: Karimireddy et al. 2019
 *         (1910.06378), where drift is c_i - c */
typedef struct {
    double mu; /* 0: no `start` */
    bool drift;
} rp_optim_anchor;

typedef struct {
    const rp_optim_kind *kind;
    rp_optim_anchor anchor; /* rp_optim_parse() clears it */
    double lr, momentum, dampening, weight_decay;
    double beta1, beta2, eps, alpha;
    bool nesterov, centered;
    double clip_norm;       /* 0 = off; global norm over all stages, flushed schedules only */
    double clip_norm_stage; /* 0 = off; norm of the stage's own gradient, any schedule */
    /* p: a stage's rate is multiplied by (1 + staleness)^-p, METHODS 11; 0 = off */
    double staleness_power;
    /* used instead of the order's staleness, times the number of later stages; 0 = off */
    double staleness_per_stage;
    /* predict() will be called: kinds whose states do not contain the last applied direction (sgd
     * without momentum or with nesterov, rmsprop without momentum) keep it as an additional state.
     * rp_optim_parse() sets it; clear it before state_count() if the schedule never predicts, and
     * set `rule` before it. */
    bool predicts;
    rp_predict_rule rule;
    bool predict_decay; /* adamw: also predict the decoupled decay of the coming steps */
} rp_optim;

typedef struct {
    rp_device *device;
    const rp_optim *optim;
    rp_buffer *w;                          /* `count` floats, updated in place */
    const rp_buffer *g;                    /* `count` floats */
    rp_buffer *state[RP_OPTIM_STATES_MAX]; /* `count` floats each, zero before the first step */
    uint32_t count;
    float lr;         /* rate of this step, from the schedule */
    uint64_t t;       /* steps applied before this one, so 0 at the first */
    float grad_scale; /* clipping factor, 1 when not clipped */
} rp_optim_call;

struct rp_optim_kind {
    const char *name;
    const char *keys; /* its own keys in a run file: "momentum, nesterov"; NULL: none */
    const char *source;
    /* Names of the states in checkpoints, e.g. {"momentum_buffer"}, NULL-terminated. */
    const char *const *state_names;
    uint32_t (*state_count)(const rp_optim *optim);
    /* parses its own keys, other than kind, lr and clip_norm */
    rp_err (*parse)(rp_optim *optim, rp_node *keys);
    rp_err (*step)(const rp_optim_call *call);
    /* out = W predicted `s` updates ahead, from the optimiser's own state by optim->rule; w and g
     * are unchanged. t = steps applied so far; t == 0: a copy.
     * errors  USAGE when !predicts and the kind needs it
     * source  METHODS 5.1 */
    rp_err (*predict)(const rp_optim_call *call, rp_buffer *out, float s);
    bool decoupled; /* weight_decay scales the weights directly, not through g */
};

/* After predict(): reduces the prediction in `out` to call->w plus a fraction, 0 to 1, of its
 * change, for each tensor. `spans` as for rp_grad_sumsq(), in order, each `first` a multiple of 16;
 * `shares`: one float per tensor. */
rp_err rp_optim_in_shares(const rp_optim_call *call, rp_buffer *out, const rp_buffer *spans,
                          const rp_buffer *shares, uint32_t tensor_count) RP_MUST_CHECK;

extern const rp_optim_kind *const rp_optim_kinds[];
const rp_optim_kind *rp_optim_find(const char *name); /* NULL when unknown */

/* Parses `optimizer:` of a run file. */
rp_err rp_optim_parse(rp_optim *optim, rp_node *node) RP_MUST_CHECK;

/* `anchor` of a section: none, mu, or {mu, drift}. errors  USAGE */
rp_err rp_optim_parse_anchor(rp_optim_anchor *anchor, rp_node *section) RP_MUST_CHECK;
/* Refuses a drift if updates are not the rate times the gradient, because it is computed from the
 * sum of the updates. errors  USAGE naming the line of `node` */
rp_err rp_optim_check_anchor(const rp_optim *optim, const rp_node *node) RP_MUST_CHECK;
bool rp_optim_is_anchored(const rp_optim *optim);
/* Adds the term to `g`, `count` floats like call->w. start, drift: states; NULL: without them. */
rp_err rp_optim_anchor_gradient(const rp_optim_call *call, rp_buffer *g, const rp_buffer *start,
                                const rp_buffer *drift) RP_MUST_CHECK;

/* All states: those of the kind, then `anchor` and `drift` if in use. Names are those of
 * checkpoints. The index of a state that is not in use is RP_OPTIM_NO_STATE. */
#define RP_OPTIM_NO_STATE UINT32_MAX
uint32_t rp_optim_state_count(const rp_optim *optim);
const char *rp_optim_state_name(const rp_optim *optim, uint32_t index);
uint32_t rp_optim_anchor_state(const rp_optim *optim);
uint32_t rp_optim_drift_state(const rp_optim *optim);

/* The factor on a stage's rate: (1 + staleness)^-p, 1 without `staleness_power`. `staleness`: own
 * updates between a forward and its backward. Pure. */
double rp_optim_stage_rate(const rp_optim *optim, double staleness);
/* torch.nn.utils.clip_grad_norm_: min(1, most / (norm + 1e-6)); 1 when `most` is 0. Pure. */
double rp_optim_clip_scale(double most, double norm);
/* Decay factor of the optimiser's running average of gradients: momentum or beta1, 0 if the kind
 * has none. Pure. */
double rp_optim_momentum(const rp_optim *optim);

/* ---- learning rate -------------------------------------------------------------------------- */

typedef enum { RP_LR_CONSTANT, RP_LR_STEP, RP_LR_COSINE, RP_LR_POLY } rp_lr_kind;
extern const char *const rp_lr_kinds[]; /* names of the kinds, then NULL */

typedef struct {
    rp_lr_kind kind;
    uint64_t warmup_steps; /* linear from lr / warmup_steps to lr */
    uint64_t step_size;    /* step: interval in epochs (PyTorch StepLR's step_size) */
    double gamma, power, min_lr;
} rp_lr_schedule;

/* Parses `lr_schedule:` of a run file; node NULL = constant. */
rp_err rp_lr_parse(rp_lr_schedule *schedule, rp_node *node) RP_MUST_CHECK;
/* The rate of step `step` (from 0) of `steps`; kind step uses `steps_per_epoch`. Pure. */
double rp_lr_at(const rp_lr_schedule *schedule, double lr, uint64_t step, uint64_t steps,
                uint64_t steps_per_epoch);

/* ---- gradient norm: clipping and the non-finite guard --------------------------------------- */

/* Size in bytes of `out` for rp_grad_sumsq(): the results, then room for partial sums. Pure. */
size_t rp_grad_sumsq_bytes(size_t g_bytes, uint32_t tensor_count);

/* out[i] = sum of squares of g[first[i] .. first[i] + count[i]), in an order that depends only on
 * count[i] and so not on the cut; NaN or Inf anywhere gives a non-finite out[i]. `spans` holds 2 *
 * tensor_count uint32: first, count; they do not overlap. Writes all of `out`: tensor_count floats,
 * then scratch data. errors LIMIT when `out` has fewer than rp_grad_sumsq_bytes() bytes */
rp_err rp_grad_sumsq(rp_device *device, const rp_buffer *g, const rp_buffer *spans,
                     uint32_t tensor_count, rp_buffer *out) RP_MUST_CHECK;

#endif
