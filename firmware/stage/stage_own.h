/* Inside of a stage; only for the files of this room. */
#ifndef RP_STAGE_STAGE_OWN_H
#define RP_STAGE_STAGE_OWN_H

#include "stage/stage.h"

typedef struct {
    bool busy, evaluating;
    uint64_t step;
    rp_range samples;
    rp_buffer **kept;  /* by buffer index of the layout */
    rp_buffer **saved; /* RP_LAYER_SAVED_MAX per layer */
} rp_slot;

typedef struct {
    bool busy;
    uint64_t step;
    rp_range samples;
    rp_buffer **kept;
} rp_debt;

/* One value for each trained weight: a version of the weights, gradients, an optimiser state. */
typedef struct {
    rp_darena *arena; /* one chunk; NULL: not needed here */
    rp_buffer **part; /* by trained parameter */
} rp_flat;

#define RP_NOT_TRAINED UINT32_MAX

typedef struct {
    uint32_t model_param; /* index into model->param */
    uint32_t trained;     /* index into the parts of a flat block, or RP_NOT_TRAINED */
    rp_tensor value;      /* trained: as the op that is being enqueued sees it */
    rp_tensor grad;
} rp_stage_param;

/* Trust in predictions: the newest entries, by effect. */
enum { RP_TRUST_ENTRIES = 6 };
typedef struct {
    uint64_t step[RP_TRUST_ENTRIES];
    float *share[RP_TRUST_ENTRIES]; /* by trained parameter */
    uint32_t count;
} rp_stage_trusts;

struct rp_stage {
    rp_arena *arena;
    rp_device *device;
    const rp_job *job;
    const rp_layout *layout;

    rp_flat *weights;     /* layout->versions of them */
    rp_flat predicted[2]; /* by direction for xpipe, otherwise [0] serves both */
    rp_flat centre;       /* of the replicas, or their reference */
    rp_flat scratch;      /* around a local step: before it, or the elastic term; or the mean */
    bool mean_valid;      /* scratch holds the mean of the replicas as they are */
    rp_flat *state;       /* [replica * state_count + state] */
    rp_flat grads;
    rp_flat probe[2]; /* seen, then: see probe.c */
    rp_stage_copies copies;
    rp_darena *memory; /* slots and all else */
    rp_versions versions;

    rp_stage_param *param; /* those of this stage, in model order */
    uint32_t param_count, trained_count;
    uint32_t param_first; /* model index of param[0] */

    rp_slot *slot;
    rp_debt *debt;
    rp_buffer **value_pool, **grad_pool;
    rp_buffer *workspace, *target, *results, *spans, *norms, *probe_norms[RP_PROBE_NORMS];
    rp_buffer *shares; /* of predictions, by trained parameter */

    /* of the op that is being enqueued */
    rp_tensor *value, *grad; /* by tensor of the layout */

    const rp_flat *seen; /* weights that the op being enqueued sees */
    rp_stage_trusts trust;
    bool probe_done;     /* its norms can be read behind the last op */
    uint32_t probe_left; /* own updates until the weights that it waits for, 0 = it does not */
    rp_stage_probe probe_about;
    uint32_t accumulated; /* weight gradients in the gradient block */
    uint64_t applied[RP_REPLICAS_MAX];
};

/* Ops without the books of versions, on weights that rp_stage_see() chose: for the ops proper, for
 * evaluations, and for dry runs. */
void rp_stage_see(rp_stage *stage, const rp_flat *weights);
/* The model that is evaluated, and what must be enqueued before it is read. */
const rp_flat *rp_stage_evaluated(const rp_stage *stage);
rp_err rp_stage_evaluated_fill(rp_stage *stage) RP_MUST_CHECK;
typedef struct {
    bool training;    /* layers behave as in training */
    bool evaluating;  /* an evaluation's: its steps count from 0 again */
    uint32_t renewal; /* rp_layer_call's */
} rp_pass;
rp_err rp_stage_run_forward(rp_stage *stage, const rp_op *op, const void *const *in,
                            void *const *out, rp_pass pass) RP_MUST_CHECK;
rp_err rp_stage_run_backward(rp_stage *stage, const rp_op *op, const void *const *in,
                             void *const *out) RP_MUST_CHECK;
rp_err rp_stage_run_update(rp_stage *stage, const rp_version_step *by, uint64_t step,
                           float grad_scale) RP_MUST_CHECK;
rp_err rp_stage_run_prediction(rp_stage *stage, const rp_sight *sight, const float *trust,
                               rp_flat *out) RP_MUST_CHECK;

/* Steps behind a probe at which its trust takes effect: its backward and the answer fit between. */
uint64_t rp_stage_trust_delay(const rp_stage *stage);
/* Of the forward of `step`, NULL = 1 for every parameter. */
const float *rp_stage_trust_at(const rp_stage *stage, uint64_t step);

/* Behind the choice of an op's weights, and behind an update; nothing where no probe is due. */
rp_err rp_stage_run_probe(rp_stage *stage, const rp_op *op, const rp_sight *sight) RP_MUST_CHECK;
/* Its books, which a resumed run walks again: whether a probe begins or ends with this op. */
bool rp_stage_probe_walk(rp_stage *stage, const rp_op *op, const rp_sight *sight);

/* The layer at `position` as a call on slot (and debt) for n samples; value and grad are bound. */
void rp_stage_bind(rp_stage *stage, const rp_slot *slot, const rp_debt *debt, uint32_t n);

/* A parameter's value into every copy that there is: replicas and centre start alike, and so do the
 * versions of 2BW. */
rp_err rp_stage_write_param(rp_stage *stage, uint32_t param, size_t first, size_t count,
                            const float *values) RP_MUST_CHECK;

/* Zeroes weights' companions and everything a dry step may have written. */
rp_err rp_stage_reset(rp_stage *stage) RP_MUST_CHECK;

#endif
