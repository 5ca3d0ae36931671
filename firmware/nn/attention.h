/* Attention over panels of tokens: what layer_attention.c asks for once it knows the shapes;
 * private to the room. */
#ifndef RP_NN_ATTENTION_H
#define RP_NN_ATTENTION_H

#include "nn/layer.h"

/* The keys of the layer in a model file. */
typedef struct {
    uint32_t heads, kv_heads;
    bool causal;
    float scale; /* of the scores; 0: 1 / sqrt(D) */
    double dropout;
    bool has_padding;
    int32_t padding; /* id of the keys that are masked */
    bool rotary, interleaved;
    float base; /* of the angles of rotary positions */
} rp_attention_spec;

enum { RP_ATTENTION_Q, RP_ATTENTION_K, RP_ATTENTION_V, RP_ATTENTION_PARTS };

/* Where q, k, v or y is: in tensor `input`, whose rows are row_stride elements apart, `heads` times
 * `size` elements from element `first` of each row on. */
typedef struct {
    uint32_t input, tokens, heads, size;
    uint32_t first, row_stride;
} rp_attention_rows;

typedef struct {
    rp_attention_rows part[RP_ATTENTION_PARTS];
    rp_attention_rows y;
    bool has_ids;
    uint32_t ids_input;
} rp_attention_inputs;

/* Floats that are saved of a sample: the log-sum-exp of each row of each head. */
size_t rp_attention_level_floats(const rp_attention_inputs *of);
/* Two implementations: attention.c, and attention_heads.c for CPUs without rotary positions. Floats
 * of the workspace; then as the functions of rp_layer_kind; saved[0] has the level, or is NULL. A
 * backward has at least one dx. */
size_t rp_attention_floats(const rp_attention_spec *spec, const rp_attention_inputs *of,
                           uint32_t n);
rp_err rp_attention_forward(const rp_layer_call *call, const rp_attention_inputs *of) RP_MUST_CHECK;
rp_err rp_attention_backward(const rp_layer_call *call,
                             const rp_attention_inputs *of) RP_MUST_CHECK;
size_t rp_attention_heads_floats(const rp_attention_inputs *of, uint32_t n);
rp_err rp_attention_heads_forward(const rp_layer_call *call,
                                  const rp_attention_inputs *of) RP_MUST_CHECK;
rp_err rp_attention_heads_backward(const rp_layer_call *call,
                                   const rp_attention_inputs *of) RP_MUST_CHECK;

#endif
