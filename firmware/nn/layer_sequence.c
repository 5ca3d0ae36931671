/* The pixels of an image [C, H, W] as the rows of a sequence [H W, C], row by row of the image. */
#include "nn/layer_common.h"

enum { GROUP_ITEMS = 64, BLOCK = 16 /* rows and columns of an item, as in kernels/transpose.cl */ };

static rp_err parse_sequence(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)layer;
    (void)keys;
    (void)data;
    return RP_OK;
}

static rp_err plan_sequence(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    rp_err err = rp_layer_need_image(layer, in);
    if (err == RP_OK) {
        *out = (rp_layer_plan){.out = rp_shape_2(in->dim[1] * in->dim[2], in->dim[0])};
    }
    return err;
}

/* to (+)= from, whose samples are matrices [rows, columns], transposed. */
static rp_err transpose(const rp_layer_call *call, const rp_tensor *to, const rp_tensor *from,
                        uint32_t rows, uint32_t columns, bool add) {
    const size_t blocks =
        (size_t)rp_layer_divide_up(rows, BLOCK) * rp_layer_divide_up(columns, BLOCK);
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "transpose", "transpose", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, to);
    rp_arg_tensor(&launch, from);
    rp_arg_u32(&launch, rows);
    rp_arg_u32(&launch, columns);
    rp_arg_u32(&launch, call->n);
    rp_arg_u32(&launch, add);
    return rp_layer_run_items(&launch, blocks * call->n, GROUP_ITEMS);
}

static rp_err forward_sequence(const rp_layer_call *call) {
    const rp_shape *out = &call->plan->out;
    return transpose(call, call->y, call->x[0], out->dim[1], out->dim[0], false);
}

static rp_err backward_sequence(const rp_layer_call *call) {
    const rp_shape *out = &call->plan->out;
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    return transpose(call, call->dx[0], call->dy, out->dim[0], out->dim[1], call->dx_add[0]);
}

const rp_layer_kind rp_layer_sequence = {
    .name = "sequence",
    .source = "x.flatten(2).transpose(1, 2) in PyTorch; Dosovitskiy et al. 2021, eq. 1",
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_sequence,
    .plan = plan_sequence,
    .forward = forward_sequence,
    .backward = backward_sequence,
};
