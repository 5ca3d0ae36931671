/* Matrix products, the only heavy arithmetic: C = A * B (+ C), with operands that need not be
 * stored as matrices. Two implementations serve every call: CLBlast (default) and panels (packed
 * panels and wide vectors, for CPU devices). A board's tuning.json chooses one (found by `ringpipe
 * tune`), never a name in code.
 *
 * source  Chellapilla et al. 2006 (convolution as a product, im2col); Goto & van de Geijn 2008
 *         (packed panels) */
#ifndef RP_DEVICE_GEMM_H
#define RP_DEVICE_GEMM_H

#include "device/device.h"

/* The patches of an image tensor [n, channels_total, h, w] as a matrix
 *   rows (c, r, s), c < channels;  columns (image, p, q)
 *   element = image[i][channel_first + c][yy][xx],
 *   yy = (p * y.mul + r * y.step + y.off) / div; 0 where that does not divide or is outside; xx =
 *   (q * x.mul + s * x.step + x.off) / div alike.
 * A convolution's forward: mul = stride, step = dilation, off = -pad, div = 1. The gradient of its
 * input (p, q run over the input's pixels): mul = 1, step = -dilation, off = pad, div = stride. */
typedef struct {
    int32_t mul, step, off;
} rp_patch_axis;

typedef struct {
    uint32_t channels_total, channel_first, channels;
    uint32_t h, w;
    uint32_t r, s;
    uint32_t p, q;
    rp_patch_axis y, x;
    int32_t div;
} rp_patches;

typedef enum { RP_MAT_STRIDED, RP_MAT_PATCHES } rp_mat_kind;

/* A logical matrix of rows x cols.
 * STRIDED: element (i, j) = data[offset + i * row_stride + (j / inner) * outer_stride
 *                                + (j % inner) * inner_stride]
 *   plain row-major: inner = cols, inner_stride = 1, row_stride = cols
 *   [N,K,P,Q] as K x (N*P*Q): row_stride = P*Q, inner = P*Q, inner_stride = 1, outer_stride = K*P*Q
 * PATCHES: see above; images [image_first, ...) of the buffer, cols = images * p * q.
 * `transposed` swaps the roles: the operand is the transpose of what is described. */
typedef struct {
    rp_mat_kind kind;
    const rp_buffer *buffer;
    uint32_t rows, cols; /* before `transposed` is applied */
    uint64_t offset;     /* elements; for PATCHES that of the first image */
    uint64_t row_stride, outer_stride, inner_stride;
    uint32_t inner;
    bool transposed;
    rp_patches patches;
} rp_mat;

/* Plain row-major rows x cols at `offset`. */
rp_mat rp_mat_plain(const rp_buffer *buffer, uint64_t offset, uint32_t rows, uint32_t cols);
/* Channels [first, first + count) of [n, total, pixels] as count x (n * pixels). */
rp_mat rp_mat_channels(const rp_buffer *buffer, uint32_t n, uint32_t total, uint32_t first,
                       uint32_t count, uint32_t pixels);
rp_mat rp_mat_transposed(rp_mat mat);

typedef enum { RP_BIAS_NONE, RP_BIAS_ROW, RP_BIAS_COL } rp_bias_axis;

typedef struct {
    bool accumulate;        /* C += A*B instead of C = A*B */
    rp_bias_axis bias_axis; /* adds bias[i] to row i or bias[j] to column j of C */
    const rp_buffer *bias;
    uint64_t bias_offset; /* elements */
    bool relu;            /* max(., 0) after the bias; not with accumulate */
} rp_epilogue;

/* C [M,N] = A [M,K] * B [K,N]. C must be STRIDED and not transposed. Deterministic: the sum over K
 * has a fixed order that depends only on the shapes. Borrows everything until a later fence; the
 * workspace has at least rp_gemm_workspace_bytes(), and may be NULL if that is 0.
 * errors  SHAPE when the inner dimensions differ; DEVICE from the driver */
rp_err rp_gemm_run(rp_device *device, const rp_mat *c, const rp_mat *a, const rp_mat *b,
                   const rp_epilogue *epilogue, rp_buffer *workspace) RP_MUST_CHECK;

/* An upper bound for this call. Pure: needs no device; buffers in the mats may be NULL. */
size_t rp_gemm_workspace_bytes(rp_gemm_choice choice, const rp_mat *c, const rp_mat *a,
                               const rp_mat *b);

#endif
