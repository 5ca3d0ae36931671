/* y = x0 + x1 + ..., from left to right: the sum of a residual connection. Two operands of
 * different shapes are broadcast. */
#include "nn/map.h"

static const rp_map broadcast_add = {
    .name = "add", .operands = 2, .gradient = RP_MAP_LINEAR, .factor = {1.0f, 1.0f}};

static bool is_broadcast(uint32_t inputs, const rp_shape *in) {
    return inputs == 2 && !rp_shape_equal(&in[0], &in[1]);
}

static rp_err parse_add(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)layer;
    (void)keys;
    (void)data;
    return RP_OK;
}

static rp_err plan_add(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    if (is_broadcast(layer->input_count, in)) {
        return rp_map_plan(&broadcast_add, layer, in, out);
    }
    for (uint32_t i = 1; i < layer->input_count; i++) {
        if (!rp_shape_equal(&in[0], &in[i])) {
            char a[RP_LAYER_SHAPE_TEXT];
            char b[RP_LAYER_SHAPE_TEXT];
            return rp_fail(
                RP_ERR_SHAPE, "layer '%s': add needs inputs of one shape, found %s and %s",
                layer->name, rp_layer_shape_text(&in[0], a), rp_layer_shape_text(&in[i], b));
        }
    }
    const double sums = (double)rp_shape_count(in) * (layer->input_count - 1);
    *out = (rp_layer_plan){
        .out = in[0],
        .in_place = true,
        .flops_forward = sums,
        .flops_backward = sums,
    };
    return RP_OK;
}

static rp_err forward_add(const rp_layer_call *call) {
    if (is_broadcast(call->layer->input_count, call->in)) {
        return rp_map_forward(&broadcast_add, call);
    }
    const size_t count = call->n * rp_shape_count(&call->plan->out);
    for (uint32_t i = 1; i < call->layer->input_count; i++) {
        rp_launch launch;
        rp_err err = rp_layer_begin(call, "copy", "sum_two", NULL, &launch);
        if (err != RP_OK) {
            return err;
        }
        rp_arg_tensor(&launch, call->y);
        rp_arg_tensor(&launch, i == 1 ? call->x[0] : call->y);
        rp_arg_tensor(&launch, call->x[i]);
        rp_arg_u32(&launch, (uint32_t)count);
        err = rp_layer_run_wide(&launch, count);
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}

static rp_err backward_add(const rp_layer_call *call) {
    if (is_broadcast(call->layer->input_count, call->in)) {
        return rp_map_backward(&broadcast_add, call);
    }
    for (uint32_t i = 0; call->want_dx && i < call->layer->input_count; i++) {
        if (call->dx[i]) {
            rp_err err =
                rp_layer_copy(call, call->dx[i], call->dy, &call->plan->out, call->dx_add[i]);
            if (err != RP_OK) {
                return err;
            }
        }
    }
    return RP_OK;
}

const rp_layer_kind rp_layer_add = {
    .name = "add",
    .keys = "from",
    .source = "He et al. 2016, eq. 1",
    .inputs_min = 2,
    .inputs_max = RP_LAYER_INPUTS_MAX,
    .parse = parse_add,
    .plan = plan_add,
    .forward = forward_add,
    .backward = backward_add,
};
