/* y = the mean of each window, padding counted as zeros or, if not count_include_pad, not counted.
 */
#include "nn/pool.h"

static rp_err parse_avgpool(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    rp_pool_spec *spec = layer->spec;
    const rp_err err = rp_pool_parse(layer, keys, data);
    spec->average = true;
    spec->count_include_pad = true;
    return err == RP_OK ? rp_node_bool(keys, "count_include_pad", &spec->count_include_pad) : err;
}

static rp_err forward_avgpool(const rp_layer_call *call) {
    rp_launch launch;
    rp_err err = rp_pool_begin(call, "average_forward", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->y);
    rp_arg_tensor(&launch, call->x[0]);
    return rp_pool_run(call, &launch, call->plan->out.dim[1], -1);
}

static rp_err backward_avgpool(const rp_layer_call *call) {
    rp_launch launch;
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    rp_err err = rp_pool_begin(call, "average_backward", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->dx[0]);
    rp_arg_tensor(&launch, call->dy);
    return rp_pool_run(call, &launch, call->in[0].dim[1], call->dx_add[0]);
}

const rp_layer_kind rp_layer_avgpool = {
    .name = "avgpool",
    .keys = "kernel, stride, pad, ceil_mode, count_include_pad",
    .source = "torch.nn.AvgPool2d",
    .spec_bytes = sizeof(rp_pool_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_avgpool,
    .plan = rp_pool_plan,
    .forward = forward_avgpool,
    .backward = backward_avgpool,
};
