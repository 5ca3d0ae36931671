/* The three implementations of a convolution: as matrix products (layer_conv2d.c); directly for
 * groups of few channels (conv_direct.c) and, on CPUs, for few channels in one group (conv_flat.c).
 * Private to the room. */
#ifndef RP_NN_CONV_H
#define RP_NN_CONV_H

#include "nn/layer_common.h"

enum { RP_CONV_WEIGHT, RP_CONV_BIAS }; /* the parameters */

typedef struct {
    uint32_t out, groups;
    rp_pair kernel, stride, pad, dilation;
    bool bias, relu;
} rp_conv_spec;

/* x [n, c, h, w], y [n, k, p, q]; cg, kg: channels in and out of one group; taps of a kernel. */
typedef struct {
    const rp_conv_spec *spec;
    uint32_t n, c, h, w, k, p, q, cg, kg, taps;
    bool transposed; /* the convolution that a convtranspose2d transposes */
    bool add;        /* forward adds to y; only if `transposed` */
} rp_conv;

rp_conv rp_conv_of(const rp_layer *layer, const rp_layer_plan *plan, const rp_shape *in,
                   uint32_t n);

/* The convolution with the tensors of the call, by the implementation that suits it. Its sizes are
 * those of `conv`; layer, in, and unless there is a relu also plan and n of the call are not used.
 */
size_t rp_conv_workspace_bytes(const rp_conv *conv, rp_gemm_choice choice);
rp_err rp_conv_forward(const rp_layer_call *call, const rp_conv *conv) RP_MUST_CHECK;
rp_err rp_conv_backward(const rp_layer_call *call, const rp_conv *conv) RP_MUST_CHECK;

/* Whether kernels/conv.cl is faster than GEMMs of a few rows. */
bool rp_conv_is_direct(const rp_conv *conv);
rp_err rp_conv_direct_forward(const rp_layer_call *call, const rp_conv *conv) RP_MUST_CHECK;
rp_err rp_conv_direct_input(const rp_layer_call *call, const rp_conv *conv,
                            rp_rows dy) RP_MUST_CHECK;
/* Floats for sums over chunks of images, in the workspace from float `part_first` on. */
size_t rp_conv_direct_part_floats(const rp_conv *conv);
rp_err rp_conv_direct_weight(const rp_layer_call *call, const rp_conv *conv, rp_rows dy,
                             uint64_t part_first) RP_MUST_CHECK;

/* Whether kernels/conv_flat.cl is faster: output as large as the image, few channels, and a device
 * whose products are those of a CPU. */
bool rp_conv_is_flat(const rp_conv *conv, rp_gemm_choice choice);
/* Floats needed in the workspace, from float `work_first` on. */
size_t rp_conv_flat_floats(const rp_conv *conv);
rp_err rp_conv_flat_forward(const rp_layer_call *call, const rp_conv *conv,
                            uint64_t work_first) RP_MUST_CHECK;
/* dx and dw, if the call wants them; without the bias. */
rp_err rp_conv_flat_backward(const rp_layer_call *call, const rp_conv *conv, rp_rows dy,
                             uint64_t work_first) RP_MUST_CHECK;

/* dx of the images [first, first + images), group `group`, (+)= the columns [cg taps, images p q]
 * in the workspace from float `columns_first` on. */
rp_err rp_conv_gather_columns(const rp_layer_call *call, const rp_conv *conv, uint32_t group,
                              uint32_t first, uint32_t images,
                              uint64_t columns_first) RP_MUST_CHECK;

#endif
