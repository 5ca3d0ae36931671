/* Convolutions, pools, and other layers of images [C, H, W]. */
#include <string.h>

#include "export/layer.h"

/* The sizes of windows along height and width. */
typedef struct {
    int64_t kernel[2], stride[2], pad[2], dilation[2];
} windows;

/* Sizes of the last `axes` axes: 2, or 1 for a signal, which is an image of height 1. */
static void add_sizes(rp_export_layer *l, const char *name, uint32_t axes, const int64_t pair[2]) {
    rp_export_ints(l, name, axes, pair + 2 - axes);
}

static void add_windows(rp_export_layer *l, const windows *w, uint32_t axes) {
    const int64_t pads[4] = {w->pad[2 - axes], w->pad[1], w->pad[2 - axes], w->pad[1]};
    add_sizes(l, "kernel_shape", axes, w->kernel);
    add_sizes(l, "strides", axes, w->stride);
    rp_export_ints(l, "pads", 2 * axes, axes == 2 ? pads : pads + 2);
}

/* Axes of the windows: 1 if weights files have the weight of a Conv1d, and the image is a signal.
 */
static uint32_t count_axes(rp_export_layer *l, const windows *w) {
    uint32_t dims;
    (void)rp_export_stored(l, "weight", &dims);
    const bool line =
        l->in[0].dim[1] == 1 && l->plan->out.dim[1] == 1 && w->kernel[0] == 1 && w->pad[0] == 0;
    return dims == 3 && line ? 1 : 2;
}

/* The node with weight and bias. */
static const char *convolve(rp_export_layer *l, const char *op, uint32_t axes) {
    static const int64_t height[] = {2};
    uint32_t ignored;
    const char *w =
        axes == 1 ? rp_export_stored(l, "weight", &ignored) : rp_export_param(l, "weight");
    const char *x = axes == 1 ? rp_export_squeeze(l, l->x[0], 1, height) : l->x[0];
    if (!rp_export_has(l, "bias")) {
        return RP_EXPORT_OP(l, op, x, w);
    }
    const char *bias = rp_export_param(l, "bias");
    return RP_EXPORT_OP(l, op, x, w, bias);
}

/* The output of the node as an image. */
static const char *finish(rp_export_layer *l, const char *y, uint32_t axes) {
    static const int64_t height[] = {2};
    return axes == 1 ? rp_export_unsqueeze(l, y, 1, height) : y;
}

/* Reads the keys of both convolutions. */
static windows read_windows(rp_export_layer *l) {
    windows w = {.kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
    (void)rp_export_key_pair(l, "kernel", w.kernel);
    (void)rp_export_key_pair(l, "stride", w.stride);
    (void)rp_export_key_pair(l, "pad", w.pad);
    rp_export_ignore(l, "out");
    rp_export_ignore(l, "bias");
    return w;
}

const char *rp_export_write_conv2d(rp_export_layer *l) {
    windows w = read_windows(l);
    const uint32_t groups = rp_export_key_u32(l, "groups", 1);
    (void)rp_export_key_pair(l, "dilation", w.dilation);
    const uint32_t axes = count_axes(l, &w);
    const char *y = convolve(l, "Conv", axes);
    add_windows(l, &w, axes);
    add_sizes(l, "dilations", axes, w.dilation);
    rp_export_int(l, "group", groups);
    return finish(l, y, axes);
}

const char *rp_export_write_convtranspose2d(rp_export_layer *l) {
    const windows w = read_windows(l);
    const uint32_t groups = rp_export_key_u32(l, "groups", 1);
    int64_t more[2] = {0, 0};
    (void)rp_export_key_pair(l, "output_pad", more);
    const uint32_t axes = more[0] == 0 ? count_axes(l, &w) : 2;
    const char *y = convolve(l, "ConvTranspose", axes);
    add_windows(l, &w, axes);
    add_sizes(l, "output_padding", axes, more);
    rp_export_int(l, "group", groups);
    return finish(l, y, axes);
}

/* ---- pools ----------------------------------------------------------------------------------- */

static windows read_pool(rp_export_layer *l) {
    windows w = {0};
    (void)rp_export_key_pair(l, "kernel", w.kernel);
    memcpy(w.stride, w.kernel, sizeof w.stride);
    (void)rp_export_key_pair(l, "stride", w.stride);
    (void)rp_export_key_pair(l, "pad", w.pad);
    return w;
}

static int64_t divide(int64_t a, int64_t b, bool up) {
    return (a + (up ? b - 1 : 0)) / b;
}

/* Pads after the image along an axis, with which as many windows as the layer has fit exactly, or
 * the layer's pad if that gives as many. *ceil: the count is that of ONNX's ceil_mode, too. */
static int64_t pad_after(const windows *w, int axis, int64_t size, int64_t count, bool *ceil) {
    const int64_t room = size + 2 * w->pad[axis] - w->kernel[axis];
    *ceil &= divide(room, w->stride[axis], true) + 1 == count;
    if (divide(room, w->stride[axis], false) + 1 == count) {
        return w->pad[axis];
    }
    return (count - 1) * w->stride[axis] + w->kernel[axis] - size - w->pad[axis];
}

/* A pool whose last windows may reach over the image (ceil_mode of PyTorch). ONNX counts windows
 * that begin in the padding below opset 19, so such a pool has pads instead of its ceil_mode. */
static void add_pool_windows(rp_export_layer *l, const windows *w) {
    const rp_shape *out = &l->plan->out;
    bool ceil = true;
    const int64_t pads[4] = {w->pad[0], w->pad[1],
                             pad_after(w, 0, l->in[0].dim[1], out->dim[1], &ceil),
                             pad_after(w, 1, l->in[0].dim[2], out->dim[2], &ceil)};
    const bool same = pads[2] == w->pad[0] && pads[3] == w->pad[1];
    if (same || !ceil) {
        rp_export_ints(l, "kernel_shape", 2, w->kernel);
        rp_export_ints(l, "strides", 2, w->stride);
        rp_export_ints(l, "pads", 4, pads);
    } else {
        add_windows(l, w, 2);
        rp_export_int(l, "ceil_mode", 1);
    }
}

/* Whether windows reach further than the padding. */
static bool reaches_over(const rp_export_layer *l, const windows *w) {
    bool ignored = true;
    return pad_after(w, 0, l->in[0].dim[1], l->plan->out.dim[1], &ignored) != w->pad[0] ||
           pad_after(w, 1, l->in[0].dim[2], l->plan->out.dim[2], &ignored) != w->pad[1];
}

const char *rp_export_write_maxpool(rp_export_layer *l) {
    const windows w = read_pool(l);
    rp_export_ignore(l, "ceil_mode");
    const char *y = RP_EXPORT_OP(l, "MaxPool", l->x[0]);
    add_pool_windows(l, &w);
    return y;
}

const char *rp_export_write_avgpool(rp_export_layer *l) {
    const windows w = read_pool(l);
    const bool counts = rp_export_key_bool(l, "count_include_pad", true);
    const bool pads = w.pad[0] > 0 || w.pad[1] > 0;
    rp_export_ignore(l, "ceil_mode");
    if (counts && pads && reaches_over(l, &w)) {
        return rp_export_refuse(l, "ceil_mode with count_include_pad counts padding, but not what "
                                   "is after it, which no operator does; count_include_pad: false "
                                   "can be exported");
    }
    const char *y = RP_EXPORT_OP(l, "AveragePool", l->x[0]);
    add_pool_windows(l, &w);
    rp_export_int(l, "count_include_pad", counts && pads);
    return y;
}

/* [count, size]: the mean of each bin, floor(i size / count) to ceil((i + 1) size / count). */
static const char *add_bins(rp_export_layer *l, uint32_t size, uint32_t count, bool turned) {
    const int64_t dim[] = {turned ? size : count, turned ? count : size};
    float *bins = NULL;
    RP_EXPORT_NEW(l->graph, (size_t)size * count, &bins);
    for (uint64_t i = 0; bins && i < count; i++) {
        const uint64_t first = i * size / count;
        const uint64_t end = ((i + 1) * size + count - 1) / count;
        for (uint64_t k = first; k < end; k++) {
            bins[turned ? k * count + i : i * size + k] = 1.0f / (float)(end - first);
        }
    }
    return rp_export_table(l, 2, dim, bins);
}

/* Bins of one size are a pool; other bins are products with a matrix from both sides. */
const char *rp_export_write_adaptiveavgpool(rp_export_layer *l) {
    const uint32_t *from = l->in[0].dim;
    const uint32_t *to = l->plan->out.dim;
    rp_export_ignore(l, "out");
    if (to[1] == 1 && to[2] == 1) {
        return rp_export_write_globalavgpool(l);
    }
    if (from[1] % to[1] == 0 && from[2] % to[2] == 0) {
        const windows w = {.kernel = {from[1] / to[1], from[2] / to[2]},
                           .stride = {from[1] / to[1], from[2] / to[2]}};
        const char *y = RP_EXPORT_OP(l, "AveragePool", l->x[0]);
        add_windows(l, &w, 2);
        return y;
    }
    const char *columns = add_bins(l, from[2], to[2], true);
    const char *narrow = RP_EXPORT_OP(l, "MatMul", l->x[0], columns);
    const char *rows = add_bins(l, from[1], to[1], false);
    return RP_EXPORT_OP(l, "MatMul", rows, narrow);
}

const char *rp_export_write_globalavgpool(rp_export_layer *l) {
    return RP_EXPORT_OP(l, "GlobalAveragePool", l->x[0]);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

const char *rp_export_write_upsample(rp_export_layer *l) {
    static const char *const modes[] = {"nearest", "bilinear", NULL};
    const int64_t four = 4;
    int64_t scale[2] = {2, 2};
    (void)rp_export_key_pair(l, "scale", scale);
    const float factor[] = {1.0f, 1.0f, (float)scale[0], (float)scale[1]};
    const bool nearest = rp_export_key_word(l, "mode", modes) == 0;
    const bool corners = rp_export_key_bool(l, "align_corners", false);
    const char *scales = rp_export_table(l, 1, &four, factor);
    const char *y = RP_EXPORT_OP(l, "Resize", l->x[0], "", scales);
    rp_export_word(l, "mode", nearest ? "nearest" : "linear");
    rp_export_word(l, "coordinate_transformation_mode",
                   nearest   ? "asymmetric"
                   : corners ? "align_corners"
                             : "half_pixel");
    if (nearest) {
        rp_export_word(l, "nearest_mode", "floor");
    }
    return y;
}

const char *rp_export_write_sequence(rp_export_layer *l) {
    static const int64_t perm[] = {0, 2, 1};
    const int64_t dim[] = {0, l->in[0].dim[0], l->plan->out.dim[0]};
    const char *rows = rp_export_reshape(l, l->x[0], 3, dim);
    return rp_export_transpose(l, rows, 3, perm);
}
