/* What several layers need; private to the room. */
#ifndef RP_NN_LAYER_COMMON_H
#define RP_NN_LAYER_COMMON_H

#include "nn/layer.h"

enum { RP_LAYER_OUT_MAX = 1 << 20 };

/* The obligatory key `out`: a number, or `classes`. */
rp_err rp_layer_read_out(rp_node *keys, uint32_t classes, uint32_t *out) RP_MUST_CHECK;

/* For inputs that must be images [C, H, W]: SHAPE otherwise. */
rp_err rp_layer_need_image(const rp_layer *layer, const rp_shape *in) RP_MUST_CHECK;

/* (size + 2 pad - dilation (kernel - 1) - 1) / stride + 1, rounded down; 0 when nothing fits. */
uint32_t rp_layer_window_count(uint32_t size, uint32_t kernel, uint32_t stride, uint32_t pad,
                               uint32_t dilation);

/* "[3, 32, 32]" into text of at least RP_LAYER_SHAPE_TEXT bytes. */
enum { RP_LAYER_SHAPE_TEXT = 80 };
const char *rp_layer_shape_text(const rp_shape *shape, char *text);

#endif
