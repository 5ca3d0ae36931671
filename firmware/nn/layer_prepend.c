/* A sequence [T, C] with a trained row, the weight [C], before its first step: [T + 1, C]. */
#include "nn/layer_common.h"

typedef struct {
    float deviation;
} prepend_spec;

static rp_err parse_prepend(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    prepend_spec *spec = layer->spec;
    (void)data;
    *spec = (prepend_spec){.deviation = 0.0f};
    return rp_node_f32(keys, "std", 0.0, 1e6, &spec->deviation);
}

static rp_err plan_prepend(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const prepend_spec *spec = layer->spec;
    rp_err err = rp_layer_need_sequence(layer, in);
    if (err == RP_OK) {
        *out = (rp_layer_plan){
            .out = rp_shape_2(in->dim[0] + 1, in->dim[1]),
            .param_count = 1,
            .param = {{"weight", rp_shape_1(in->dim[1]), RP_PARAM_TRAINED,
                       spec->deviation > 0 ? RP_INIT_NORMAL : RP_INIT_ZERO, spec->deviation}},
            .flops_backward = in->dim[1],
        };
    }
    return err;
}

/* The samples of y or dy, without their first `skip` elements. */
static rp_rows rows_of(const rp_layer_call *call, const rp_tensor *y, uint32_t skip) {
    return (rp_rows){y->buffer, y->offset + skip, rp_shape_count(&call->plan->out)};
}

static rp_err forward_prepend(const rp_layer_call *call) {
    const uint32_t columns = call->in[0].dim[1];
    const uint32_t count = (uint32_t)rp_shape_count(&call->in[0]);
    const rp_rows weight = {call->param[0]->buffer, 0, 0};
    rp_err err;
    RP_TRY(rp_layer_copy_rows(call, rows_of(call, call->y, 0), weight, columns, call->n, false));
    RP_TRY(rp_layer_copy_rows(call, rows_of(call, call->y, columns),
                              rp_layer_rows(call->x[0], count), count, call->n, false));
fail:
    return err;
}

static rp_err backward_prepend(const rp_layer_call *call) {
    const uint32_t columns = call->in[0].dim[1];
    const uint32_t count = (uint32_t)rp_shape_count(&call->in[0]);
    rp_err err = RP_OK;
    if (call->want_dw && call->dparam[0]) {
        RP_TRY(rp_layer_sum_samples(call, call->dparam[0]->buffer, rows_of(call, call->dy, 0),
                                    columns, columns));
    }
    if (call->want_dx && call->dx[0]) {
        RP_TRY(rp_layer_copy_rows(call, rp_layer_rows(call->dx[0], count),
                                  rows_of(call, call->dy, columns), count, call->n,
                                  call->dx_add[0]));
    }
fail:
    return err;
}

const rp_layer_kind rp_layer_prepend = {
    .name = "prepend",
    .keys = "std",
    .source = "Dosovitskiy et al. 2021, eq. 1; torchvision's class_token",
    .spec_bytes = sizeof(prepend_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_prepend,
    .plan = plan_prepend,
    .forward = forward_prepend,
    .backward = backward_prepend,
};
