/* Handlers of operators, by file. The table of all operators is in ops.c. Private to the room.
 *
 * Three kinds of handlers, tried in this order:
 *   fold      all inputs are constants: computes the outputs
 *   arrange   the outputs have the elements of an input, or depend on its shape only
 *   layer     an input is dynamic: finds the layer that computes the node, together with nodes
 *             before it if they are a pattern
 * and one that states the shape of a node that is only part of a pattern. */
#ifndef RP_ONNX_OPS_H
#define RP_ONNX_OPS_H

#include "onnx/graph.h"

typedef struct {
    const char *name;
    uint32_t inputs_min, inputs_max;
    rp_onnx_handler *fold, *arrange, *layer, *shape; /* each may be NULL */
} rp_onnx_op;

/* NULL: no operator with this name is known. */
const rp_onnx_op *rp_onnx_op_find(const char *name);
/* The operator of a node. NULL: it is unknown or of another domain, or the node contains a graph.
 */
const rp_onnx_op *rp_onnx_op_of(const rp_onnx_node *node);
/* Whether inputs up to inputs_min exist, and at most inputs_max. */
bool rp_onnx_has_inputs(const rp_onnx_node *node, const rp_onnx_op *op);
/* Whether the node is an operator of the table with as many inputs as it takes. Patterns use no
 * other node: one of another domain can have the same name. */
bool rp_onnx_is_standard(const rp_onnx_node *node);

/* ops_fold.c */
rp_onnx_handler rp_onnx_fold_binary, rp_onnx_fold_unary, rp_onnx_fold_where, rp_onnx_fold_range,
    rp_onnx_fold_constant, rp_onnx_fold_constant_of_shape, rp_onnx_fold_cast, rp_onnx_fold_gather,
    rp_onnx_fold_cumsum, rp_onnx_fold_matmul, rp_onnx_fold_trilu;

/* ops_gather.c */
rp_onnx_handler rp_onnx_fold_gather_elements, rp_onnx_fold_gather_nd, rp_onnx_shape_gather_nd;
/* The element of the data that element `element` of a GatherND with a constant index is; false: the
 * index is outside of the data. */
bool rp_onnx_find_row(const rp_onnx_dims *data, const rp_onnx_value *index, uint64_t element,
                      uint64_t *source);

/* ops_arrange.c */
rp_onnx_handler rp_onnx_arrange_shape, rp_onnx_arrange_size, rp_onnx_arrange_identity,
    rp_onnx_arrange_cast, rp_onnx_arrange_cast_like, rp_onnx_arrange_reshape,
    rp_onnx_arrange_flatten, rp_onnx_arrange_squeeze, rp_onnx_arrange_unsqueeze,
    rp_onnx_arrange_transpose, rp_onnx_arrange_slice, rp_onnx_arrange_split, rp_onnx_arrange_gather,
    rp_onnx_arrange_expand, rp_onnx_arrange_concat, rp_onnx_arrange_split_to_sequence,
    rp_onnx_arrange_sequence_at;

/* ops_blocks.c */
rp_onnx_handler rp_onnx_arrange_tile, rp_onnx_arrange_depth_to_space,
    rp_onnx_arrange_space_to_depth;

/* noise.c */
rp_onnx_handler rp_onnx_arrange_random;

/* ops_shape.c */
rp_onnx_handler rp_onnx_shape_same, rp_onnx_shape_broadcast, rp_onnx_shape_mask,
    rp_onnx_shape_matmul, rp_onnx_shape_reduce, rp_onnx_shape_pad, rp_onnx_shape_concat;

/* layers_image.c */
rp_onnx_handler rp_onnx_layer_conv, rp_onnx_layer_conv_transpose, rp_onnx_layer_max_pool,
    rp_onnx_layer_average_pool, rp_onnx_layer_global_pool, rp_onnx_layer_resize, rp_onnx_layer_pad;

/* layers_norm.c */
rp_onnx_handler rp_onnx_layer_batchnorm, rp_onnx_layer_layernorm, rp_onnx_layer_groupnorm,
    rp_onnx_layer_instancenorm, rp_onnx_layer_rmsnorm;

/* layers_activation.c */
rp_onnx_handler rp_onnx_layer_plain, rp_onnx_layer_leaky_relu, rp_onnx_layer_elu,
    rp_onnx_layer_prelu, rp_onnx_layer_clip, rp_onnx_layer_hard_sigmoid, rp_onnx_layer_gelu,
    rp_onnx_layer_dropout, rp_onnx_layer_softmax, rp_onnx_layer_formula;

/* layers_linear.c */
rp_onnx_handler rp_onnx_layer_gemm, rp_onnx_layer_matmul, rp_onnx_layer_gather;

/* layers_sum.c */
rp_onnx_handler rp_onnx_layer_add, rp_onnx_layer_mul, rp_onnx_layer_concat, rp_onnx_layer_mean;

/* layers_sequence.c */
rp_onnx_handler rp_onnx_layer_lstm, rp_onnx_layer_gru, rp_onnx_layer_attention;

#endif
