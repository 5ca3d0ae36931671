/* y [C, 1, 1] = the mean over all pixels of each channel. */
#include "nn/layer_common.h"

enum { GROUP_PLANES = 16 };

static rp_err parse_globalavgpool(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)layer;
    (void)keys;
    (void)data;
    return RP_OK;
}

static rp_err plan_globalavgpool(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    rp_err err = rp_layer_need_image(layer, in);
    if (err == RP_OK) {
        const double elements = (double)rp_shape_count(in);
        *out = (rp_layer_plan){
            .out = rp_shape_3(in->dim[0], 1, 1),
            .flops_forward = elements,
            .flops_backward = elements,
        };
    }
    return err;
}

/* Launches `entry` over the planes; `add` < 0 omits that argument. */
static rp_err run_planes(const rp_layer_call *call, const char *entry, const rp_tensor *to,
                         const rp_tensor *from, int add) {
    rp_launch launch;
    const rp_shape *in = &call->in[0];
    const size_t planes = (size_t)call->n * in->dim[0];
    rp_err err = rp_layer_begin(call, "pool", entry, NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, to);
    rp_arg_tensor(&launch, from);
    rp_arg_u32(&launch, (uint32_t)planes);
    rp_arg_u32(&launch, in->dim[1] * in->dim[2]);
    if (add >= 0) {
        rp_arg_u32(&launch, (uint32_t)add);
    }
    return rp_layer_run_items(&launch, planes, GROUP_PLANES);
}

static rp_err forward_globalavgpool(const rp_layer_call *call) {
    return run_planes(call, "global_forward", call->y, call->x[0], -1);
}

static rp_err backward_globalavgpool(const rp_layer_call *call) {
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    return run_planes(call, "global_backward", call->dx[0], call->dy, call->dx_add[0]);
}

const rp_layer_kind rp_layer_globalavgpool = {
    .name = "globalavgpool",
    .source = "torch.nn.AdaptiveAvgPool2d(1)",
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_globalavgpool,
    .plan = plan_globalavgpool,
    .forward = forward_globalavgpool,
    .backward = backward_globalavgpool,
};
