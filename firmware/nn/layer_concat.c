/* Concatenates the inputs along their first dimension (the channels of an image). */
#include "nn/layer_common.h"

static rp_err parse_concat(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)layer;
    (void)keys;
    (void)data;
    return RP_OK;
}

static rp_err plan_concat(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    rp_shape sum = in[0];
    for (uint32_t i = 1; i < layer->input_count; i++) {
        rp_shape same = in[i];
        same.dim[0] = in[0].dim[0];
        if (!rp_shape_equal(&in[0], &same) || sum.dim[0] > UINT32_MAX - in[i].dim[0]) {
            char a[RP_LAYER_SHAPE_TEXT];
            char b[RP_LAYER_SHAPE_TEXT];
            return rp_fail(RP_ERR_SHAPE,
                           "layer '%s': concat needs inputs that differ only in their first "
                           "dimension, found %s and %s",
                           layer->name, rp_layer_shape_text(&in[0], a),
                           rp_layer_shape_text(&in[i], b));
        }
        sum.dim[0] += in[i].dim[0];
    }
    *out = (rp_layer_plan){.out = sum};
    return RP_OK;
}

/* Rows of input i within the rows of y. */
static rp_rows part_of(const rp_layer_call *call, const rp_tensor *y, uint32_t index) {
    uint64_t first = y->offset;
    for (uint32_t i = 0; i < index; i++) {
        first += rp_shape_count(&call->in[i]);
    }
    return (rp_rows){y->buffer, first, rp_shape_count(&call->plan->out)};
}

static rp_err forward_concat(const rp_layer_call *call) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; err == RP_OK && i < call->layer->input_count; i++) {
        const uint32_t count = (uint32_t)rp_shape_count(&call->in[i]);
        err = rp_layer_copy_rows(call, part_of(call, call->y, i), rp_layer_rows(call->x[i], count),
                                 count, call->n, false);
    }
    return err;
}

static rp_err backward_concat(const rp_layer_call *call) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; err == RP_OK && call->want_dx && i < call->layer->input_count; i++) {
        const uint32_t count = (uint32_t)rp_shape_count(&call->in[i]);
        if (call->dx[i]) {
            err = rp_layer_copy_rows(call, rp_layer_rows(call->dx[i], count),
                                     part_of(call, call->dy, i), count, call->n, call->dx_add[i]);
        }
    }
    return err;
}

const rp_layer_kind rp_layer_concat = {
    .name = "concat",
    .keys = "from",
    .source = "torch.cat over the channels",
    .inputs_min = 2,
    .inputs_max = RP_LAYER_INPUTS_MAX,
    .parse = parse_concat,
    .plan = plan_concat,
    .forward = forward_concat,
    .backward = backward_concat,
};
