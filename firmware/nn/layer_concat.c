/* Concatenates the inputs along one axis, usually the first (the channels of an image). */
#include "nn/layer_common.h"

typedef struct {
    uint32_t axis;
} concat_spec;

static rp_err parse_concat(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    concat_spec *spec = layer->spec;
    (void)data;
    *spec = (concat_spec){0};
    return rp_node_u32(keys, "axis", 0, RP_DIMS_MAX - 2, &spec->axis);
}

static rp_err fail_shapes(const rp_layer *layer, uint32_t axis, const rp_shape *a,
                          const rp_shape *b) {
    char text[2][RP_LAYER_SHAPE_TEXT];
    if (axis == 0) {
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': concat needs inputs that differ only in their first "
                       "dimension, found %s and %s",
                       layer->name, rp_layer_shape_text(a, text[0]),
                       rp_layer_shape_text(b, text[1]));
    }
    return rp_fail(RP_ERR_SHAPE,
                   "layer '%s': concat needs inputs that differ only in axis %u, found %s and %s",
                   layer->name, axis, rp_layer_shape_text(a, text[0]),
                   rp_layer_shape_text(b, text[1]));
}

static rp_err plan_concat(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const concat_spec *spec = layer->spec;
    const uint32_t axis = spec->axis;
    rp_shape sum = in[0];
    for (uint32_t i = 1; i < layer->input_count; i++) {
        rp_shape same = in[i];
        same.dim[axis] = in[0].dim[axis];
        if (axis >= in[0].dims || !rp_shape_equal(&in[0], &same) ||
            sum.dim[axis] > UINT32_MAX - in[i].dim[axis]) {
            return fail_shapes(layer, axis, &in[0], &in[i]);
        }
        sum.dim[axis] += in[i].dim[axis];
    }
    *out = (rp_layer_plan){.out = sum};
    return RP_OK;
}

/* Rows from the axis on: their number in a sample, and the length of one. */
static uint32_t count_rows(const rp_layer_call *call) {
    const concat_spec *spec = call->layer->spec;
    uint32_t rows = 1;
    for (uint32_t i = 0; i < spec->axis; i++) {
        rows *= call->in[0].dim[i];
    }
    return rows;
}

static uint32_t row_length(const rp_layer_call *call, uint32_t input) {
    return (uint32_t)rp_shape_count(&call->in[input]) / count_rows(call);
}

/* Rows of input i within the rows of y. */
static rp_rows part_of(const rp_layer_call *call, const rp_tensor *y, uint32_t index) {
    uint64_t first = y->offset;
    for (uint32_t i = 0; i < index; i++) {
        first += row_length(call, i);
    }
    return (rp_rows){y->buffer, first, rp_shape_count(&call->plan->out) / count_rows(call)};
}

static rp_err forward_concat(const rp_layer_call *call) {
    const uint32_t rows = call->n * count_rows(call);
    rp_err err = RP_OK;
    for (uint32_t i = 0; err == RP_OK && i < call->layer->input_count; i++) {
        const uint32_t length = row_length(call, i);
        err = rp_layer_copy_rows(call, part_of(call, call->y, i), rp_layer_rows(call->x[i], length),
                                 length, rows, false);
    }
    return err;
}

static rp_err backward_concat(const rp_layer_call *call) {
    const uint32_t rows = call->n * count_rows(call);
    rp_err err = RP_OK;
    for (uint32_t i = 0; err == RP_OK && call->want_dx && i < call->layer->input_count; i++) {
        const uint32_t length = row_length(call, i);
        if (call->dx[i]) {
            err = rp_layer_copy_rows(call, rp_layer_rows(call->dx[i], length),
                                     part_of(call, call->dy, i), length, rows, call->dx_add[i]);
        }
    }
    return err;
}

const rp_layer_kind rp_layer_concat = {
    .name = "concat",
    .keys = "from, axis",
    .source = "torch.cat, over the channels unless `axis` says otherwise",
    .spec_bytes = sizeof(concat_spec),
    .inputs_min = 2,
    .inputs_max = RP_LAYER_INPUTS_MAX,
    .parse = parse_concat,
    .plan = plan_concat,
    .forward = forward_concat,
    .backward = backward_concat,
};
