/* Convolutions, pools and Resize. Those of signals [N, C, L] are those of images of height 1. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "onnx/layers.h"
#include "onnx/line.h"
#include "onnx/ops.h"
#include "onnx/pad.h"

enum { PAIR_TEXT = 48, KEYS_TEXT = 200, PAD_MAX = 255, SCALE_MAX = 64 };

static const int64_t ones[2] = {1, 1};
static const int64_t zeros[2] = {0, 0};

/* Windows of a node along height and width. */
typedef struct {
    uint32_t axes; /* 2, or 1 for a signal: the windows have height 1 */
    int64_t kernel[2], stride[2], dilation[2], pad[2];
    int64_t after[2]; /* zeros after the image; pad has those before it */
    bool ceil;
} windows;

/* "3", or "[1, 7]" where the two differ. */
static const char *pair_text(const int64_t pair[2], char text[PAIR_TEXT]) {
    if (pair[0] == pair[1]) {
        (void)snprintf(text, PAIR_TEXT, "%" PRId64, pair[0]);
    } else {
        (void)snprintf(text, PAIR_TEXT, "[%" PRId64 ", %" PRId64 "]", pair[0], pair[1]);
    }
    return text;
}

/* Adds ", name: 3" to keys unless it is the usual value. */
static void add_pair(char *keys, size_t room, const char *name, const int64_t pair[2],
                     const int64_t usual[2]) {
    char text[PAIR_TEXT];
    const size_t used = strlen(keys);
    if (pair[0] != usual[0] || pair[1] != usual[1]) {
        (void)snprintf(keys + used, room - used, ", %s: %s", name, pair_text(pair, text));
    }
}

/* Sizes of `axes` axes, which are the last ones of the pair. */
static bool read_sizes(const rp_onnx_node *node, const char *name, uint32_t axes, int64_t pair[2]) {
    const rp_onnx_attribute *found = rp_onnx_find(node, name);
    for (uint32_t i = 0; found && found->int_count == axes && i < axes; i++) {
        pair[2 - axes + i] = found->ints[i];
    }
    return !found || found->int_count == axes;
}

/* Whether input 0 is an image or a signal; sets the axes. */
static bool find_axes(const rp_onnx_visit *visit, windows *w) {
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    const uint32_t rank = in && in->view ? in->view->dims.rank : 0;
    w->axes = rank - 2;
    w->kernel[0] = rank == 3 ? 1 : 0;
    return rank == 3 || rank == 4;
}

/* Reads the windows of images or signals; refuses what layers do not have. *done is false then. */
static rp_err read_windows(const rp_onnx_visit *visit, windows *w, bool *done) {
    const rp_onnx_node *node = visit->node;
    const rp_onnx_attribute *pads = rp_onnx_find(node, "pads");
    const char *automatic = rp_onnx_text(node, "auto_pad", "NOTSET");
    *done = false;
    w->ceil = rp_onnx_int(node, "ceil_mode", 0) != 0;
    if (!find_axes(visit, w)) {
        return rp_onnx_refuse(visit, "only windows of images [N, C, H, W] or signals [N, C, L] can "
                                     "be trained here");
    }
    if (strcmp(automatic, "NOTSET") != 0 && strcmp(automatic, "VALID") != 0) {
        return rp_onnx_refuse(visit, "auto_pad %.20s is not supported; export with pads",
                              automatic);
    }
    if (!read_sizes(node, "kernel_shape", w->axes, w->kernel) ||
        !read_sizes(node, "strides", w->axes, w->stride) ||
        !read_sizes(node, "dilations", w->axes, w->dilation) ||
        (pads && pads->int_count != 2 * w->axes)) {
        return rp_onnx_refuse(visit, "its windows have another number of sizes than its input");
    }
    for (uint32_t i = 0; pads && i < w->axes; i++) {
        w->pad[2 - w->axes + i] = pads->ints[i];
        w->after[2 - w->axes + i] = pads->ints[w->axes + i];
        if (pads->ints[i] < 0 || pads->ints[i] > PAD_MAX || pads->ints[w->axes + i] < 0 ||
            pads->ints[w->axes + i] > PAD_MAX) {
            return rp_onnx_refuse(visit, "pads are expected to be 0 to %d", PAD_MAX);
        }
    }
    *done = true;
    return RP_OK;
}

static bool has_even_pads(const windows *w) {
    return w->pad[0] == w->after[0] && w->pad[1] == w->after[1];
}

static rp_err refuse_uneven(const rp_onnx_visit *visit) {
    return rp_onnx_refuse(visit, "pads differ between the sides of the image");
}

/* Reads input 0 as an image. */
static rp_err read_image(const rp_onnx_visit *visit, const windows *w, uint32_t *from, bool *done) {
    return w->axes == 1 ? rp_onnx_read_line(visit, 0, from, done)
                        : rp_onnx_read_input(visit, 0, from, done);
}

static rp_err emit_image(const rp_onnx_visit *visit, const windows *w, const rp_onnx_layer *draft,
                         bool *done) {
    return w->axes == 1 ? rp_onnx_emit_line(visit, draft, done)
                        : rp_onnx_emit_output(visit, draft, done);
}

/* Whether layers have such pads: those of a pool are at most half its kernel. */
static bool can_have_pads(const windows *w, bool is_pool) {
    bool can = has_even_pads(w);
    for (uint32_t i = 0; i < 2; i++) {
        can = can && w->pad[i] <= PAD_MAX && (!is_pool || 2 * w->pad[i] <= w->kernel[i]);
    }
    return can;
}

/* Reads the image of windows, which include zeros that a node before puts around it. */
static rp_err read_padded(const rp_onnx_visit *visit, windows *w, bool is_pool, uint32_t *from,
                          bool *done) {
    rp_onnx_visit pad;
    int64_t before[2];
    int64_t after[2];
    windows both = *w;
    bool padded;
    rp_err err;
    *done = false;
    RP_TRY(rp_onnx_find_pad(visit, 0, &pad, before, after, &padded));
    for (uint32_t i = 0; i < 2 && padded; i++) {
        both.pad[i] += before[i];
        both.after[i] += after[i];
    }
    if (padded && can_have_pads(&both, is_pool)) {
        *w = both;
        return read_image(&pad, w, from, done);
    }
    if (!has_even_pads(w)) {
        return refuse_uneven(visit);
    }
    RP_TRY(read_image(visit, w, from, done));
fail:
    return err;
}

/* The kernel's size is that of the weight where the attribute is missing. */
static void take_kernel(const rp_onnx_view *weight, windows *w) {
    const bool given = w->kernel[1] != 0;
    for (uint32_t i = 2 - w->axes; i < 2 && !given; i++) {
        w->kernel[i] = weight->dims.dim[w->axes + i];
    }
}

/* Weight and bias. PyTorch writes zeros where a layer has no bias; *bias is NULL then. *weight is
 * NULL if the node is refused. */
static rp_err read_weights(const rp_onnx_visit *visit, const windows *w,
                           const rp_onnx_view **weight, const rp_onnx_view **bias) {
    rp_err err;
    *bias = NULL;
    RP_TRY(rp_onnx_read_param(visit, 1, "weight", weight));
    if (*weight && !rp_onnx_is_zero(visit, 2)) {
        RP_TRY(rp_onnx_read_param(visit, 2, "bias", bias));
        *weight = *bias ? *weight : NULL;
    }
    if (*weight && (*weight)->dims.rank != w->axes + 2) {
        *weight = NULL;
        return rp_onnx_refuse(visit, "expected a weight of %u dimensions", w->axes + 2);
    }
fail:
    return err;
}

static void add_weights(rp_onnx_layer *draft, const rp_onnx_view *weight,
                        const rp_onnx_view *bias) {
    rp_onnx_draft_param(draft, "weight", weight);
    if (bias) {
        rp_onnx_draft_param(draft, "bias", bias);
    }
}

rp_err rp_onnx_layer_conv(const rp_onnx_visit *visit, bool *done) {
    windows w = {.stride = {1, 1}, .dilation = {1, 1}};
    const int64_t groups = rp_onnx_int(visit->node, "group", 1);
    const rp_onnx_view *weight;
    const rp_onnx_view *bias;
    rp_onnx_layer draft;
    uint32_t from;
    char text[PAIR_TEXT];
    char keys[KEYS_TEXT] = "";
    rp_err err;
    RP_TRY(read_windows(visit, &w, done));
    if (!*done) {
        return RP_OK;
    }
    *done = false;
    RP_TRY(read_weights(visit, &w, &weight, &bias));
    if (!weight) {
        return RP_OK;
    }
    take_kernel(weight, &w);
    RP_TRY(read_padded(visit, &w, false, &from, done));
    if (!*done) {
        return RP_OK;
    }
    add_pair(keys, sizeof keys, "stride", w.stride, ones);
    add_pair(keys, sizeof keys, "pad", w.pad, zeros);
    add_pair(keys, sizeof keys, "dilation", w.dilation, ones);
    add_pair(keys, sizeof keys, "groups", (const int64_t[2]){groups, groups}, ones);
    RP_TRY(rp_onnx_draft(visit, "conv2d", from, &draft, "out: %" PRId64 ", kernel: %s%s%s",
                         weight->dims.dim[0], pair_text(w.kernel, text), keys,
                         bias ? "" : ", bias: false"));
    add_weights(&draft, weight, bias);
    RP_TRY(emit_image(visit, &w, &draft, done));
fail:
    return err;
}

rp_err rp_onnx_layer_conv_transpose(const rp_onnx_visit *visit, bool *done) {
    windows w = {.stride = {1, 1}, .dilation = {1, 1}};
    const int64_t groups = rp_onnx_int(visit->node, "group", 1);
    int64_t more[2] = {0, 0};
    char text[PAIR_TEXT];
    char keys[KEYS_TEXT] = "";
    const rp_onnx_view *weight;
    const rp_onnx_view *bias;
    rp_onnx_layer draft;
    uint32_t from;
    rp_err err;
    RP_TRY(read_windows(visit, &w, done));
    if (!*done) {
        return RP_OK;
    }
    *done = false;
    RP_TRY(read_weights(visit, &w, &weight, &bias));
    if (!weight) {
        return RP_OK;
    }
    take_kernel(weight, &w);
    if (!has_even_pads(&w)) {
        *done = false;
        return refuse_uneven(visit);
    }
    if (!read_sizes(visit->node, "output_padding", w.axes, more) ||
        rp_onnx_find(visit->node, "output_shape") || w.dilation[0] != 1 || w.dilation[1] != 1 ||
        groups < 1 || groups > 65536) {
        return rp_onnx_refuse(visit, "only windows without dilation and output_shape can be "
                                     "trained here");
    }
    RP_TRY(read_image(visit, &w, &from, done));
    if (!*done) {
        return RP_OK;
    }
    add_pair(keys, sizeof keys, "stride", w.stride, ones);
    add_pair(keys, sizeof keys, "pad", w.pad, zeros);
    add_pair(keys, sizeof keys, "output_pad", more, zeros);
    add_pair(keys, sizeof keys, "groups", (const int64_t[2]){groups, groups}, ones);
    RP_TRY(rp_onnx_draft(visit, "convtranspose2d", from, &draft, "out: %" PRId64 ", kernel: %s%s%s",
                         weight->dims.dim[1] * groups, pair_text(w.kernel, text), keys,
                         bias ? "" : ", bias: false"));
    add_weights(&draft, weight, bias);
    RP_TRY(emit_image(visit, &w, &draft, done));
fail:
    return err;
}

/* `joins`: zeros that a node before puts around the image may become those of the windows. */
static rp_err emit_pool(const rp_onnx_visit *visit, const char *kind, windows *w, bool joins,
                        const char *more, bool *done) {
    rp_onnx_layer draft;
    uint32_t from;
    char text[PAIR_TEXT];
    char keys[KEYS_TEXT] = "";
    rp_err err;
    *done = false;
    if (w->dilation[0] != 1 || w->dilation[1] != 1) {
        return rp_onnx_refuse(visit, "a pool with dilation cannot be trained here");
    }
    if (joins) {
        RP_TRY(read_padded(visit, w, true, &from, done));
    } else if (!has_even_pads(w)) {
        return refuse_uneven(visit);
    } else {
        RP_TRY(read_image(visit, w, &from, done));
    }
    if (!*done) {
        return RP_OK;
    }
    add_pair(keys, sizeof keys, "stride", w->stride, w->kernel);
    add_pair(keys, sizeof keys, "pad", w->pad, zeros);
    RP_TRY(rp_onnx_draft(visit, kind, from, &draft, "kernel: %s%s%s%s", pair_text(w->kernel, text),
                         keys, w->ceil ? ", ceil_mode: true" : "", more));
    RP_TRY(emit_image(visit, w, &draft, done));
fail:
    return err;
}

rp_err rp_onnx_layer_max_pool(const rp_onnx_visit *visit, bool *done) {
    windows w = {.stride = {1, 1}, .dilation = {1, 1}};
    rp_err err;
    RP_TRY(read_windows(visit, &w, done));
    if (*done) {
        RP_TRY(emit_pool(visit, "maxpool", &w, false, "", done));
    }
fail:
    return err;
}

rp_err rp_onnx_layer_average_pool(const rp_onnx_visit *visit, bool *done) {
    windows w = {.stride = {1, 1}, .dilation = {1, 1}};
    const bool counts = rp_onnx_int(visit->node, "count_include_pad", 0) != 0;
    rp_err err;
    RP_TRY(read_windows(visit, &w, done));
    if (*done) {
        const bool pads = w.pad[0] != 0 || w.pad[1] != 0;
        /* Zeros before the pool count, and its last windows begin before them. */
        const bool joins = (counts || !pads) && !w.ceil;
        RP_TRY(emit_pool(visit, "avgpool", &w, joins,
                         pads && !counts ? ", count_include_pad: false" : "", done));
    }
fail:
    return err;
}

rp_err rp_onnx_layer_global_pool(const rp_onnx_visit *visit, bool *done) {
    windows w = {0};
    rp_onnx_layer draft;
    uint32_t from;
    rp_err err;
    *done = false;
    if (!find_axes(visit, &w)) {
        return rp_onnx_refuse(visit, "only images [N, C, H, W] and signals [N, C, L] have a mean "
                                     "of their pixels here");
    }
    RP_TRY(read_image(visit, &w, &from, done));
    if (*done) {
        RP_TRY(rp_onnx_draft(visit, "globalavgpool", from, &draft, "%s", ""));
        RP_TRY(emit_image(visit, &w, &draft, done));
    }
fail:
    return err;
}

/* Whole factors of the axes of images and signals; 0: not a whole factor. */
static int64_t factor_of(float scale) {
    const bool whole = scale >= 1.0f && scale <= SCALE_MAX && scale == (float)(int64_t)scale;
    return whole ? (int64_t)scale : 0;
}

/* Factors of height and width from `scales` (input 2) or `sizes` (input 3); false: an axis has no
 * whole factor, or other axes change too. */
static rp_err read_factors(const rp_onnx_visit *visit, const windows *w, int64_t factor[2],
                           bool *done) {
    const rp_onnx_dims *dims = &rp_onnx_in(visit, 0)->view->dims;
    const float *scales;
    const int64_t *sizes;
    uint64_t count[2];
    rp_err err;
    *done = false;
    RP_TRY(rp_onnx_const_floats(visit, 2, &scales, &count[0]));
    RP_TRY(rp_onnx_const_ints(visit, 3, &sizes, &count[1]));
    const bool by_scales = scales && count[0] == dims->rank;
    if (dims->count == 0 || (!by_scales && (!sizes || count[1] != dims->rank))) {
        return RP_OK;
    }
    *done = true;
    for (uint32_t i = 0; i < dims->rank; i++) {
        const float scale = by_scales ? scales[i] : (float)sizes[i] / (float)dims->dim[i];
        const int64_t found = factor_of(scale);
        const bool exact = by_scales || sizes[i] == found * dims->dim[i];
        *done = *done && exact && (i < 2 ? found == 1 : found > 0);
        if (i >= 2) {
            factor[2 - w->axes + i - 2] = found;
        }
    }
fail:
    return err;
}

rp_err rp_onnx_layer_resize(const rp_onnx_visit *visit, bool *done) {
    const char *mode = rp_onnx_text(visit->node, "mode", "nearest");
    const char *place = rp_onnx_text(visit->node, "coordinate_transformation_mode", "half_pixel");
    const char *round = rp_onnx_text(visit->node, "nearest_mode", "round_prefer_floor");
    const bool nearest = strcmp(mode, "nearest") == 0 && strcmp(place, "asymmetric") == 0 &&
                         strcmp(round, "floor") == 0;
    const bool corners = strcmp(mode, "linear") == 0 && strcmp(place, "align_corners") == 0;
    const bool linear = strcmp(mode, "linear") == 0 && (strcmp(place, "half_pixel") == 0 ||
                                                        strcmp(place, "pytorch_half_pixel") == 0);
    int64_t factor[2] = {1, 1};
    char text[PAIR_TEXT];
    windows w = {0};
    rp_onnx_layer draft;
    uint32_t from;
    rp_err err = RP_OK;
    *done = false;
    if ((!nearest && !corners && !linear) || rp_onnx_int(visit->node, "antialias", 0) != 0) {
        return rp_onnx_refuse(visit,
                              "mode %.20s with %.30s cannot be trained here; supported are nearest "
                              "(asymmetric, floor) and linear (half_pixel, align_corners)",
                              mode, place);
    }
    if (find_axes(visit, &w)) {
        RP_TRY(read_factors(visit, &w, factor, done));
    }
    if (!*done) {
        return rp_onnx_refuse(visit, "only images and signals are enlarged here, by whole factors");
    }
    RP_TRY(read_image(visit, &w, &from, done));
    if (*done) {
        RP_TRY(rp_onnx_draft(visit, "upsample", from, &draft, "scale: %s, mode: %s%s",
                             pair_text(factor, text), nearest ? "nearest" : "bilinear",
                             corners ? ", align_corners: true" : ""));
        RP_TRY(emit_image(visit, &w, &draft, done));
    }
fail:
    return err;
}
