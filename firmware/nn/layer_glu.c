/* y = a sigmoid(b), where a and b are the halves of the last axis: [.., 2 C] to [.., C]. */
#include "nn/layer_common.h"

enum { GROUP_ITEMS = 64 };

static rp_err parse_glu(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)layer;
    (void)keys;
    (void)data;
    return RP_OK;
}

static rp_err plan_glu(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    if (in->dims == 0 || in->dim[in->dims - 1] % 2 != 0) {
        char text[RP_LAYER_SHAPE_TEXT];
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': glu halves the last axis, which must be even; its input is %s",
                       layer->name, rp_layer_shape_text(in, text));
    }
    rp_shape shape = *in;
    shape.dim[shape.dims - 1] /= 2;
    const double elements = (double)rp_shape_count(&shape);
    *out = (rp_layer_plan){
        .out = shape,
        .needs_x = true,
        .flops_forward = 11 * elements,
        .flops_backward = 16 * elements,
    };
    return RP_OK;
}

/* The last arguments of both directions, and the launch; `add` < 0 omits that argument. */
static rp_err run_rows(const rp_layer_call *call, rp_launch *launch, int add) {
    const rp_shape *out = &call->plan->out;
    const uint32_t half = out->dim[out->dims - 1];
    const uint32_t rows = (uint32_t)(call->n * (rp_shape_count(out) / half));
    rp_arg_u32(launch, rows);
    rp_arg_u32(launch, half);
    if (add >= 0) {
        rp_arg_u32(launch, (uint32_t)add);
    }
    return rp_layer_run_items(launch, (size_t)rp_layer_divide_up(half, 16) * rows, GROUP_ITEMS);
}

static rp_err forward_glu(const rp_layer_call *call) {
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "glu", "glu_forward", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->y);
    rp_arg_tensor(&launch, call->x[0]);
    return run_rows(call, &launch, -1);
}

static rp_err backward_glu(const rp_layer_call *call) {
    rp_launch launch;
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    rp_err err = rp_layer_begin(call, "glu", "glu_backward", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->dx[0]);
    rp_arg_tensor(&launch, call->dy);
    rp_arg_tensor(&launch, call->x[0]);
    return run_rows(call, &launch, call->dx_add[0]);
}

const rp_layer_kind rp_layer_glu = {
    .name = "glu",
    .source = "Dauphin et al. 2017; torch.nn.GLU",
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_glu,
    .plan = plan_glu,
    .forward = forward_glu,
    .backward = backward_glu,
};
