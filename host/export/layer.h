/* What writers of layers use. A writer adds the nodes that compute a layer, and returns the value
 * that they give. Private to the room.
 *
 * A node of a layer is called "/<layer>/<operator>", as PyTorch's exporter would call it, so that
 * an import calls the layer the same. */
#ifndef RP_EXPORT_LAYER_H
#define RP_EXPORT_LAYER_H

#include "export/graph.h"

typedef struct {
    rp_export_graph *graph;
    uint32_t opset;
    uint32_t index;
    const rp_layer *layer;
    const rp_layer_plan *plan;
    const rp_shape *in; /* sample shapes of the inputs */
    bool train;         /* dropout and batch statistics; false for a frozen layer */
    rp_node *keys; /* of the layer in the model file; those that are not asked for are refused */
    uint32_t input_count;
    const char *x[RP_LAYER_INPUTS_MAX];
    uint32_t first_node; /* of the graph's nodes, those from it on are this layer's */
} rp_export_layer;

typedef const char *rp_export_writer(rp_export_layer *l);

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Adds a node and returns its first output: RP_EXPORT_OP(l, "Add", a, b). "": an absent input. */
#define RP_EXPORT_OP(l, op, ...)                                                                   \
    rp_export_op((l), (op), (uint32_t)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),    \
                 (const char *[]){__VA_ARGS__})
const char *rp_export_op(rp_export_layer *l, const char *op, uint32_t count,
                         const char *const *input);

/* Attributes and further outputs of the node that was added last. */
void rp_export_int(rp_export_layer *l, const char *name, int64_t value);
void rp_export_float(rp_export_layer *l, const char *name, double value);
void rp_export_word(rp_export_layer *l, const char *name, const char *value);
void rp_export_ints(rp_export_layer *l, const char *name, uint32_t count, const int64_t *values);
/* Lets the node have `count` outputs. */
void rp_export_outputs(rp_export_layer *l, uint32_t count);
/* Its output `i`. */
const char *rp_export_output(const rp_export_layer *l, uint32_t i);

/* ---- values ---------------------------------------------------------------------------------- */

/* Constants: a number, token ids, whole numbers in a row, a table of numbers, which is copied. */
const char *rp_export_number(rp_export_layer *l, double value);
const char *rp_export_id(rp_export_layer *l, int64_t value);
const char *rp_export_whole(rp_export_layer *l, uint32_t count, const int64_t *values);
const char *rp_export_table(rp_export_layer *l, uint32_t rank, const int64_t *dim,
                            const float *values);

/* Whether the layer has a tensor of this suffix, and the tensor in the layer's shape. */
bool rp_export_has(const rp_export_layer *l, const char *suffix);
const char *rp_export_param(rp_export_layer *l, const char *suffix);
/* The tensor in the shape of weights files, which can have more or fewer axes of 1, and the number
 * of its axes there. */
const char *rp_export_stored(rp_export_layer *l, const char *suffix, uint32_t *dims);

/* Arrangements. A size of 0 is that of the input: the batch, in front. */
const char *rp_export_reshape(rp_export_layer *l, const char *x, uint32_t rank, const int64_t *dim);
const char *rp_export_transpose(rp_export_layer *l, const char *x, uint32_t rank,
                                const int64_t *perm);
/* [start, end) of one axis, which counts the batch. */
const char *rp_export_slice(rp_export_layer *l, const char *x, int64_t axis, int64_t start,
                            int64_t end);
/* New axes of size 1, or without them. */
const char *rp_export_unsqueeze(rp_export_layer *l, const char *x, uint32_t count,
                                const int64_t *axes);
const char *rp_export_squeeze(rp_export_layer *l, const char *x, uint32_t count,
                              const int64_t *axes);
/* ReduceMean, ReduceSum or ReduceMax along axes: attributes or an input, by opset. */
const char *rp_export_reduce(rp_export_layer *l, const char *op, const char *x, uint32_t count,
                             const int64_t *axes, bool keep);
/* Dropout if the net trains, otherwise x. */
const char *rp_export_dropout(rp_export_layer *l, const char *x, double p);
/* The size of the batch, [1]. */
const char *rp_export_batch(rp_export_layer *l, const char *x);
/* FLOAT 1 where ids are not `padding` and 0 where they are, in the shape of the ids. */
const char *rp_export_real_tokens(rp_export_layer *l, const char *ids, int32_t padding);

/* ---- the model file -------------------------------------------------------------------------- */

/* Values of keys; a missing one keeps what is usual. Keys were checked when the model was read. */
uint32_t rp_export_key_u32(rp_export_layer *l, const char *key, uint32_t usual);
int32_t rp_export_key_i32(rp_export_layer *l, const char *key, int32_t usual);
double rp_export_key_f64(rp_export_layer *l, const char *key, double usual);
bool rp_export_key_bool(rp_export_layer *l, const char *key, bool usual);
uint32_t rp_export_key_word(rp_export_layer *l, const char *key, const char *const *words);
/* One number for both axes, or a list of two; false: the key is missing. */
bool rp_export_key_pair(rp_export_layer *l, const char *key, int64_t pair[2]);
/* Keys without a meaning for a trained net, such as initial values; ends with NULL. */
void rp_export_ignore(rp_export_layer *l, const char *key);

/* Notes why the layer cannot be written. Returns "". */
const char *rp_export_refuse(rp_export_layer *l, const char *format, ...) RP_PRINTF(2, 3);

/* The writer of a kind; NULL: unknown. */
rp_export_writer *rp_export_find_writer(const char *kind);

rp_export_writer rp_export_write_dense, rp_export_write_linear, rp_export_write_embedding,
    rp_export_write_position, rp_export_write_sinusoid, rp_export_write_prepend,
    rp_export_write_scale;
rp_export_writer rp_export_write_conv2d, rp_export_write_convtranspose2d, rp_export_write_maxpool,
    rp_export_write_avgpool, rp_export_write_adaptiveavgpool, rp_export_write_globalavgpool,
    rp_export_write_upsample, rp_export_write_sequence;
rp_export_writer rp_export_write_batchnorm, rp_export_write_groupnorm, rp_export_write_layernorm,
    rp_export_write_rmsnorm;
rp_export_writer rp_export_write_plain, rp_export_write_relu6, rp_export_write_leaky_relu,
    rp_export_write_elu, rp_export_write_hardsigmoid, rp_export_write_hardswish,
    rp_export_write_silu, rp_export_write_mish, rp_export_write_gelu, rp_export_write_prelu,
    rp_export_write_glu, rp_export_write_swiglu;
rp_export_writer rp_export_write_add, rp_export_write_mul, rp_export_write_concat,
    rp_export_write_slice, rp_export_write_flatten, rp_export_write_dropout,
    rp_export_write_droppath;
rp_export_writer rp_export_write_lstm, rp_export_write_gru, rp_export_write_seqpool;
rp_export_writer rp_export_write_attention, rp_export_write_additive;
rp_export_writer rp_export_write_unary, rp_export_write_pow, rp_export_write_clip,
    rp_export_write_not, rp_export_write_isnan, rp_export_write_binary, rp_export_write_compare,
    rp_export_write_logic, rp_export_write_where, rp_export_write_reduce, rp_export_write_softmax,
    rp_export_write_matmul, rp_export_write_transpose, rp_export_write_reshape,
    rp_export_write_expand, rp_export_write_pad, rp_export_write_gather, rp_export_write_parameter;

#endif
