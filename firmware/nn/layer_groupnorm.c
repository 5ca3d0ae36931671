/* Normalisation over each of `groups` groups of a sample's channels [C] or [C, ...], with a weight
 * and a bias per channel. `groups: 1` takes all channels together, `groups: C` each separately. */
#include "nn/groups.h"

typedef struct {
    uint32_t groups;
    float eps;
} groupnorm_spec;

static rp_groups groups_of(const rp_layer *layer, const rp_shape *in) {
    const groupnorm_spec *spec = layer->spec;
    return (rp_groups){
        .rows = 1,
        .groups = spec->groups,
        .wide = in->dim[0] / spec->groups,
        .pixels = (uint32_t)rp_shape_count(in) / in->dim[0],
    };
}

static rp_err parse_groupnorm(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)data;
    groupnorm_spec *spec = layer->spec;
    rp_err err;
    *spec = (groupnorm_spec){.eps = 1e-5f};
    RP_TRY(rp_node_need(keys, "groups"));
    RP_TRY(rp_node_u32(keys, "groups", 1, RP_LAYER_OUT_MAX, &spec->groups));
    RP_TRY(rp_node_f32(keys, "eps", 0.0, 1e6, &spec->eps));
    return RP_OK;
fail:
    return err;
}

static rp_err plan_groupnorm(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const groupnorm_spec *spec = layer->spec;
    if (in->dims == 0) {
        return rp_fail(RP_ERR_SHAPE, "layer '%s': groupnorm needs samples [C] or [C, ...]",
                       layer->name);
    }
    if (in->dim[0] % spec->groups != 0) {
        return rp_fail(RP_ERR_SHAPE, "layer '%s': %u channels do not divide into %u groups",
                       layer->name, in->dim[0], spec->groups);
    }
    const rp_groups groups = groups_of(layer, in);
    const rp_shape affine = rp_shape_1(in->dim[0]);
    rp_groups_plan(in, &groups, &affine, out);
    return RP_OK;
}

static size_t workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan_of,
                              const rp_shape *in, uint32_t n, rp_gemm_choice choice) {
    (void)plan_of;
    (void)choice;
    const rp_groups groups = groups_of(layer, in);
    return rp_groups_workspace_bytes(&groups, n);
}

static rp_err forward_groupnorm(const rp_layer_call *call) {
    const groupnorm_spec *spec = call->layer->spec;
    const rp_groups groups = groups_of(call->layer, &call->in[0]);
    return rp_groups_forward(call, &groups, spec->eps);
}

static rp_err backward_groupnorm(const rp_layer_call *call) {
    const rp_groups groups = groups_of(call->layer, &call->in[0]);
    return rp_groups_backward(call, &groups);
}

const rp_layer_kind rp_layer_groupnorm = {
    .name = "groupnorm",
    .keys = "groups, eps",
    .source = "Wu & He 2018; torch.nn.GroupNorm",
    .spec_bytes = sizeof(groupnorm_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_groupnorm,
    .plan = plan_groupnorm,
    .workspace_bytes = workspace_bytes,
    .forward = forward_groupnorm,
    .backward = backward_groupnorm,
};
