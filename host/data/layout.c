#include "data/layout.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"

const char *rp_layout_text(const rp_shape *shape, char *text) {
    size_t used = 1;
    (void)snprintf(text, RP_LAYOUT_TEXT_BYTES, "[");
    for (uint32_t i = 0; i < shape->dims && used < RP_LAYOUT_TEXT_BYTES; i++) {
        const int more = snprintf(text + used, RP_LAYOUT_TEXT_BYTES - used, "%s%u", i ? ", " : "",
                                  shape->dim[i]);
        used += more > 0 ? (size_t)more : 0;
    }
    if (used + 1 < RP_LAYOUT_TEXT_BYTES) {
        (void)snprintf(text + used, RP_LAYOUT_TEXT_BYTES - used, "]");
    }
    return text;
}

bool rp_layout_fits(const rp_shape *a, const rp_shape *b) {
    uint32_t i = 0;
    uint32_t j = 0;
    for (;;) {
        while (i < a->dims && a->dim[i] == 1) {
            i++;
        }
        while (j < b->dims && b->dim[j] == 1) {
            j++;
        }
        if (i == a->dims || j == b->dims) {
            return i == a->dims && j == b->dims;
        }
        if (a->dim[i++] != b->dim[j++]) {
            return false;
        }
    }
}

rp_shape rp_layout_channels_first(const rp_shape *last) {
    return rp_shape_3(last->dim[2], last->dim[0], last->dim[1]);
}

rp_shape rp_layout_channels_last(const rp_shape *first) {
    return rp_shape_3(first->dim[1], first->dim[2], first->dim[0]);
}

rp_err rp_layout_turn(const rp_shape *first, double *value) {
    const size_t channels = first->dim[0];
    const size_t plane = (size_t)first->dim[1] * first->dim[2];
    void *block;
    rp_err err = rp_block_new(channels * plane * sizeof *value, &block);
    if (err != RP_OK) {
        return err;
    }
    const double *from = block;
    memcpy(block, value, channels * plane * sizeof *value);
    for (size_t c = 0; c < channels; c++) {
        for (size_t i = 0; i < plane; i++) {
            value[c * plane + i] = from[i * channels + c];
        }
    }
    rp_block_free(block);
    return RP_OK;
}
