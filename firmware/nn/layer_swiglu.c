/* y = silu(gate) up, `from: [gate, up]`. */
#include "nn/layer_common.h"

static rp_err parse_swiglu(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)layer;
    (void)keys;
    (void)data;
    return RP_OK;
}

static rp_err plan_swiglu(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    if (!rp_shape_equal(&in[0], &in[1])) {
        char a[RP_LAYER_SHAPE_TEXT];
        char b[RP_LAYER_SHAPE_TEXT];
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': swiglu needs inputs of one shape, found %s and %s", layer->name,
                       rp_layer_shape_text(&in[0], a), rp_layer_shape_text(&in[1], b));
    }
    const double elements = (double)rp_shape_count(in);
    *out = (rp_layer_plan){
        .out = in[0],
        .needs_x = true,
        .flops_forward = 12 * elements,
        .flops_backward = 20 * elements,
    };
    return RP_OK;
}

static size_t element_count(const rp_layer_call *call) {
    return call->n * rp_shape_count(&call->plan->out);
}

static rp_err forward_swiglu(const rp_layer_call *call) {
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "swiglu", "swiglu_forward", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->y);
    rp_arg_tensor(&launch, call->x[0]);
    rp_arg_tensor(&launch, call->x[1]);
    rp_arg_u32(&launch, (uint32_t)element_count(call));
    return rp_layer_run_wide(&launch, element_count(call));
}

static rp_err backward_swiglu(const rp_layer_call *call) {
    rp_launch launch;
    if (!call->want_dx || (!call->dx[0] && !call->dx[1])) {
        return RP_OK;
    }
    rp_err err = rp_layer_begin(call, "swiglu", "swiglu_backward", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->dx[0]);
    rp_arg_tensor(&launch, call->dx[1]);
    rp_arg_tensor(&launch, call->dy);
    rp_arg_tensor(&launch, call->x[0]);
    rp_arg_tensor(&launch, call->x[1]);
    rp_arg_u32(&launch, (uint32_t)element_count(call));
    rp_arg_u32(&launch, call->dx_add[0]);
    rp_arg_u32(&launch, call->dx_add[1]);
    return rp_layer_run_wide(&launch, element_count(call));
}

const rp_layer_kind rp_layer_swiglu = {
    .name = "swiglu",
    .keys = "from",
    .source = "Shazeer 2020",
    .inputs_min = 2,
    .inputs_max = 2,
    .parse = parse_swiglu,
    .plan = plan_swiglu,
    .forward = forward_swiglu,
    .backward = backward_swiglu,
};
