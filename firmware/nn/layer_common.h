/* Code shared by several layers; private to the room. Launches use the device of the call. */
#ifndef RP_NN_LAYER_COMMON_H
#define RP_NN_LAYER_COMMON_H

#include "device/program.h"
#include "nn/layer.h"

enum { RP_LAYER_OUT_MAX = 1 << 20, RP_LAYER_SHAPE_TEXT = 80 };

/* Reads the required key `out`: a number, or `classes`. */
rp_err rp_layer_read_out(rp_node *keys, const rp_model_data *data, uint32_t *out) RP_MUST_CHECK;

/* Reads the required key `count`, the number of token ids: a number, or `tokens`. */
rp_err rp_layer_read_count(rp_node *keys, const rp_model_data *data, uint32_t *out) RP_MUST_CHECK;

/* Fails with SHAPE unless the input is an image [C, H, W]. */
rp_err rp_layer_need_image(const rp_layer *layer, const rp_shape *in) RP_MUST_CHECK;

/* Fails with SHAPE unless the input is a sequence [T, C]. */
rp_err rp_layer_need_sequence(const rp_layer *layer, const rp_shape *in) RP_MUST_CHECK;

/* A size, step or pad of windows, along the height and along the width. */
typedef struct {
    uint32_t h, w;
} rp_pair;

enum { RP_LAYER_WINDOW_MAX = 255, RP_LAYER_PAIR_TEXT = 32 };

static inline rp_pair rp_pair_same(uint32_t size) {
    return (rp_pair){size, size};
}

/* Reads a key that is one number for both axes, or a list [height, width]. When the key is absent,
 * *out keeps its value. The bounds are inclusive. errors USAGE */
rp_err rp_layer_read_pair(rp_node *keys, const char *key, uint32_t min, uint32_t max,
                          rp_pair *out) RP_MUST_CHECK;

/* Writes "3", or "[1, 7]" where they differ, to a text of at least RP_LAYER_PAIR_TEXT bytes. */
const char *rp_layer_pair_text(rp_pair pair, char *text);

/* Along one axis: (size + 2 pad - dilation (kernel - 1) - 1) / stride + 1, rounded down; 0 when
 * nothing fits. If `ceil`, rounded up, but without a window that would begin after the image:
 * ceil_mode of torch.nn.MaxPool2d. */
uint32_t rp_layer_window_count(uint32_t size, uint32_t kernel, uint32_t stride, uint32_t pad,
                               uint32_t dilation, bool ceil);

static inline uint32_t rp_layer_divide_up(uint32_t a, uint32_t b) {
    return (a + b - 1) / b;
}

/* Writes the shape as "[3, 32, 32]" to a text of at least RP_LAYER_SHAPE_TEXT bytes. */
const char *rp_layer_shape_text(const rp_shape *shape, char *text);

rp_err rp_layer_begin(const rp_layer_call *call, const char *program, const char *entry,
                      const char *defines, rp_launch *launch) RP_MUST_CHECK;
rp_err rp_layer_run_items(rp_launch *launch, size_t items, size_t group_items) RP_MUST_CHECK;
/* One item per 16 elements, as in kernels/vec16.clh. */
rp_err rp_layer_run_wide(rp_launch *launch, size_t count) RP_MUST_CHECK;

/* LANES of kernels/lanes.clh for rows of `wide` results. */
uint32_t rp_layer_lanes(uint32_t wide);

/* Rows of floats in a buffer: row i begins at element first + i * stride. */
typedef struct {
    rp_buffer *buffer;
    uint64_t first, stride;
} rp_rows;

static inline rp_rows rp_layer_rows(const rp_tensor *tensor, uint64_t stride) {
    return (rp_rows){tensor->buffer, tensor->offset, stride};
}

/* to (+)= from, kernels/copy.cl. */
rp_err rp_layer_copy_rows(const rp_layer_call *call, rp_rows to, rp_rows from, uint32_t columns,
                          uint32_t rows, bool add) RP_MUST_CHECK;
/* Copies n samples; does nothing if it is the same memory. */
rp_err rp_layer_copy(const rp_layer_call *call, const rp_tensor *to, const rp_tensor *from,
                     const rp_shape *sample, bool add) RP_MUST_CHECK;
/* out[out_first ...] = dy where y > 0, else 0: the backward of a fused ReLU. */
rp_err rp_layer_mask_positive(const rp_layer_call *call, rp_buffer *out,
                              uint64_t out_first) RP_MUST_CHECK;

/* Sums over the batch have two levels: over chunks of images, then over the chunks. The size of a
 * chunk depends only on the shapes, and so does the order of the sum. */
uint32_t rp_layer_chunk_images(uint32_t n, size_t image_elements);
uint32_t rp_layer_chunk_count(uint32_t n, size_t image_elements);
/* out[i] (+= when call->accumulate) sum of workspace[part_first + chunk * count + i]. */
rp_err rp_layer_sum_parts(const rp_layer_call *call, rp_buffer *out, uint64_t part_first,
                          uint32_t count, uint32_t chunks) RP_MUST_CHECK;

/* out[i] (+)= the sum over the samples of element i of their rows dy, i < count, in the order of
 * the samples; out[i] (+)= 0 for i from count to total. */
rp_err rp_layer_sum_samples(const rp_layer_call *call, rp_buffer *out, rp_rows dy, uint32_t count,
                            uint32_t total) RP_MUST_CHECK;

/* out[c] (+)= sum of dy [n, channels, pixels], where n need not be that of the call; uses
 * bias_floats() of the workspace from part_first on. dy.stride is not used. */
size_t rp_layer_bias_floats(uint32_t n, uint32_t channels, uint32_t pixels);
rp_err rp_layer_bias_gradient(const rp_layer_call *call, rp_buffer *out, uint64_t part_first,
                              rp_rows dy, uint32_t n, uint32_t channels,
                              uint32_t pixels) RP_MUST_CHECK;

#endif
