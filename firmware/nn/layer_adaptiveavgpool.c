/* y [C, P, Q] = the means of P x Q bins of an image of any size. Along an axis of I pixels bin i of
 * O covers floor(i I / O) .. ceil((i + 1) I / O), so that the bins differ by a pixel in size and
 * neighbours may share one. O may be larger than I. */
#include "nn/layer_common.h"

enum {
    GROUP_ROWS = 16,
    SIDE_END = 1 << 24 /* times the most bins it fits 32 bits */
};

typedef struct {
    rp_pair out;
} adaptive_spec;

static rp_err parse_adaptiveavgpool(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    adaptive_spec *spec = layer->spec;
    (void)data;
    rp_err err = rp_node_need(keys, "out");
    return err == RP_OK ? rp_layer_read_pair(keys, "out", 1, RP_LAYER_WINDOW_MAX, &spec->out) : err;
}

/* Pixels of all bins along an axis; shared ones count twice. */
static double pixels_of_bins(uint32_t size, uint32_t bins) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < bins; i++) {
        sum += ((i + 1) * size + bins - 1) / bins - i * size / bins;
    }
    return (double)sum;
}

static rp_err plan_adaptiveavgpool(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const adaptive_spec *spec = layer->spec;
    rp_err err = rp_layer_need_image(layer, in);
    if (err != RP_OK) {
        return err;
    }
    if (in->dim[1] >= SIDE_END || in->dim[2] >= SIDE_END) {
        char text[RP_LAYER_SHAPE_TEXT];
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': adaptiveavgpool takes at most %d pixels along a side, its "
                       "input is %s",
                       layer->name, SIDE_END - 1, rp_layer_shape_text(in, text));
    }
    const double elements = in->dim[0] * pixels_of_bins(in->dim[1], spec->out.h) *
                            pixels_of_bins(in->dim[2], spec->out.w);
    *out = (rp_layer_plan){
        .out = rp_shape_3(in->dim[0], spec->out.h, spec->out.w),
        .flops_forward = elements,
        .flops_backward = elements,
    };
    return RP_OK;
}

/* Launches `entry` over rows of which a plane has `row_height`; `add` < 0 omits that argument. */
static rp_err run_rows(const rp_layer_call *call, const char *entry, const rp_tensor *to,
                       const rp_tensor *from, uint32_t row_height, int add) {
    const rp_shape *in = &call->in[0];
    const rp_shape *out = &call->plan->out;
    const size_t rows = (size_t)call->n * in->dim[0] * row_height;
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "adaptivepool", entry, NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, to);
    rp_arg_tensor(&launch, from);
    rp_arg_u32(&launch, (uint32_t)rows);
    rp_arg_u32(&launch, in->dim[1]);
    rp_arg_u32(&launch, in->dim[2]);
    rp_arg_u32(&launch, out->dim[1]);
    rp_arg_u32(&launch, out->dim[2]);
    if (add >= 0) {
        rp_arg_u32(&launch, (uint32_t)add);
    }
    return rp_layer_run_items(&launch, rows, GROUP_ROWS);
}

static rp_err forward_adaptiveavgpool(const rp_layer_call *call) {
    return run_rows(call, "adaptive_forward", call->y, call->x[0], call->plan->out.dim[1], -1);
}

static rp_err backward_adaptiveavgpool(const rp_layer_call *call) {
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    return run_rows(call, "adaptive_backward", call->dx[0], call->dy, call->in[0].dim[1],
                    call->dx_add[0]);
}

const rp_layer_kind rp_layer_adaptiveavgpool = {
    .name = "adaptiveavgpool",
    .keys = "out",
    .source = "torch.nn.AdaptiveAvgPool2d",
    .spec_bytes = sizeof(adaptive_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_adaptiveavgpool,
    .plan = plan_adaptiveavgpool,
    .forward = forward_adaptiveavgpool,
    .backward = backward_adaptiveavgpool,
};
