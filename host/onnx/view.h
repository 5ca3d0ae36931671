/* Arrangements of a tensor's elements: chains of Reshape, Transpose, Slice, Concat and Expand over
 * initialisers, inputs or outputs of layers. A chain is not matched step by step: its meaning is
 * the map from its elements to those of its leaves, which is computed element by element and
 * compared with the wanted one. Pure. */
#ifndef RP_ONNX_VIEW_H
#define RP_ONNX_VIEW_H

#include "base/arena.h"
#include "onnx/model.h"

enum { RP_ONNX_VIEW_DEPTH_MAX = 64 };

typedef struct {
    uint32_t rank;
    int64_t dim[RP_ONNX_RANK_MAX];
    uint64_t count; /* product of the sizes */
} rp_onnx_dims;

typedef enum {
    RP_ONNX_LEAF,
    RP_ONNX_RESHAPE,
    RP_ONNX_TRANSPOSE,
    RP_ONNX_SLICE,
    RP_ONNX_CONCAT,
    RP_ONNX_EXPAND
} rp_onnx_view_op;

typedef struct rp_onnx_view rp_onnx_view;
struct rp_onnx_view {
    rp_onnx_view_op op;
    rp_onnx_dims dims;
    uint32_t depth; /* 0 for a leaf */
    uint32_t leaf;  /* LEAF: a value */
    uint32_t in_count;
    const rp_onnx_view *const *in;
    uint8_t perm[RP_ONNX_RANK_MAX];                          /* TRANSPOSE: as in ONNX */
    int64_t start[RP_ONNX_RANK_MAX], step[RP_ONNX_RANK_MAX]; /* SLICE: of every axis */
    uint32_t axis;                                           /* CONCAT */
};

/* Sizes with their product. False: negative, too many, or a product above 2^40. */
bool rp_onnx_dims_of(uint32_t rank, const int64_t *dim, rp_onnx_dims *out) RP_MUST_CHECK;
bool rp_onnx_dims_equal(const rp_onnx_dims *a, const rp_onnx_dims *b);
/* The common shape of two tensors by NumPy's rule. False: they have no common shape. */
bool rp_onnx_dims_broadcast(const rp_onnx_dims *a, const rp_onnx_dims *b,
                            rp_onnx_dims *out) RP_MUST_CHECK;

/* Each returns NULL in *out if the arrangement is invalid, or the chain too deep. errors MEMORY */
rp_err rp_onnx_view_leaf(rp_arena *arena, uint32_t value, const rp_onnx_dims *dims,
                         const rp_onnx_view **out) RP_MUST_CHECK;
rp_err rp_onnx_view_reshape(rp_arena *arena, const rp_onnx_view *in, const rp_onnx_dims *dims,
                            const rp_onnx_view **out) RP_MUST_CHECK;
rp_err rp_onnx_view_transpose(rp_arena *arena, const rp_onnx_view *in, const int64_t *perm,
                              const rp_onnx_view **out) RP_MUST_CHECK;
/* Along one axis: `count` elements from `start` on, every `step`-th. */
rp_err rp_onnx_view_slice(rp_arena *arena, const rp_onnx_view *in, uint32_t axis, int64_t start,
                          int64_t step, int64_t count, const rp_onnx_view **out) RP_MUST_CHECK;
rp_err rp_onnx_view_concat(rp_arena *arena, const rp_onnx_view *const *in, uint32_t count,
                           uint32_t axis, const rp_onnx_view **out) RP_MUST_CHECK;
rp_err rp_onnx_view_expand(rp_arena *arena, const rp_onnx_view *in, const rp_onnx_dims *dims,
                           const rp_onnx_view **out) RP_MUST_CHECK;

/* The element of a leaf that is element `index` of the view. */
typedef struct {
    uint32_t leaf;
    uint64_t index;
} rp_onnx_source;
rp_onnx_source rp_onnx_view_source(const rp_onnx_view *view, uint64_t index);

/* The only leaf of a view; RP_ONNX_NONE: it has several. */
uint32_t rp_onnx_view_only_leaf(const rp_onnx_view *view);
/* Whether the chain has an Expand, so that an element of a leaf may be there several times. */
bool rp_onnx_view_repeats(const rp_onnx_view *view);
/* Whether all elements are those of one leaf of `count` elements, in order. */
bool rp_onnx_view_is_whole(const rp_onnx_view *view, uint64_t count);

#endif
