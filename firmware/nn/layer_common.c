#include "nn/layer_common.h"

#include <stdio.h>
#include <string.h>

#include "device/program.h"

enum {
    LANES = 16, /* elements of one work-item: kernels/vec16.clh */
    GROUP_ITEMS = 64,
    CHUNK_ELEMENTS = 8192 /* least elements of one first-level sum */
};

/* Reads a required size that may be the word `word`, which then means `size`. */
static rp_err read_size(rp_node *keys, const char *key, const char *word, uint32_t size,
                        uint32_t *out) {
    rp_err err = rp_node_need(keys, key);
    if (err != RP_OK) {
        return err;
    }
    const rp_node *node = rp_node_find(keys, key);
    if (rp_node_is_scalar(node) && strcmp(rp_node_text(node), word) == 0) {
        if (size == 0) {
            return rp_node_fail(node, "the data set has no %s: expected a number", word);
        }
        *out = size;
        return RP_OK;
    }
    return rp_node_u32(keys, key, 1, RP_LAYER_OUT_MAX, out);
}

rp_err rp_layer_read_out(rp_node *keys, const rp_model_data *data, uint32_t *out) {
    return read_size(keys, "out", "classes", data->classes, out);
}

rp_err rp_layer_read_count(rp_node *keys, const rp_model_data *data, uint32_t *out) {
    return read_size(keys, "count", "tokens", data->tokens, out);
}

const char *rp_layer_shape_text(const rp_shape *shape, char *text) {
    size_t used = (size_t)snprintf(text, RP_LAYER_SHAPE_TEXT, "[");
    for (uint32_t i = 0; i < shape->dims && i < RP_DIMS_MAX; i++) {
        used += (size_t)snprintf(text + used, RP_LAYER_SHAPE_TEXT - used, "%s%u", i ? ", " : "",
                                 shape->dim[i]);
    }
    snprintf(text + used, RP_LAYER_SHAPE_TEXT - used, "]");
    return text;
}

rp_err rp_layer_need_image(const rp_layer *layer, const rp_shape *in) {
    if (in->dims != 3) {
        char text[RP_LAYER_SHAPE_TEXT];
        return rp_fail(RP_ERR_SHAPE, "layer '%s': %s needs an image [C, H, W], its input is %s",
                       layer->name, layer->kind->name, rp_layer_shape_text(in, text));
    }
    return RP_OK;
}

rp_err rp_layer_need_sequence(const rp_layer *layer, const rp_shape *in) {
    if (in->dims != 2) {
        char text[RP_LAYER_SHAPE_TEXT];
        return rp_fail(RP_ERR_SHAPE, "layer '%s': %s needs a sequence [T, C], its input is %s",
                       layer->name, layer->kind->name, rp_layer_shape_text(in, text));
    }
    return RP_OK;
}

rp_err rp_layer_read_pair(rp_node *keys, const char *key, uint32_t min, uint32_t max,
                          rp_pair *out) {
    const rp_node *node = rp_node_find(keys, key);
    char text[RP_LAYER_PAIR_TEXT];
    rp_err err;
    if (!node && out->h != out->w) {
        return rp_node_default(keys, key, rp_layer_pair_text(*out, text));
    }
    if (!node || rp_node_is_scalar(node)) {
        err = rp_node_u32(keys, key, min, max, &out->h);
        out->w = out->h;
        return err;
    }
    if (!rp_node_is_list(node) || rp_node_count(node) != 2) {
        return rp_node_fail(node,
                            "expected a number from %u to %u, or a list of two: "
                            "[height, width]",
                            min, max);
    }
    RP_TRY(rp_node_item_u32(node, 0, min, max, &out->h));
    RP_TRY(rp_node_item_u32(node, 1, min, max, &out->w));
fail:
    return err;
}

const char *rp_layer_pair_text(rp_pair pair, char *text) {
    if (pair.h == pair.w) {
        snprintf(text, RP_LAYER_PAIR_TEXT, "%u", pair.h);
    } else {
        snprintf(text, RP_LAYER_PAIR_TEXT, "[%u, %u]", pair.h, pair.w);
    }
    return text;
}

uint32_t rp_layer_window_count(uint32_t size, uint32_t kernel, uint32_t stride, uint32_t pad,
                               uint32_t dilation, bool ceil) {
    const uint64_t padded = (uint64_t)size + 2 * (uint64_t)pad + (ceil ? stride - 1 : 0);
    const uint64_t span = (uint64_t)dilation * (kernel - 1) + 1;
    if (padded < span) {
        return 0;
    }
    const uint64_t count = (padded - span) / stride + 1;
    const bool behind = ceil && (count - 1) * stride >= (uint64_t)size + pad;
    return (uint32_t)(behind ? count - 1 : count);
}

/* ---- launching ------------------------------------------------------------------------------ */

rp_err rp_layer_run_items(rp_launch *launch, size_t items, size_t group_items) {
    return rp_launch_run(launch, 1, &items, &group_items);
}

rp_err rp_layer_run_wide(rp_launch *launch, size_t count) {
    return rp_layer_run_items(launch, (count + LANES - 1) / LANES, GROUP_ITEMS);
}

uint32_t rp_layer_lanes(uint32_t wide) {
    return wide >= 16 ? 16 : wide >= 8 ? 8 : 4;
}

rp_err rp_layer_begin(const rp_layer_call *call, const char *program, const char *entry,
                      const char *defines, rp_launch *launch) {
    rp_kernel *kernel;
    rp_err err = rp_kernel_find(call->device, program, entry, defines, &kernel);
    if (err == RP_OK) {
        *launch = rp_launch_begin(kernel);
    }
    return err;
}

rp_err rp_layer_copy_rows(const rp_layer_call *call, rp_rows to, rp_rows from, uint32_t columns,
                          uint32_t rows, bool add) {
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "copy", "copy_rows", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, to.buffer);
    rp_arg_buffer(&launch, from.buffer);
    rp_arg_u64(&launch, to.first);
    rp_arg_u64(&launch, to.stride);
    rp_arg_u64(&launch, from.first);
    rp_arg_u64(&launch, from.stride);
    rp_arg_u32(&launch, columns);
    rp_arg_u32(&launch, rows);
    rp_arg_u32(&launch, add);
    return rp_layer_run_wide(&launch, (size_t)((columns + LANES - 1) / LANES) * rows * LANES);
}

rp_err rp_layer_copy(const rp_layer_call *call, const rp_tensor *to, const rp_tensor *from,
                     const rp_shape *sample, bool add) {
    if (rp_tensor_same_memory(to, from) && !add) {
        return RP_OK;
    }
    const uint32_t count = (uint32_t)rp_shape_count(sample);
    return rp_layer_copy_rows(call, rp_layer_rows(to, count), rp_layer_rows(from, count), count,
                              call->n, add);
}

rp_err rp_layer_mask_positive(const rp_layer_call *call, rp_buffer *out, uint64_t out_first) {
    rp_launch launch;
    const size_t count = call->n * rp_shape_count(&call->plan->out);
    rp_err err = rp_layer_begin(call, "copy", "mask_positive", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, out);
    rp_arg_u64(&launch, out_first);
    rp_arg_tensor(&launch, call->dy);
    rp_arg_tensor(&launch, call->y);
    rp_arg_u32(&launch, (uint32_t)count);
    return rp_layer_run_wide(&launch, count);
}

/* ---- sums over the batch -------------------------------------------------------------------- */

uint32_t rp_layer_chunk_images(uint32_t n, size_t image_elements) {
    size_t images = CHUNK_ELEMENTS / image_elements + 1;
    return images < n ? (uint32_t)images : n;
}

uint32_t rp_layer_chunk_count(uint32_t n, size_t image_elements) {
    uint32_t images = rp_layer_chunk_images(n, image_elements);
    return (n + images - 1) / images;
}

rp_err rp_layer_sum_parts(const rp_layer_call *call, rp_buffer *out, uint64_t part_first,
                          uint32_t count, uint32_t chunks) {
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "bias", "sum_parts", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, out);
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_u64(&launch, part_first);
    rp_arg_u32(&launch, count);
    rp_arg_u32(&launch, chunks);
    rp_arg_u32(&launch, call->accumulate);
    return rp_layer_run_wide(&launch, count);
}

rp_err rp_layer_sum_samples(const rp_layer_call *call, rp_buffer *out, rp_rows dy, uint32_t count,
                            uint32_t total) {
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "positions", "sum_samples", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, out);
    rp_arg_buffer(&launch, dy.buffer);
    rp_arg_u64(&launch, dy.first);
    rp_arg_u64(&launch, dy.stride);
    rp_arg_u32(&launch, call->n);
    rp_arg_u32(&launch, count);
    rp_arg_u32(&launch, total);
    rp_arg_u32(&launch, call->accumulate);
    return rp_layer_run_wide(&launch, total);
}

/* A chunk of a bias sum spans images of one channel (of all channels for single pixels). */
size_t rp_layer_bias_floats(uint32_t n, uint32_t channels, uint32_t pixels) {
    return (size_t)channels * rp_layer_chunk_count(n, pixels == 1 ? LANES : pixels);
}

rp_err rp_layer_bias_gradient(const rp_layer_call *call, rp_buffer *out, uint64_t part_first,
                              rp_rows dy, uint32_t n, uint32_t channels, uint32_t pixels) {
    rp_launch launch;
    const bool columns = pixels == 1;
    const uint32_t images = rp_layer_chunk_images(n, columns ? LANES : pixels);
    const uint32_t chunks = (n + images - 1) / images;
    rp_err err =
        rp_layer_begin(call, "bias", columns ? "bias_columns" : "bias_planes", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_u64(&launch, part_first);
    rp_arg_buffer(&launch, dy.buffer);
    rp_arg_u64(&launch, dy.first);
    rp_arg_u32(&launch, n);
    rp_arg_u32(&launch, channels);
    rp_arg_u32(&launch, pixels);
    rp_arg_u32(&launch, images);
    const size_t items = columns ? (channels + LANES - 1) / LANES : channels;
    err = rp_launch_run(&launch, 2, (size_t[]){items, chunks}, (size_t[]){4, 1});
    return err == RP_OK ? rp_layer_sum_parts(call, out, part_first, channels, chunks) : err;
}
