/* y = the maximum of each window; backward adds dy at the position of the maximum.
 *
 * saved[0] = position of the maximum within its window, r * width + s, one or two bytes per
 * window. */
#include "nn/pool.h"

static rp_err plan_maxpool(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    rp_err err = rp_pool_plan(layer, in, out);
    if (err == RP_OK) {
        out->saved_count = 1;
        out->saved[0].sample_bytes = rp_shape_count(&out->out) * rp_pool_index_bytes(layer->spec);
    }
    return err;
}

/* Adds the positions of the call's windows. */
static void add_places(const rp_layer_call *call, rp_launch *launch) {
    rp_arg_buffer(launch, call->saved[0]);
    rp_arg_u64(launch, (uint64_t)call->saved_first * rp_shape_count(&call->plan->out));
}

static rp_err forward_maxpool(const rp_layer_call *call) {
    rp_launch launch;
    rp_err err = rp_pool_begin(call, "max_forward", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->y);
    add_places(call, &launch);
    rp_arg_tensor(&launch, call->x[0]);
    return rp_pool_run(call, &launch, call->plan->out.dim[1], -1);
}

static rp_err backward_maxpool(const rp_layer_call *call) {
    rp_launch launch;
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    rp_err err = rp_pool_begin(call, "max_backward", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->dx[0]);
    rp_arg_tensor(&launch, call->dy);
    add_places(call, &launch);
    return rp_pool_run(call, &launch, call->in[0].dim[1], call->dx_add[0]);
}

const rp_layer_kind rp_layer_maxpool = {
    .name = "maxpool",
    .keys = "kernel, stride, pad, ceil_mode",
    .source = "torch.nn.MaxPool2d: the first of equal elements, NaN before all numbers",
    .spec_bytes = sizeof(rp_pool_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = rp_pool_parse,
    .plan = plan_maxpool,
    .forward = forward_maxpool,
    .backward = backward_maxpool,
};
