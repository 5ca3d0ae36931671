/* Normalisation over a whole sample, with a weight and a bias for each of its elements: torch's
 * LayerNorm whose normalized_shape is the sample's shape. */
#include "nn/groups.h"

typedef struct {
    float eps;
} layernorm_spec;

/* Every element is a channel of the only group. */
static rp_groups groups_of(const rp_shape *in) {
    return (rp_groups){.groups = 1, .wide = (uint32_t)rp_shape_count(in), .pixels = 1};
}

static rp_err parse_layernorm(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)data;
    layernorm_spec *spec = layer->spec;
    *spec = (layernorm_spec){.eps = 1e-5f};
    return rp_node_f32(keys, "eps", 0.0, 1e6, &spec->eps);
}

static rp_err plan_layernorm(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    (void)layer;
    const rp_groups groups = groups_of(in);
    rp_groups_plan(in, &groups, in, out);
    return RP_OK;
}

static size_t workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan_of,
                              const rp_shape *in, uint32_t n, rp_gemm_choice choice) {
    (void)layer;
    (void)plan_of;
    (void)choice;
    const rp_groups groups = groups_of(in);
    return rp_groups_workspace_bytes(&groups, n);
}

static rp_err forward_layernorm(const rp_layer_call *call) {
    const layernorm_spec *spec = call->layer->spec;
    const rp_groups groups = groups_of(&call->in[0]);
    return rp_groups_forward(call, &groups, spec->eps);
}

static rp_err backward_layernorm(const rp_layer_call *call) {
    const rp_groups groups = groups_of(&call->in[0]);
    return rp_groups_backward(call, &groups);
}

const rp_layer_kind rp_layer_layernorm = {
    .name = "layernorm",
    .keys = "eps",
    .source = "Ba, Kiros & Hinton 2016; torch.nn.LayerNorm",
    .spec_bytes = sizeof(layernorm_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_layernorm,
    .plan = plan_layernorm,
    .workspace_bytes = workspace_bytes,
    .forward = forward_layernorm,
    .backward = backward_layernorm,
};
