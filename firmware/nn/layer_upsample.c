/* Images [C, H, W] become [C, scale H, scale W], where both sides may have a scale of their own.
 * `nearest` repeats each pixel; `bilinear`
 * interpolates between pixels whose centres (or with `align_corners` whose corner pixels) coincide
 * with those of the output. */
#include <stdio.h>

#include "nn/layer_common.h"

enum { SCALE_MAX = 64, SIDE_MAX = 1 << 15, GROUP_ITEMS = 64, VECTOR = 16 };

typedef enum { NEAREST, BILINEAR } upsample_mode;

typedef struct {
    rp_pair scale;
    uint32_t mode; /* upsample_mode */
    bool align_corners;
} upsample_spec;

static rp_err parse_upsample(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    static const char *const modes[] = {"nearest", "bilinear", NULL};
    upsample_spec *spec = layer->spec;
    rp_err err;
    (void)data;
    *spec = (upsample_spec){.scale = rp_pair_same(2), .mode = NEAREST};
    RP_TRY(rp_layer_read_pair(keys, "scale", 1, SCALE_MAX, &spec->scale));
    RP_TRY(rp_node_word(keys, "mode", modes, &spec->mode));
    RP_TRY(rp_node_bool(keys, "align_corners", &spec->align_corners));
    if (spec->align_corners && spec->mode != BILINEAR) {
        return rp_node_fail(rp_node_find(keys, "align_corners"), "needs `mode: bilinear`");
    }
    return RP_OK;
fail:
    return err;
}

static rp_err plan_upsample(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const upsample_spec *spec = layer->spec;
    rp_err err = rp_layer_need_image(layer, in);
    if (err != RP_OK) {
        return err;
    }
    const uint64_t p = (uint64_t)spec->scale.h * in->dim[1];
    const uint64_t q = (uint64_t)spec->scale.w * in->dim[2];
    const rp_shape shape = rp_shape_3(in->dim[0], (uint32_t)p, (uint32_t)q);
    if (p > SIDE_MAX || q > SIDE_MAX || !rp_shape_check(&shape)) {
        char scale[RP_LAYER_PAIR_TEXT];
        char text[RP_LAYER_SHAPE_TEXT];
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': %s times the sides of %s is too large, the limit is %d pixels "
                       "on a side and 2^31 in all",
                       layer->name, rp_layer_pair_text(spec->scale, scale),
                       rp_layer_shape_text(in, text), SIDE_MAX);
    }
    const double outputs = (double)rp_shape_count(&shape);
    *out = (rp_layer_plan){
        .out = shape,
        .flops_forward = spec->mode == NEAREST ? outputs : 7 * outputs,
        .flops_backward = spec->mode == NEAREST ? outputs : 8 * outputs,
    };
    return RP_OK;
}

/* step, shift and den of kernels/upsample.cl for an axis of `size` inputs. */
static void add_axis(rp_launch *launch, const upsample_spec *spec, uint32_t scale, uint32_t size) {
    int32_t step = 1;
    int32_t shift = 0;
    int32_t den = (int32_t)scale;
    if (spec->align_corners) {
        const int32_t last = (int32_t)(scale * size) - 1;
        /* All outputs of a single input have position 0. */
        step = size > 1 ? (int32_t)size - 1 : 1;
        shift = size > 1 ? 0 : -last;
        den = last > 0 ? last : 1;
    } else if (spec->mode == BILINEAR) {
        step = 2;
        shift = 1 - (int32_t)scale;
        den = 2 * (int32_t)scale;
    }
    rp_arg_i32(launch, step);
    rp_arg_i32(launch, shift);
    rp_arg_i32(launch, den);
}

static rp_err begin_upsample(const rp_layer_call *call, const char *entry, rp_launch *launch) {
    const upsample_spec *spec = call->layer->spec;
    char defines[32];
    snprintf(defines, sizeof defines, "-DLINEAR=%d", spec->mode == BILINEAR);
    return rp_layer_begin(call, "upsample", entry, defines, launch);
}

/* Adds the arguments that both directions have. */
static void add_sizes(const rp_layer_call *call, rp_launch *launch) {
    const upsample_spec *spec = call->layer->spec;
    const rp_shape *in = &call->in[0];
    const rp_shape *out = &call->plan->out;
    rp_arg_u32(launch, call->n * in->dim[0]);
    rp_arg_i32(launch, (int32_t)in->dim[1]);
    rp_arg_i32(launch, (int32_t)in->dim[2]);
    rp_arg_i32(launch, (int32_t)out->dim[1]);
    rp_arg_i32(launch, (int32_t)out->dim[2]);
    add_axis(launch, spec, spec->scale.h, in->dim[1]);
    add_axis(launch, spec, spec->scale.w, in->dim[2]);
}

/* One item for each 16 columns of a row of images of this shape. */
static rp_err run_rows(const rp_layer_call *call, rp_launch *launch, const rp_shape *image) {
    const size_t rows = (size_t)call->n * image->dim[0] * image->dim[1];
    return rp_layer_run_items(launch, rows * rp_layer_divide_up(image->dim[2], VECTOR),
                              GROUP_ITEMS);
}

static rp_err forward_upsample(const rp_layer_call *call) {
    rp_launch launch;
    rp_err err = begin_upsample(call, "upsample_forward", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->y);
    rp_arg_tensor(&launch, call->x[0]);
    add_sizes(call, &launch);
    return run_rows(call, &launch, &call->plan->out);
}

static rp_err backward_upsample(const rp_layer_call *call) {
    rp_launch launch;
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    rp_err err = begin_upsample(call, "upsample_backward", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->dx[0]);
    rp_arg_tensor(&launch, call->dy);
    add_sizes(call, &launch);
    rp_arg_u32(&launch, call->dx_add[0]);
    return run_rows(call, &launch, &call->in[0]);
}

const rp_layer_kind rp_layer_upsample = {
    .name = "upsample",
    .keys = "scale, mode, align_corners",
    .source = "torch.nn.Upsample",
    .spec_bytes = sizeof(upsample_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_upsample,
    .plan = plan_upsample,
    .forward = forward_upsample,
    .backward = backward_upsample,
};
