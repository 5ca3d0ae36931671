#include "nn/conv.h"

#include <stdio.h>

enum {
    /* as in kernels/conv_flat.cl */
    OUTS = 8,
    SPAN = 32,
    WIDE_OUTS = 16, /* channels of dy processed together, for the gradient of the weights */
    /* limits chosen here */
    CHANNELS_MAX = 32,
    KERNEL_MAX = 5,
    LINE_FLOATS = 512,      /* of a channel's results in local memory */
    PADDED_FLOATS = 1 << 20 /* copies of images at a time: what an L3 cache holds */
};

/* Layout of the workspace, in floats from `first` on. */
typedef struct {
    uint64_t taps, x, dy, turned, part, end;
    uint64_t plane;
    uint32_t wide;
    uint32_t images; /* processed together, whole chunks */
    uint32_t chunk;  /* images of one first-level sum of the gradient of the weights */
} plan;

static uint32_t smaller_of(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static uint64_t taps_floats(const rp_conv *v, uint32_t outs, uint32_t sources) {
    return (uint64_t)rp_layer_divide_up(outs, OUTS) * OUTS * sources * v->taps;
}

static plan plan_of(const rp_conv *v, uint64_t first) {
    const uint32_t border = v->spec->kernel.h - 1;
    plan made = {.taps = first, .wide = v->w + border};
    made.plane = (uint64_t)made.wide * (v->h + border);
    const uint64_t fit = PADDED_FLOATS / (made.plane * (v->c + v->k));
    made.images = fit < v->n ? (uint32_t)fit + (fit == 0) : v->n;
    made.chunk = smaller_of(rp_layer_chunk_images(v->n, (size_t)v->h * v->w), made.images);
    made.images -= made.images % made.chunk;
    const uint64_t forward = taps_floats(v, v->k, v->c);
    const uint64_t turned = taps_floats(v, v->c, v->k);
    made.x = made.taps + (forward > turned ? forward : turned);
    made.dy = made.x + made.images * v->c * made.plane;
    made.turned =
        made.dy + made.images * v->k * made.plane + SPAN; /* a last vector may end there */
    made.part = made.turned + (uint64_t)made.images * rp_layer_divide_up(v->k, WIDE_OUTS) *
                                  WIDE_OUTS * v->h * v->w;
    made.end = made.part + (uint64_t)rp_layer_divide_up(v->n, made.chunk) * v->k * v->c * v->taps;
    return made;
}

/* Rows of the strips into which a plane is divided: of equal height, as few as fit. */
static uint32_t strip_rows(uint32_t h, uint32_t wide) {
    return rp_layer_divide_up(h, rp_layer_divide_up(h, (LINE_FLOATS - SPAN) / wide));
}

/* Small planes leave most of a vector to the columns between the rows. */
static bool keeps_lanes(const rp_conv *v, uint32_t wide) {
    const uint64_t rows = strip_rows(v->h, wide);
    const uint64_t lanes = ((rows - 1) * wide + v->w + SPAN - 1) / SPAN * SPAN;
    return 4 * rows * v->w >= 3 * lanes;
}

static bool is_both(rp_pair pair, uint32_t size) {
    return pair.h == size && pair.w == size;
}

bool rp_conv_is_flat(const rp_conv *v, rp_gemm_choice choice) {
    const rp_conv_spec *spec = v->spec;
    const uint32_t size = spec->kernel.h;
    const uint32_t wide = v->w + size - 1;
    return choice == RP_GEMM_PANEL && spec->groups == 1 && is_both(spec->stride, 1) &&
           is_both(spec->dilation, 1) && is_both(spec->kernel, size) && size % 2 == 1 && size > 1 &&
           size <= KERNEL_MAX && is_both(spec->pad, size / 2) && v->c <= CHANNELS_MAX &&
           v->k <= CHANNELS_MAX && wide <= LINE_FLOATS - SPAN && keeps_lanes(v, wide);
}

size_t rp_conv_flat_floats(const rp_conv *v) {
    return (size_t)plan_of(v, 0).end;
}

static rp_err begin_launch(const rp_layer_call *call, const rp_conv *v, const char *entry,
                           rp_launch *launch) {
    char defines[16];
    snprintf(defines, sizeof defines, "-DR=%u", v->spec->kernel.h);
    return rp_layer_begin(call, "conv_flat", entry, defines, launch);
}

static rp_err pad_planes(const rp_layer_call *call, const rp_conv *v, uint64_t to, rp_rows from,
                         uint32_t planes) {
    rp_launch launch;
    rp_err err = begin_launch(call, v, "pad_planes", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_u64(&launch, to);
    rp_arg_buffer(&launch, from.buffer);
    rp_arg_u64(&launch, from.first);
    rp_arg_u32(&launch, planes);
    rp_arg_u32(&launch, v->h);
    rp_arg_u32(&launch, v->w);
    return rp_layer_run_items(&launch, planes, 4);
}

static rp_err pack_taps(const rp_layer_call *call, const rp_conv *v, const plan *at, bool turned) {
    const uint32_t outs = turned ? v->c : v->k;
    rp_launch launch;
    rp_err err = begin_launch(call, v, "pack_taps", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_u64(&launch, at->taps);
    rp_arg_buffer(&launch, call->param[RP_CONV_WEIGHT]->buffer);
    rp_arg_u32(&launch, outs);
    rp_arg_u32(&launch, turned);
    return rp_launch_run(&launch, 2,
                         (size_t[]){rp_layer_divide_up(outs, OUTS), turned ? v->k : v->c},
                         (size_t[]){1, 1});
}

/* Output of a correlation. */
typedef struct {
    rp_rows out;
    rp_buffer *bias;
    bool turned, add, relu;
} result;

static rp_err correlate_images(const rp_layer_call *call, const rp_conv *v, const plan *at,
                               uint64_t padded, uint32_t images, const result *to) {
    const uint32_t outs = to->turned ? v->c : v->k;
    rp_launch launch;
    rp_err err = begin_launch(call, v, "correlate_flat", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, to->out.buffer);
    rp_arg_u64(&launch, to->out.first);
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_u64(&launch, padded);
    rp_arg_u64(&launch, at->taps);
    rp_arg_buffer(&launch, to->bias);
    rp_arg_u32(&launch, outs);
    rp_arg_u32(&launch, to->turned ? v->k : v->c);
    rp_arg_u32(&launch, v->h);
    rp_arg_u32(&launch, v->w);
    rp_arg_u32(&launch, strip_rows(v->h, at->wide));
    rp_arg_u32(&launch, LINE_FLOATS);
    rp_arg_u32(&launch, to->add);
    rp_arg_u32(&launch, to->relu);
    rp_arg_local(&launch, OUTS * LINE_FLOATS * sizeof(float));
    return rp_launch_run(&launch, 2, (size_t[]){rp_layer_divide_up(outs, OUTS), images},
                         (size_t[]){1, 1});
}

static rp_err turn_planes(const rp_layer_call *call, const rp_conv *v, const plan *at, rp_rows dy,
                          uint32_t images) {
    rp_launch launch;
    rp_err err = begin_launch(call, v, "turn_planes", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_u64(&launch, at->turned);
    rp_arg_buffer(&launch, dy.buffer);
    rp_arg_u64(&launch, dy.first);
    rp_arg_u32(&launch, v->k);
    rp_arg_u32(&launch, v->h * v->w);
    return rp_launch_run(&launch, 2, (size_t[]){rp_layer_divide_up(v->k, WIDE_OUTS), images},
                         (size_t[]){1, 1});
}

/* The sums of `images` images from `first` on; x is padded and dy transposed. */
static rp_err sum_weight(const rp_layer_call *call, const rp_conv *v, const plan *at,
                         uint32_t first, uint32_t images) {
    const uint32_t planes = v->spec->kernel.h > 3 ? 1 : 2;
    rp_launch launch;
    rp_err err = begin_launch(call, v, "correlate_weight", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_u64(&launch, at->part + (uint64_t)(first / at->chunk) * v->k * v->c * v->taps);
    rp_arg_u64(&launch, at->turned);
    rp_arg_u64(&launch, at->x);
    rp_arg_u32(&launch, images);
    rp_arg_u32(&launch, at->chunk);
    rp_arg_u32(&launch, v->k);
    rp_arg_u32(&launch, v->c);
    rp_arg_u32(&launch, v->h);
    rp_arg_u32(&launch, v->w);
    return rp_launch_run(&launch, 3,
                         (size_t[]){rp_layer_divide_up(images, at->chunk),
                                    rp_layer_divide_up(v->k, WIDE_OUTS),
                                    rp_layer_divide_up(v->c, planes)},
                         (size_t[]){1, 1, 1});
}

/* From element `first` of the tensor on. */
static rp_rows images_from(const rp_tensor *tensor, uint64_t first) {
    return (rp_rows){tensor->buffer, tensor->offset + first, 0};
}

rp_err rp_conv_flat_forward(const rp_layer_call *call, const rp_conv *v, uint64_t work_first) {
    const plan at = plan_of(v, work_first);
    const uint64_t pixels = (uint64_t)v->h * v->w;
    result to = {.bias = v->spec->bias ? call->param[RP_CONV_BIAS]->buffer : NULL,
                 .relu = v->spec->relu};
    rp_err err;
    RP_TRY(pack_taps(call, v, &at, false));
    for (uint32_t first = 0; first < v->n; first += at.images) {
        const uint32_t images = smaller_of(at.images, v->n - first);
        RP_TRY(pad_planes(call, v, at.x, images_from(call->x[0], first * v->c * pixels),
                          images * v->c));
        to.out = images_from(call->y, first * v->k * pixels);
        RP_TRY(correlate_images(call, v, &at, at.x, images, &to));
    }
fail:
    return err;
}

rp_err rp_conv_flat_backward(const rp_layer_call *call, const rp_conv *v, rp_rows dy,
                             uint64_t work_first) {
    const plan at = plan_of(v, work_first);
    const uint64_t pixels = (uint64_t)v->h * v->w;
    const bool want_dx = call->want_dx && call->dx[0];
    rp_err err = RP_OK;
    if (want_dx) {
        RP_TRY(pack_taps(call, v, &at, true));
    }
    for (uint32_t first = 0; first < v->n; first += at.images) {
        const uint32_t images = smaller_of(at.images, v->n - first);
        const rp_rows dy_here = {dy.buffer, dy.first + first * v->k * pixels, 0};
        if (want_dx) {
            RP_TRY(pad_planes(call, v, at.dy, dy_here, images * v->k));
            const result dx = {.out = images_from(call->dx[0], first * v->c * pixels),
                               .turned = true,
                               .add = call->dx_add[0]};
            RP_TRY(correlate_images(call, v, &at, at.dy, images, &dx));
        }
        if (call->want_dw) {
            const rp_rows x_here = images_from(call->x[0], first * v->c * pixels);
            RP_TRY(pad_planes(call, v, at.x, x_here, images * v->c));
            RP_TRY(turn_planes(call, v, &at, dy_here, images));
            RP_TRY(sum_weight(call, v, &at, first, images));
        }
    }
    if (call->want_dw) {
        RP_TRY(rp_layer_sum_parts(call, call->dparam[RP_CONV_WEIGHT]->buffer, at.part,
                                  v->k * v->c * v->taps, rp_layer_divide_up(v->n, at.chunk)));
    }
fail:
    return err;
}
