/* y = conv(x, W) + b, cross-correlation (the kernel is not flipped); W [K, C / groups, R, S].
 *
 * Each group is three matrix products whose operands are views of the images: y = W patches(x), dW
 * = dy patches(x)', and dx = W'' patches(dy) for stride 1. With a larger stride most of those
 * patches would be zeros, so there dx = gather(W' dy): first the columns, then each pixel sums the
 * columns to which it contributed. With a fused ReLU dy counts where y > 0.
 *
 * If few channels make those products thin, conv_direct.c and conv_flat.c avoid them.
 *
 * Workspace: what the GEMMs need, masked dy, then columns of dx or chunks of a sum. The batch is
 * processed in chunks of as many images as fit WORK_BYTES: their number depends only on the shapes,
 * and so does the order of every sum.
 *
 * Trap: a NaN in x next to a border, because padding is 0 and not a clamped pixel times 0. */
#include "nn/conv.h"

#include <math.h>

enum {
    WORK_BYTES = 64 << 20 /* limit for the operands of one product */
};

typedef struct {
    rp_mat c, a, b;
} product;

/* The products; COLUMNS is the first half of the gradient of x for stride > 1. */
typedef enum { FORWARD, WEIGHT, INPUT, COLUMNS, PRODUCTS } which;

/* The buffers of a product; all NULL when only sizes are computed. */
typedef struct {
    rp_buffer *w, *dw;
    rp_rows y, x, dy, dx, columns;
} operands;

static rp_err parse_conv2d(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    rp_conv_spec *spec = layer->spec;
    rp_err err;
    *spec = (rp_conv_spec){.stride = {1, 1}, .dilation = {1, 1}, .groups = 1, .bias = true};
    RP_TRY(rp_layer_read_out(keys, data, &spec->out));
    RP_TRY(rp_node_need(keys, "kernel"));
    RP_TRY(rp_layer_read_pair(keys, "kernel", 1, RP_LAYER_WINDOW_MAX, &spec->kernel));
    RP_TRY(rp_layer_read_pair(keys, "stride", 1, RP_LAYER_WINDOW_MAX, &spec->stride));
    RP_TRY(rp_layer_read_pair(keys, "pad", 0, RP_LAYER_WINDOW_MAX, &spec->pad));
    RP_TRY(rp_layer_read_pair(keys, "dilation", 1, RP_LAYER_WINDOW_MAX, &spec->dilation));
    RP_TRY(rp_node_u32(keys, "groups", 1, RP_LAYER_OUT_MAX, &spec->groups));
    RP_TRY(rp_node_bool(keys, "bias", &spec->bias));
    if (spec->out % spec->groups != 0) {
        return rp_node_fail(rp_node_find(keys, "groups"),
                            "`out` is %u, expected a multiple of `groups`, %u", spec->out,
                            spec->groups);
    }
    return RP_OK;
fail:
    return err;
}

static rp_err plan_conv2d(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const rp_conv_spec *spec = layer->spec;
    rp_err err = rp_layer_need_image(layer, in);
    if (err != RP_OK) {
        return err;
    }
    if (in->dim[0] % spec->groups != 0) {
        return rp_fail(RP_ERR_SHAPE, "layer '%s': %u channels are not divisible by groups %u",
                       layer->name, in->dim[0], spec->groups);
    }
    const uint32_t p = rp_layer_window_count(in->dim[1], spec->kernel.h, spec->stride.h,
                                             spec->pad.h, spec->dilation.h, false);
    const uint32_t q = rp_layer_window_count(in->dim[2], spec->kernel.w, spec->stride.w,
                                             spec->pad.w, spec->dilation.w, false);
    if (p == 0 || q == 0) {
        char text[RP_LAYER_SHAPE_TEXT];
        char pad[RP_LAYER_PAIR_TEXT];
        char dilation[RP_LAYER_PAIR_TEXT];
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': a %ux%u kernel with pad %s, dilation %s does not fit into %s",
                       layer->name, spec->kernel.h, spec->kernel.w,
                       rp_layer_pair_text(spec->pad, pad),
                       rp_layer_pair_text(spec->dilation, dilation), rp_layer_shape_text(in, text));
    }
    const uint32_t cg = in->dim[0] / spec->groups;
    const rp_shape weight = rp_shape_4(spec->out, cg, spec->kernel.h, spec->kernel.w);
    const double fan_in = (double)cg * spec->kernel.h * spec->kernel.w;
    const float bound = (float)(1.0 / sqrt(fan_in));
    *out = (rp_layer_plan){
        .out = rp_shape_3(spec->out, p, q),
        .param_count = spec->bias ? 2 : 1,
        .param = {[RP_CONV_WEIGHT] = {"weight", weight, RP_PARAM_TRAINED, RP_INIT_UNIFORM, bound},
                  [RP_CONV_BIAS] = {"bias", rp_shape_1(spec->out), RP_PARAM_TRAINED,
                                    RP_INIT_UNIFORM, bound}},
        .needs_x = !layer->frozen,
        .needs_y = spec->relu,
        .flops_forward = 2 * fan_in * spec->out * p * q,
        .flops_backward = (layer->frozen ? 2 : 4) * fan_in * spec->out * p * q,
    };
    return RP_OK;
}

static bool fuse_relu(rp_layer *layer) {
    rp_conv_spec *spec = layer->spec;
    spec->relu = true;
    return true;
}

/* ---- the products --------------------------------------------------------------------------- */

/* Position of a product: `images` images from `first` on, one group. */
typedef struct {
    uint32_t group, first, images;
} part;

static rp_mat channels_of(rp_rows of, const part *at, uint32_t total, uint32_t count,
                          uint32_t pixels) {
    rp_mat mat = rp_mat_channels(of.buffer, at->images, total, at->group * count, count, pixels);
    mat.offset += of.first + (uint64_t)at->first * total * pixels;
    return mat;
}

static bool is_one(rp_pair pair) {
    return pair.h == 1 && pair.w == 1;
}

static bool is_pointwise(const rp_conv *v) {
    const rp_pair pad = v->spec->pad;
    return v->taps == 1 && is_one(v->spec->stride) && pad.h == 0 && pad.w == 0;
}

/* Where a window of x takes its elements, along one axis. */
static rp_patch_axis axis_of_x(uint32_t stride, uint32_t dilation, uint32_t pad) {
    return (rp_patch_axis){.mul = (int32_t)stride, .step = (int32_t)dilation, .off = -(int32_t)pad};
}

/* To which windows of stride 1 a pixel of x contributes, along one axis. */
static rp_patch_axis axis_of_dy(uint32_t dilation, uint32_t pad) {
    return (rp_patch_axis){.mul = 1, .step = -(int32_t)dilation, .off = (int32_t)pad};
}

static rp_mat patches_of_x(const rp_conv *v, const part *at, rp_rows x) {
    if (is_pointwise(v)) {
        return channels_of(x, at, v->c, v->cg, v->h * v->w);
    }
    return (rp_mat){
        .kind = RP_MAT_PATCHES,
        .buffer = x.buffer,
        .rows = v->cg * v->taps,
        .cols = at->images * v->p * v->q,
        .offset = x.first + (uint64_t)at->first * v->c * v->h * v->w,
        .patches = {.channels_total = v->c,
                    .channel_first = at->group * v->cg,
                    .channels = v->cg,
                    .h = v->h,
                    .w = v->w,
                    .r = v->spec->kernel.h,
                    .s = v->spec->kernel.w,
                    .p = v->p,
                    .q = v->q,
                    .y = axis_of_x(v->spec->stride.h, v->spec->dilation.h, v->spec->pad.h),
                    .x = axis_of_x(v->spec->stride.w, v->spec->dilation.w, v->spec->pad.w),
                    .div = 1}};
}

/* For stride 1: rows (k, r, s) of the pixels of dy to which a pixel of x contributed. */
static rp_mat patches_of_dy(const rp_conv *v, const part *at, rp_rows dy) {
    if (is_pointwise(v)) {
        return channels_of(dy, at, v->k, v->kg, v->p * v->q);
    }
    return (rp_mat){.kind = RP_MAT_PATCHES,
                    .buffer = dy.buffer,
                    .rows = v->kg * v->taps,
                    .cols = at->images * v->h * v->w,
                    .offset = dy.first + (uint64_t)at->first * v->k * v->p * v->q,
                    .patches = {.channels_total = v->k,
                                .channel_first = at->group * v->kg,
                                .channels = v->kg,
                                .h = v->p,
                                .w = v->q,
                                .r = v->spec->kernel.h,
                                .s = v->spec->kernel.w,
                                .p = v->h,
                                .q = v->w,
                                .y = axis_of_dy(v->spec->dilation.h, v->spec->pad.h),
                                .x = axis_of_dy(v->spec->dilation.w, v->spec->pad.w),
                                .div = 1}};
}

static rp_mat weight_of(const rp_conv *v, const part *at, const rp_buffer *w) {
    const uint32_t wide = v->cg * v->taps;
    return rp_mat_plain(w, (uint64_t)at->group * v->kg * wide, v->kg, wide);
}

/* The group's weights as cg x (k, r, s). */
static rp_mat weight_by_channel(const rp_conv *v, const part *at, const rp_buffer *w) {
    return (rp_mat){.kind = RP_MAT_STRIDED,
                    .buffer = w,
                    .rows = v->cg,
                    .cols = v->kg * v->taps,
                    .offset = (uint64_t)at->group * v->kg * v->cg * v->taps,
                    .row_stride = v->taps,
                    .outer_stride = (uint64_t)v->cg * v->taps,
                    .inner_stride = 1,
                    .inner = v->taps};
}

static product product_of(const rp_conv *v, which kind, const part *at, const operands *o) {
    const uint32_t pixels = v->p * v->q;
    const rp_mat dy = channels_of(o->dy, at, v->k, v->kg, pixels);
    switch (kind) {
    case FORWARD:
        return (product){channels_of(o->y, at, v->k, v->kg, pixels), weight_of(v, at, o->w),
                         patches_of_x(v, at, o->x)};
    case WEIGHT:
        return (product){weight_of(v, at, o->dw), dy, rp_mat_transposed(patches_of_x(v, at, o->x))};
    case INPUT:
        return (product){channels_of(o->dx, at, v->c, v->cg, v->h * v->w),
                         weight_by_channel(v, at, o->w), patches_of_dy(v, at, o->dy)};
    case COLUMNS:
    case PRODUCTS:
        break;
    }
    return (product){
        rp_mat_plain(o->columns.buffer, o->columns.first, v->cg * v->taps, at->images * pixels),
        rp_mat_transposed(weight_of(v, at, o->w)), dy};
}

/* ---- sizes ---------------------------------------------------------------------------------- */

/* The implementation of a convolution: GEMMs here; see also conv_direct.c and conv_flat.c. */
typedef enum { GEMMS, DIRECT, FLAT } way;

/* Layout of the workspace; all in floats. */
typedef struct {
    way way;
    uint32_t images[PRODUCTS]; /* processed together */
    size_t mask_first, tail_first, end;
} layout;

static size_t column_floats(const rp_conv *v, which kind, uint32_t images) {
    return kind == COLUMNS ? (size_t)v->cg * v->taps * images * v->p * v->q : 0;
}

static size_t product_bytes(const rp_conv *v, which kind, uint32_t images, rp_gemm_choice choice) {
    const operands none = {0};
    const product p = product_of(v, kind, &(part){0, 0, images}, &none);
    return rp_gemm_workspace_bytes(choice, &p.c, &p.a, &p.b);
}

/* The largest number of images that keeps one product within WORK_BYTES, at least 1. */
static uint32_t images_at_once(const rp_conv *v, which kind, rp_gemm_choice choice) {
    uint32_t fits = 1;
    uint32_t too_many = v->n + 1;
    while (too_many - fits > 1) {
        uint32_t half = too_many == v->n + 1 && fits == 1 ? v->n : (fits + too_many) / 2;
        size_t bytes =
            product_bytes(v, kind, half, choice) + column_floats(v, kind, half) * sizeof(float);
        if (bytes <= WORK_BYTES) {
            fits = half;
        } else {
            too_many = half;
        }
    }
    return fits;
}

static bool is_used(const rp_conv *v, which kind) {
    const bool one = is_one(v->spec->stride);
    return kind == INPUT ? one : kind != COLUMNS || !one;
}

static way way_of(const rp_conv *v, rp_gemm_choice choice) {
    if (rp_conv_is_direct(v)) {
        return DIRECT;
    }
    return !v->transposed && rp_conv_is_flat(v, choice) ? FLAT : GEMMS;
}

static layout layout_of(const rp_conv *v, rp_gemm_choice choice) {
    layout l = {.way = way_of(v, choice)};
    size_t gemm_bytes = 0;
    size_t tail = 0;
    for (which kind = FORWARD; kind < PRODUCTS && l.way == GEMMS; kind++) {
        if (is_used(v, kind)) {
            l.images[kind] = images_at_once(v, kind, choice);
            size_t bytes = product_bytes(v, kind, l.images[kind], choice);
            size_t floats = column_floats(v, kind, l.images[kind]);
            gemm_bytes = bytes > gemm_bytes ? bytes : gemm_bytes;
            tail = floats > tail ? floats : tail;
        }
    }
    if (l.way == DIRECT) {
        tail = rp_conv_direct_part_floats(v);
    } else if (l.way == FLAT) {
        tail = rp_conv_flat_floats(v);
    }
    size_t bias = v->spec->bias ? rp_layer_bias_floats(v->n, v->k, v->p * v->q) : 0;
    l.mask_first = (gemm_bytes + sizeof(float) - 1) / sizeof(float);
    l.tail_first = l.mask_first + (v->spec->relu ? (size_t)v->n * v->k * v->p * v->q : 0);
    l.end = l.tail_first + (bias > tail ? bias : tail);
    return l;
}

size_t rp_conv_workspace_bytes(const rp_conv *v, rp_gemm_choice choice) {
    return layout_of(v, choice).end * sizeof(float);
}

static size_t workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan_of,
                              const rp_shape *in, uint32_t n, rp_gemm_choice choice) {
    const rp_conv v = rp_conv_of(layer, plan_of, in, n);
    return rp_conv_workspace_bytes(&v, choice);
}

/* ---- running -------------------------------------------------------------------------------- */

static rp_err run_conv(const rp_layer_call *call, const rp_conv *v, which kind, const part *at,
                       const operands *o) {
    const product p = product_of(v, kind, at, o);
    rp_epilogue epilogue = {0};
    if (kind == FORWARD && v->spec->bias) {
        epilogue.bias_axis = RP_BIAS_ROW;
        epilogue.bias = call->param[RP_CONV_BIAS]->buffer;
        epilogue.bias_offset = (uint64_t)at->group * v->kg;
    }
    epilogue.relu = kind == FORWARD && v->spec->relu;
    epilogue.accumulate = (kind == WEIGHT && (call->accumulate || at->first > 0)) ||
                          (kind == INPUT && call->dx_add[0]) || (kind == FORWARD && v->add);
    rp_err err = rp_gemm_run(call->device, &p.c, &p.a, &p.b, &epilogue, call->workspace);
    if (err == RP_OK && kind == COLUMNS) {
        err = rp_conv_gather_columns(call, v, at->group, at->first, at->images, o->columns.first);
    }
    return err;
}

/* All groups, and all images, `images` at a time. */
static rp_err run_all(const rp_layer_call *call, const rp_conv *v, which kind, uint32_t images,
                      const operands *o) {
    for (uint32_t group = 0; group < v->spec->groups; group++) {
        for (uint32_t first = 0; first < v->n; first += images) {
            const uint32_t left = v->n - first;
            rp_err err =
                run_conv(call, v, kind, &(part){group, first, left < images ? left : images}, o);
            if (err != RP_OK) {
                return err;
            }
        }
    }
    return RP_OK;
}

rp_err rp_conv_forward(const rp_layer_call *call, const rp_conv *v) {
    const layout l = layout_of(v, rp_device_gemm(call->device));
    if (l.way == DIRECT) {
        return rp_conv_direct_forward(call, v);
    }
    if (l.way == FLAT) {
        return rp_conv_flat_forward(call, v, l.tail_first);
    }
    return run_all(call, v, FORWARD, l.images[FORWARD],
                   &(operands){.y = rp_layer_rows(call->y, 0),
                               .x = rp_layer_rows(call->x[0], 0),
                               .w = call->param[RP_CONV_WEIGHT]->buffer});
}

static rp_err forward_conv2d(const rp_layer_call *call) {
    const rp_conv v = rp_conv_of(call->layer, call->plan, &call->in[0], call->n);
    return rp_conv_forward(call, &v);
}

static rp_err backward_input(const rp_layer_call *call, const rp_conv *v, const layout *l,
                             rp_rows dy) {
    if (l->way == DIRECT) {
        return rp_conv_direct_input(call, v, dy);
    }
    const which kind = is_one(v->spec->stride) ? INPUT : COLUMNS;
    return run_all(call, v, kind, l->images[kind],
                   &(operands){.dx = rp_layer_rows(call->dx[0], 0),
                               .dy = dy,
                               .w = call->param[RP_CONV_WEIGHT]->buffer,
                               .columns = {call->workspace, l->tail_first, 0}});
}

static rp_err backward_weight(const rp_layer_call *call, const rp_conv *v, const layout *l,
                              rp_rows dy) {
    if (l->way == DIRECT) {
        return rp_conv_direct_weight(call, v, dy, l->tail_first);
    }
    return run_all(call, v, WEIGHT, l->images[WEIGHT],
                   &(operands){.dw = call->dparam[RP_CONV_WEIGHT]->buffer,
                               .dy = dy,
                               .x = rp_layer_rows(call->x[0], 0)});
}

rp_err rp_conv_backward(const rp_layer_call *call, const rp_conv *v) {
    rp_err err;
    const layout l = layout_of(v, rp_device_gemm(call->device));
    rp_rows dy = rp_layer_rows(call->dy, 0);
    if (v->spec->relu) {
        RP_TRY(rp_layer_mask_positive(call, call->workspace, l.mask_first));
        dy = (rp_rows){call->workspace, l.mask_first, 0};
    }
    if (l.way == FLAT) { /* one copy of dy serves both */
        RP_TRY(rp_conv_flat_backward(call, v, dy, l.tail_first));
    } else {
        if (call->want_dx && call->dx[0]) {
            RP_TRY(backward_input(call, v, &l, dy));
        }
        if (call->want_dw) {
            RP_TRY(backward_weight(call, v, &l, dy));
        }
    }
    if (call->want_dw && v->spec->bias) {
        RP_TRY(rp_layer_bias_gradient(call, call->dparam[RP_CONV_BIAS]->buffer, l.tail_first, dy,
                                      v->n, v->k, v->p * v->q));
    }
    return RP_OK;
fail:
    return err;
}

static rp_err backward_conv2d(const rp_layer_call *call) {
    const rp_conv v = rp_conv_of(call->layer, call->plan, &call->in[0], call->n);
    return rp_conv_backward(call, &v);
}

const rp_layer_kind rp_layer_conv2d = {
    .name = "conv2d",
    .keys = "out, kernel, stride, pad, dilation, groups, bias",
    .source = "torch.nn.Conv2d; im2col: Chellapilla et al. 2006",
    .spec_bytes = sizeof(rp_conv_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_conv2d,
    .plan = plan_conv2d,
    .workspace_bytes = workspace_bytes,
    .fuse_relu = fuse_relu,
    .forward = forward_conv2d,
    .backward = backward_conv2d,
};
