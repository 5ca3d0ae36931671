/* y = x / (1 + exp(-x)). */
#include "nn/activation.h"

static rp_err plan(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    (void)layer;
    rp_activation_plan(in, false, 11.0, 15.0, out);
    return RP_OK;
}

static rp_err forward(const rp_layer_call *call) {
    return rp_activation_forward(call, "silu_forward", 0.0f);
}

static rp_err backward(const rp_layer_call *call) {
    return rp_activation_backward(call, "silu_backward", 0.0f);
}

const rp_layer_kind rp_layer_silu = {
    .name = "silu",
    .source = "Hendrycks & Gimpel 2016; torch.nn.SiLU",
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = rp_activation_parse_nothing,
    .plan = plan,
    .forward = forward,
    .backward = backward,
};
