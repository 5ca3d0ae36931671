/* Reshapes a sample to one row; does nothing if y and x share memory. */
#include "nn/layer_common.h"

static rp_err parse_flatten(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)layer;
    (void)keys;
    (void)data;
    return RP_OK;
}

static rp_err plan_flatten(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    (void)layer;
    *out = (rp_layer_plan){.out = rp_shape_1((uint32_t)rp_shape_count(in)), .in_place = true};
    return RP_OK;
}

static rp_err forward_flatten(const rp_layer_call *call) {
    return rp_layer_copy(call, call->y, call->x[0], &call->plan->out, false);
}

static rp_err backward_flatten(const rp_layer_call *call) {
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    return rp_layer_copy(call, call->dx[0], call->dy, &call->plan->out, call->dx_add[0]);
}

const rp_layer_kind rp_layer_flatten = {
    .name = "flatten",
    .source = "torch.nn.Flatten",
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_flatten,
    .plan = plan_flatten,
    .forward = forward_flatten,
    .backward = backward_flatten,
};
