/* Code shared by maxpool and avgpool; private to the room. Windows are counted as in PyTorch's
 * floor or ceil mode; padding is at most half the kernel, so that every window contains a pixel. */
#ifndef RP_NN_POOL_H
#define RP_NN_POOL_H

#include "nn/layer_common.h"

typedef struct {
    rp_pair kernel, stride, pad;
    bool ceil_mode;
    bool average, count_include_pad; /* of avgpool */
} rp_pool_spec;

/* The keys of both kinds. */
rp_err rp_pool_parse(rp_layer *layer, rp_node *keys, const rp_model_data *data) RP_MUST_CHECK;
/* Sets `out` and the costs. */
rp_err rp_pool_plan(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) RP_MUST_CHECK;
/* A kernel of kernels/pool.cl built for this window; `index` is the type that holds an arg-max. */
rp_err rp_pool_begin(const rp_layer_call *call, const char *entry, rp_launch *launch) RP_MUST_CHECK;
/* Adds the arguments rows, h, w, p, q, the pads, and `add` unless it is negative; one item per row.
 */
rp_err rp_pool_run(const rp_layer_call *call, rp_launch *launch, uint32_t row_height,
                   int add) RP_MUST_CHECK;
/* Bytes of an index into the window. */
size_t rp_pool_index_bytes(const rp_pool_spec *spec);

#endif
