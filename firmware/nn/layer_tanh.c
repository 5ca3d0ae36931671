/* y = tanh(x), dx = dy (1 - y^2). */
#include "nn/activation.h"

static rp_err plan(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    (void)layer;
    rp_activation_plan(in, true, 10.0, 3.0, out);
    return RP_OK;
}

static rp_err forward(const rp_layer_call *call) {
    return rp_activation_forward(call, "tanh_forward", 0.0f);
}

static rp_err backward(const rp_layer_call *call) {
    return rp_activation_backward(call, "tanh_backward", 0.0f);
}

const rp_layer_kind rp_layer_tanh = {
    .name = "tanh",
    .source = "torch.nn.Tanh",
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = rp_activation_parse_nothing,
    .plan = plan,
    .forward = forward,
    .backward = backward,
};
