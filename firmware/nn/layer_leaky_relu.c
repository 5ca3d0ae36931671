/* y = x > 0 ? x : slope x. The slope is not negative: the sign of y must tell that of x, because
 * backward reads y. */
#include "nn/activation.h"

typedef struct {
    float slope;
} leaky_spec;

static rp_err parse(rp_layer *layer, rp_node *keys, uint32_t classes) {
    (void)classes;
    leaky_spec *spec = layer->spec;
    spec->slope = 0.01f;
    return rp_node_f32(keys, "slope", 0.0, 1e6, &spec->slope);
}

static rp_err plan(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    (void)layer;
    rp_activation_plan(in, true, 2.0, 2.0, out);
    return RP_OK;
}

static rp_err forward(const rp_layer_call *call) {
    const leaky_spec *spec = call->layer->spec;
    return rp_activation_forward(call, "leaky_relu_forward", spec->slope);
}

static rp_err backward(const rp_layer_call *call) {
    const leaky_spec *spec = call->layer->spec;
    return rp_activation_backward(call, "leaky_relu_backward", spec->slope);
}

const rp_layer_kind rp_layer_leaky_relu = {
    .name = "leaky_relu",
    .source = "torch.nn.LeakyReLU",
    .spec_bytes = sizeof(leaky_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse,
    .plan = plan,
    .forward = forward,
    .backward = backward,
};
