/* Stochastic depth: a whole sample is kept with probability 1 - p and then scaled by 1 / (1 - p),
 * otherwise it becomes 0. It ends the branch of a residual block before the add.
 *
 * The mask is not stored. Sample s (counted over the run) is dropped if word s of the stream
 * "droppath/<layer>" is below p. Forward, recomputation and backward therefore agree, and neither
 * the cut nor the microbatch size changes the mask. */
#include <stdio.h>

#include "nn/layer_common.h"

enum { GROUP_ITEMS = 64, PIECE = 128 /* elements of an item, as in kernels/droppath.cl */ };

typedef struct {
    double p;
} droppath_spec;

static rp_err parse_droppath(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    droppath_spec *spec = layer->spec;
    rp_err err;
    (void)data;
    RP_TRY(rp_node_need(keys, "p"));
    RP_TRY(rp_node_f64(keys, "p", 0.0, 1.0, &spec->p));
    return RP_OK;
fail:
    return err;
}

static rp_err plan_droppath(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const double elements = layer->frozen ? 0 : (double)rp_shape_count(in);
    *out = (rp_layer_plan){
        .out = *in,
        .in_place = true,
        .same = layer->frozen,
        .draws = !layer->frozen,
        .flops_forward = elements,
        .flops_backward = elements,
    };
    return RP_OK;
}

static rp_err mask_samples(const rp_layer_call *call, const rp_tensor *to, const rp_tensor *from,
                           bool add) {
    const droppath_spec *spec = call->layer->spec;
    const uint32_t count = (uint32_t)rp_shape_count(&call->in[0]);
    char name[RP_LAYER_NAME_MAX + 16];
    rp_launch launch;
    snprintf(name, sizeof name, "droppath/%s", call->layer->name);
    const rp_rng rng = rp_rng_named(call->seed, name);
    rp_err err = rp_layer_begin(call, "droppath", "droppath", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, to);
    rp_arg_tensor(&launch, from);
    rp_arg_u32(&launch, call->n);
    rp_arg_u32(&launch, count);
    rp_arg_u64(&launch, call->sample_first);
    rp_arg_u32(&launch, rng.key[0]);
    rp_arg_u32(&launch, rng.key[1]);
    rp_arg_u32(&launch, (uint32_t)(spec->p * 0x1p24 + 0.5));
    rp_arg_f32(&launch, spec->p < 1.0 ? (float)(1.0 / (1.0 - spec->p)) : 0.0f);
    rp_arg_u32(&launch, add);
    return rp_layer_run_items(&launch, (size_t)rp_layer_divide_up(count, PIECE) * call->n,
                              GROUP_ITEMS);
}

/* Evaluation and a frozen layer keep everything. */
static bool is_identity(const rp_layer_call *call) {
    return call->layer->frozen || !call->training;
}

static rp_err forward_droppath(const rp_layer_call *call) {
    return is_identity(call) ? rp_layer_copy(call, call->y, call->x[0], &call->in[0], false)
                             : mask_samples(call, call->y, call->x[0], false);
}

static rp_err backward_droppath(const rp_layer_call *call) {
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    return is_identity(call)
               ? rp_layer_copy(call, call->dx[0], call->dy, &call->in[0], call->dx_add[0])
               : mask_samples(call, call->dx[0], call->dy, call->dx_add[0]);
}

const rp_layer_kind rp_layer_droppath = {
    .name = "droppath",
    .keys = "p",
    .source = "Huang et al. 2016; torchvision.ops.StochasticDepth, mode row",
    .spec_bytes = sizeof(droppath_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_droppath,
    .plan = plan_droppath,
    .forward = forward_droppath,
    .backward = backward_droppath,
};
