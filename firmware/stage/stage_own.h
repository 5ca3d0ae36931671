/* Inside of a stage; only for the files of this room. */
#ifndef RP_STAGE_STAGE_OWN_H
#define RP_STAGE_STAGE_OWN_H

#include "stage/stage.h"

typedef struct {
    bool busy;
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

typedef struct {
    uint32_t model_param; /* index into model->param */
    rp_tensor value, grad;
    rp_buffer *state[RP_OPTIM_STATES_MAX];
} rp_stage_param;

struct rp_stage {
    rp_arena *arena;
    rp_device *device;
    const rp_job *job;
    const rp_layout *layout;

    /* one chunk each for trained weights, gradients and optimiser states; the rest */
    rp_darena *weights, *grads, *state[RP_OPTIM_STATES_MAX], *memory;

    rp_stage_param *param; /* those of this stage, in model order */
    uint32_t param_count, trained_count;
    uint32_t param_first; /* model index of param[0] */

    rp_slot *slot;
    rp_debt *debt;
    rp_buffer **value_pool, **grad_pool;
    rp_buffer *workspace, *target, *results, *spans, *norms;

    /* of the op that is being enqueued */
    rp_tensor *value, *grad; /* by tensor of the layout */

    uint32_t accumulated; /* weight gradients in the gradient block */
    uint64_t applied;
};

/* The layer at `position` as a call on slot (and debt) for n samples; value and grad are bound. */
void rp_stage_bind(rp_stage *stage, const rp_slot *slot, const rp_debt *debt, uint32_t n);

/* Zeroes weights' companions and everything a dry step may have written. */
rp_err rp_stage_reset(rp_stage *stage) RP_MUST_CHECK;

#endif
