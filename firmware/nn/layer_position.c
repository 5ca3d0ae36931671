/* y[t] = x[t] + weight[t]: a trained vector for each position of a sequence [T, C]. The weight
 * [length, C] may have more rows than T. */
#include "nn/layer_common.h"

typedef struct {
    uint32_t length;
    float deviation;
} position_spec;

static rp_err parse_position(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    rp_err err;
    position_spec *spec = layer->spec;
    (void)data;
    *spec = (position_spec){.deviation = 1.0f};
    RP_TRY(rp_node_need(keys, "length"));
    RP_TRY(rp_node_u32(keys, "length", 1, RP_LAYER_OUT_MAX, &spec->length));
    RP_TRY(rp_node_f32(keys, "std", 0.0, 1e6, &spec->deviation));
fail:
    return err;
}

static rp_err plan_position(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const position_spec *spec = layer->spec;
    rp_err err = rp_layer_need_sequence(layer, in);
    if (err != RP_OK) {
        return err;
    }
    if (in->dim[0] > spec->length) {
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': a sample has %u tokens, but only %u positions (`length`)",
                       layer->name, in->dim[0], spec->length);
    }
    const double elements = (double)rp_shape_count(in);
    *out = (rp_layer_plan){
        .out = *in,
        .param_count = 1,
        .param = {{"weight", rp_shape_2(spec->length, in->dim[1]), RP_PARAM_TRAINED, RP_INIT_NORMAL,
                   spec->deviation}},
        .in_place = true,
        .flops_forward = elements,
        .flops_backward = elements,
    };
    return RP_OK;
}

static rp_err forward_position(const rp_layer_call *call) {
    const uint32_t count = (uint32_t)rp_shape_count(&call->in[0]);
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "positions", "position_forward", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->y);
    rp_arg_tensor(&launch, call->x[0]);
    rp_arg_buffer(&launch, call->param[0]->buffer);
    rp_arg_u32(&launch, call->n);
    rp_arg_u32(&launch, count);
    return rp_layer_run_wide(&launch, (size_t)rp_layer_divide_up(count, 16) * 16 * call->n);
}

static rp_err backward_position(const rp_layer_call *call) {
    const uint32_t count = (uint32_t)rp_shape_count(&call->in[0]);
    rp_err err = RP_OK;
    if (call->want_dw && call->dparam[0]) {
        const uint32_t total = (uint32_t)rp_shape_count(&call->plan->param[0].shape);
        RP_TRY(rp_layer_sum_samples(call, call->dparam[0]->buffer, rp_layer_rows(call->dy, count),
                                    count, total));
    }
    if (call->want_dx && call->dx[0]) {
        RP_TRY(rp_layer_copy(call, call->dx[0], call->dy, &call->in[0], call->dx_add[0]));
    }
fail:
    return err;
}

const rp_layer_kind rp_layer_position = {
    .name = "position",
    .keys = "length, std",
    .source = "Gehring et al. 2017, section 3.1; torch.nn.Embedding of the positions",
    .spec_bytes = sizeof(position_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_position,
    .plan = plan_position,
    .forward = forward_position,
    .backward = backward_position,
};
