#include "nn/layer.h"

#include <stdio.h>
#include <string.h>

#include "nn/layer_common.h"

const rp_layer_kind *rp_layer_find(const char *name) {
    for (const rp_layer_kind *const *kind = rp_layer_kinds; *kind; kind++) {
        if (strcmp((*kind)->name, name) == 0) {
            return *kind;
        }
    }
    return NULL;
}

rp_err rp_layer_read_out(rp_node *keys, uint32_t classes, uint32_t *out) {
    rp_err err = rp_node_need(keys, "out");
    if (err != RP_OK) {
        return err;
    }
    const rp_node *node = rp_node_find(keys, "out");
    if (rp_node_is_scalar(node) && strcmp(rp_node_text(node), "classes") == 0) {
        if (classes == 0) {
            return rp_node_fail(node, "the data set has no classes: expected a number");
        }
        *out = classes;
        return RP_OK;
    }
    return rp_node_u32(keys, "out", 1, RP_LAYER_OUT_MAX, out);
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

uint32_t rp_layer_window_count(uint32_t size, uint32_t kernel, uint32_t stride, uint32_t pad,
                               uint32_t dilation) {
    uint64_t padded = (uint64_t)size + 2 * (uint64_t)pad;
    uint64_t span = (uint64_t)dilation * (kernel - 1) + 1;
    return padded < span ? 0 : (uint32_t)((padded - span) / stride + 1);
}
