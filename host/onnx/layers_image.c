/* Convolutions, pools and Resize. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "onnx/layers.h"
#include "onnx/ops.h"
#include "onnx/pad.h"

enum { PAIR_TEXT = 48, KEYS_TEXT = 200 };

static const int64_t ones[2] = {1, 1};
static const int64_t zeros[2] = {0, 0};

/* Windows of a node along height and width. */
typedef struct {
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

static bool read_pair(const rp_onnx_node *node, const char *name, int64_t pair[2]) {
    const rp_onnx_attribute *found = rp_onnx_find(node, name);
    if (found && found->int_count == 2) {
        pair[0] = found->ints[0];
        pair[1] = found->ints[1];
    }
    return !found || found->int_count == 2;
}

/* Reads the windows of images; refuses what layers do not have. *done is false then. */
static rp_err read_windows(const rp_onnx_visit *visit, windows *w, bool *done) {
    const rp_onnx_node *node = visit->node;
    const rp_onnx_attribute *pads = rp_onnx_find(node, "pads");
    const char *automatic = rp_onnx_text(node, "auto_pad", "NOTSET");
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    *done = false;
    w->ceil = rp_onnx_int(node, "ceil_mode", 0) != 0;
    if (in && in->view && in->view->dims.rank != 4) {
        return rp_onnx_refuse(visit, "only windows of images [N, C, H, W] can be trained here");
    }
    if (strcmp(automatic, "NOTSET") != 0 && strcmp(automatic, "VALID") != 0) {
        return rp_onnx_refuse(visit, "auto_pad %.20s is not supported; export with pads",
                              automatic);
    }
    if (!read_pair(node, "kernel_shape", w->kernel) || !read_pair(node, "strides", w->stride) ||
        !read_pair(node, "dilations", w->dilation) || (pads && pads->int_count != 4)) {
        return rp_onnx_refuse(visit, "its windows have another number of sizes than an image");
    }
    for (uint32_t i = 0; i < 2; i++) {
        w->pad[i] = pads ? pads->ints[i] : 0;
        w->after[i] = pads ? pads->ints[2 + i] : 0;
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

/* Reads the image of a convolution, which includes zeros that a node before puts around it. */
static rp_err read_padded(const rp_onnx_visit *visit, windows *w, uint32_t *from, bool *done) {
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
    if (padded && has_even_pads(&both)) {
        *w = both;
        return rp_onnx_read_input(&pad, 0, from, done);
    }
    if (!has_even_pads(w)) {
        return refuse_uneven(visit);
    }
    RP_TRY(rp_onnx_read_input(visit, 0, from, done));
fail:
    return err;
}

/* The kernel's size is that of the weight where the attribute is missing. */
static void take_kernel(const rp_onnx_view *weight, windows *w) {
    if (w->kernel[0] == 0 && weight->dims.rank == 4) {
        w->kernel[0] = weight->dims.dim[2];
        w->kernel[1] = weight->dims.dim[3];
    }
}

/* Weight and bias. PyTorch writes zeros where a layer has no bias; *bias is NULL then. *weight is
 * NULL if the node is refused. */
static rp_err read_weights(const rp_onnx_visit *visit, const rp_onnx_view **weight,
                           const rp_onnx_view **bias) {
    rp_err err;
    *bias = NULL;
    RP_TRY(rp_onnx_read_param(visit, 1, "weight", weight));
    if (*weight && !rp_onnx_is_zero(visit, 2)) {
        RP_TRY(rp_onnx_read_param(visit, 2, "bias", bias));
        *weight = *bias ? *weight : NULL;
    }
    if (*weight && (*weight)->dims.rank != 4) {
        *weight = NULL;
        return rp_onnx_refuse(visit, "expected a weight of 4 dimensions");
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
    RP_TRY(read_weights(visit, &weight, &bias));
    if (!weight) {
        return RP_OK;
    }
    take_kernel(weight, &w);
    RP_TRY(read_padded(visit, &w, &from, done));
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
    RP_TRY(rp_onnx_emit_output(visit, &draft, done));
fail:
    return err;
}

static bool is_square(const int64_t pair[2]) {
    return pair[0] == pair[1];
}

rp_err rp_onnx_layer_conv_transpose(const rp_onnx_visit *visit, bool *done) {
    windows w = {.stride = {1, 1}, .dilation = {1, 1}};
    const int64_t groups = rp_onnx_int(visit->node, "group", 1);
    int64_t more[2] = {0, 0};
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
    RP_TRY(read_weights(visit, &weight, &bias));
    if (!weight) {
        return RP_OK;
    }
    take_kernel(weight, &w);
    if (!has_even_pads(&w)) {
        *done = false;
        return refuse_uneven(visit);
    }
    if (!read_pair(visit->node, "output_padding", more) ||
        rp_onnx_find(visit->node, "output_shape") || !is_square(w.kernel) || !is_square(w.stride) ||
        !is_square(w.pad) || !is_square(more) || w.dilation[0] != 1 || w.dilation[1] != 1 ||
        groups < 1 || groups > 65536) {
        return rp_onnx_refuse(visit, "only square windows without dilation and output_shape can be "
                                     "trained here");
    }
    RP_TRY(rp_onnx_read_input(visit, 0, &from, done));
    if (!*done) {
        return RP_OK;
    }
    add_pair(keys, sizeof keys, "stride", w.stride, ones);
    add_pair(keys, sizeof keys, "pad", w.pad, zeros);
    add_pair(keys, sizeof keys, "output_pad", more, zeros);
    add_pair(keys, sizeof keys, "groups", (const int64_t[2]){groups, groups}, ones);
    RP_TRY(rp_onnx_draft(visit, "convtranspose2d", from, &draft,
                         "out: %" PRId64 ", kernel: %" PRId64 "%s%s", weight->dims.dim[1] * groups,
                         w.kernel[0], keys, bias ? "" : ", bias: false"));
    add_weights(&draft, weight, bias);
    RP_TRY(rp_onnx_emit_output(visit, &draft, done));
fail:
    return err;
}

static rp_err emit_pool(const rp_onnx_visit *visit, const char *kind, const windows *w,
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
    if (!has_even_pads(w)) {
        return refuse_uneven(visit);
    }
    RP_TRY(rp_onnx_read_input(visit, 0, &from, done));
    if (!*done) {
        return RP_OK;
    }
    add_pair(keys, sizeof keys, "stride", w->stride, w->kernel);
    add_pair(keys, sizeof keys, "pad", w->pad, zeros);
    RP_TRY(rp_onnx_draft(visit, kind, from, &draft, "kernel: %s%s%s%s", pair_text(w->kernel, text),
                         keys, w->ceil ? ", ceil_mode: true" : "", more));
    RP_TRY(rp_onnx_emit_output(visit, &draft, done));
fail:
    return err;
}

rp_err rp_onnx_layer_max_pool(const rp_onnx_visit *visit, bool *done) {
    windows w = {.stride = {1, 1}, .dilation = {1, 1}};
    rp_err err;
    RP_TRY(read_windows(visit, &w, done));
    if (*done) {
        RP_TRY(emit_pool(visit, "maxpool", &w, "", done));
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
        RP_TRY(emit_pool(visit, "avgpool", &w, pads && !counts ? ", count_include_pad: false" : "",
                         done));
    }
fail:
    return err;
}

rp_err rp_onnx_layer_global_pool(const rp_onnx_visit *visit, bool *done) {
    rp_onnx_layer draft;
    uint32_t from;
    rp_err err;
    RP_TRY(rp_onnx_read_input(visit, 0, &from, done));
    if (*done) {
        RP_TRY(rp_onnx_draft(visit, "globalavgpool", from, &draft, "%s", ""));
        RP_TRY(rp_onnx_emit_output(visit, &draft, done));
    }
fail:
    return err;
}

/* Factors of height and width from `scales` (input 2) or `sizes` (input 3); 0: not a whole factor
 * of both. */
static rp_err read_factor(const rp_onnx_visit *visit, int64_t *factor) {
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    const float *scales;
    const int64_t *sizes;
    uint64_t count[2];
    rp_err err;
    *factor = 0;
    RP_TRY(rp_onnx_const_floats(visit, 2, &scales, &count[0]));
    RP_TRY(rp_onnx_const_ints(visit, 3, &sizes, &count[1]));
    if (!in || !in->view || in->view->dims.rank != 4) {
        return RP_OK;
    }
    const rp_onnx_dims *dims = &in->view->dims;
    if (scales && count[0] == 4 && scales[0] == 1.0f && scales[1] == 1.0f &&
        scales[2] == scales[3] && scales[2] >= 1.0f && scales[2] <= 64.0f) {
        *factor = (float)(int64_t)scales[2] == scales[2] ? (int64_t)scales[2] : 0;
    } else if (sizes && count[1] == 4 && sizes[0] == dims->dim[0] && sizes[1] == dims->dim[1] &&
               dims->dim[2] > 0 && sizes[2] % dims->dim[2] == 0 && sizes[2] / dims->dim[2] <= 64 &&
               sizes[3] == sizes[2] / dims->dim[2] * dims->dim[3]) {
        *factor = sizes[2] / dims->dim[2];
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
    int64_t factor;
    rp_onnx_layer draft;
    uint32_t from;
    rp_err err;
    *done = false;
    if ((!nearest && !corners && !linear) || rp_onnx_int(visit->node, "antialias", 0) != 0) {
        return rp_onnx_refuse(visit,
                              "mode %.20s with %.30s cannot be trained here; supported are nearest "
                              "(asymmetric, floor) and linear (half_pixel, align_corners)",
                              mode, place);
    }
    RP_TRY(read_factor(visit, &factor));
    if (factor < 1) {
        return rp_onnx_refuse(visit, "only images are enlarged here, by one whole factor");
    }
    RP_TRY(rp_onnx_read_input(visit, 0, &from, done));
    if (*done) {
        RP_TRY(rp_onnx_draft(visit, "upsample", from, &draft, "scale: %" PRId64 ", mode: %s%s",
                             factor, nearest ? "nearest" : "bilinear",
                             corners ? ", align_corners: true" : ""));
        RP_TRY(rp_onnx_emit_output(visit, &draft, done));
    }
fail:
    return err;
}
