/* A tensor as a value: `parameter` is trained, `constant` is stored with the weights and never
 * changes. They read nothing; every sample of y is the tensor. */
#include "nn/axes.h"

typedef struct {
    rp_shape shape;
    float value; /* parameter: standard deviation of the first values; constant: the first values */
} parameter_spec;

static rp_err parse_parameter(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    parameter_spec *spec = layer->spec;
    rp_err err;
    (void)data;
    *spec = (parameter_spec){0};
    RP_TRY(rp_axes_read_shape(keys, "shape", &spec->shape));
    RP_TRY(rp_node_f32(keys, "std", 0.0, 1e6, &spec->value));
fail:
    return err;
}

static rp_err parse_constant(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    parameter_spec *spec = layer->spec;
    rp_err err;
    (void)data;
    *spec = (parameter_spec){0};
    RP_TRY(rp_axes_read_shape(keys, "shape", &spec->shape));
    RP_TRY(rp_node_f32(keys, "value", -1e30, 1e30, &spec->value));
fail:
    return err;
}

static rp_err plan_parameter(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const parameter_spec *spec = layer->spec;
    (void)in;
    *out = (rp_layer_plan){
        .out = spec->shape,
        .param_count = 1,
        .param = {{"weight", spec->shape, RP_PARAM_TRAINED,
                   spec->value > 0 ? RP_INIT_NORMAL : RP_INIT_ZERO, spec->value}},
        .flops_backward = (double)rp_shape_count(&spec->shape),
    };
    return RP_OK;
}

static rp_err plan_constant(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const parameter_spec *spec = layer->spec;
    (void)in;
    *out = (rp_layer_plan){
        .out = spec->shape,
        .param_count = 1,
        .param = {{"weight", spec->shape, RP_PARAM_FROZEN, RP_INIT_CONSTANT, spec->value}},
    };
    return RP_OK;
}

static rp_err forward_parameter(const rp_layer_call *call) {
    const uint32_t count = (uint32_t)rp_shape_count(&call->plan->out);
    const rp_rows weight = {call->param[0]->buffer, 0, 0};
    return rp_layer_copy_rows(call, rp_layer_rows(call->y, count), weight, count, call->n, false);
}

static rp_err backward_parameter(const rp_layer_call *call) {
    const uint32_t count = (uint32_t)rp_shape_count(&call->plan->out);
    return call->want_dw && call->dparam[0]
               ? rp_layer_sum_samples(call, call->dparam[0]->buffer, rp_layer_rows(call->dy, count),
                                      count, count)
               : RP_OK;
}

#define PARAMETER(id, own_keys, about)                                                             \
    const rp_layer_kind rp_layer_##id = {                                                          \
        .name = #id,                                                                               \
        .keys = own_keys,                                                                          \
        .source = about,                                                                           \
        .spec_bytes = sizeof(parameter_spec),                                                      \
        .parse = parse_##id,                                                                       \
        .plan = plan_##id,                                                                         \
        .forward = forward_parameter,                                                              \
        .backward = backward_parameter,                                                            \
    }

PARAMETER(parameter, "shape, std", "torch.nn.Parameter");
PARAMETER(constant, "shape, value", "torch.nn.Module.register_buffer");
