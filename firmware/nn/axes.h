/* Loops over the axes of samples, shared by the elementary kinds; private to the room. A loop has
 * RP_DIMS_MAX axes, outermost first: axes of size 1, then the samples, then the axes of a sample.
 * An operand has a step for each of them, which is 0 where the operand is broadcast. */
#ifndef RP_NN_AXES_H
#define RP_NN_AXES_H

#include "nn/layer_common.h"

enum { RP_AXES_MAX = RP_DIMS_MAX - 1 /* of a sample */ };

typedef struct {
    uint32_t size[RP_DIMS_MAX];
} rp_axes;

/* Where an operand's elements are: first + the sum over the axes of index * step. */
typedef struct {
    rp_buffer *buffer;
    uint64_t first;
    int32_t step[RP_DIMS_MAX];
} rp_axes_operand;

/* The common shape of two samples by NumPy's rule. False: they have no common shape. */
bool rp_axes_common(const rp_shape *a, const rp_shape *b, rp_shape *out) RP_MUST_CHECK;

/* The loop over n samples of a shape. */
rp_axes rp_axes_over(uint32_t n, const rp_shape *shape);
/* The operand whose samples have the shape `of`, in a loop over `shape`, which `of` is broadcast
 * to. */
rp_axes_operand rp_axes_operand_of(const rp_tensor *tensor, const rp_shape *of,
                                   const rp_shape *shape);
/* Position in rp_axes of axis `axis` of a sample with `dims` axes. */
static inline uint32_t rp_axes_at(uint32_t dims, uint32_t axis) {
    return RP_DIMS_MAX - dims + axis;
}

/* Passes neighbouring axes as one if all operands allow it; the last axis is the longest that
 * results. */
void rp_axes_merge(rp_axes *axes, rp_axes_operand *const *operands, uint32_t count);

/* Arguments of kernels: all sizes; all steps of an operand. */
void rp_axes_put_sizes(rp_launch *launch, const rp_axes *axes);
void rp_axes_put_steps(rp_launch *launch, const rp_axes_operand *operand);
/* One item for each 16 elements of the last axis. */
rp_err rp_axes_run(rp_launch *launch, const rp_axes *axes) RP_MUST_CHECK;

/* to (+)= factor * from, element by element of the loop. Elements of `to` must differ. */
rp_err rp_axes_move(const rp_layer_call *call, rp_axes axes, rp_axes_operand to,
                    rp_axes_operand from, float factor, bool add) RP_MUST_CHECK;

/* to[0 .. count) = value. */
rp_err rp_axes_fill(const rp_layer_call *call, const rp_tensor *to, size_t count,
                    float value) RP_MUST_CHECK;

/* Alternating runs of axes of `whole`, first those that `part` keeps: keep[0], over[0], keep[1],
 * and so on. Samples are in keep[0]. */
typedef struct {
    uint32_t keep[3], over[3];
} rp_axes_runs;

/* `part` has the rank of `whole`, and size 1 where it does not keep an axis. */
rp_axes_runs rp_axes_runs_of(uint32_t n, const rp_shape *part, const rp_shape *whole);
/* `shape` with as many axes as `whole`: axes of size 1 first. */
rp_shape rp_axes_padded(const rp_shape *shape, const rp_shape *whole);

/* out (+)= factor * the sum of x over the axes that are not kept. The order is that of the
 * elements; along the last axis there are 16 sums. */
rp_err rp_axes_sum(const rp_layer_call *call, const rp_axes_runs *runs, const rp_tensor *out,
                   rp_rows x, float factor, bool add) RP_MUST_CHECK;

/* Reads a list of 1 to RP_AXES_MAX different axes of a sample, as bits. */
rp_err rp_axes_read(rp_node *keys, const char *key, uint32_t *bits) RP_MUST_CHECK;
/* Reads a required list of 1 to RP_AXES_MAX sizes. */
rp_err rp_axes_read_shape(rp_node *keys, const char *key, rp_shape *out) RP_MUST_CHECK;
/* Fails with SHAPE unless the input has such an axis. */
rp_err rp_axes_need(const rp_layer *layer, uint32_t axis, const rp_shape *in) RP_MUST_CHECK;

#endif
