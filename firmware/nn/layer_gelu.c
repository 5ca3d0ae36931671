/* y = x Phi(x), Phi the normal distribution by erf (not the tanh approximation). */
#include "nn/activation.h"

static rp_err plan(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    (void)layer;
    rp_activation_plan(in, false, 20.0, 30.0, out);
    return RP_OK;
}

static rp_err forward(const rp_layer_call *call) {
    return rp_activation_forward(call, "gelu_forward", 0.0f);
}

static rp_err backward(const rp_layer_call *call) {
    return rp_activation_backward(call, "gelu_backward", 0.0f);
}

const rp_layer_kind rp_layer_gelu = {
    .name = "gelu",
    .source = "Hendrycks & Gimpel 2016; torch.nn.GELU",
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = rp_activation_parse_nothing,
    .plan = plan,
    .forward = forward,
    .backward = backward,
};
