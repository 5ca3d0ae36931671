/* dense and linear: y = x W' + b over rows, with or without a fused ReLU. A kind is a table:
 *
 *   const rp_layer_kind rp_layer_dense = {
 *       .name = "dense",
 *       .keys = "out, bias",
 *       .source = "torch.nn.Linear",
 *       .facts = &(const rp_affine_facts){.flattens = true},
 *       RP_AFFINE_FUNCTIONS,
 *   };
 *
 * dW = dy' x and db = sum of dy, over all rows; dx = dy W. With a fused ReLU dy counts where y > 0.
 * Private to the room. */
#ifndef RP_NN_AFFINE_H
#define RP_NN_AFFINE_H

#include "nn/lora.h"

typedef struct {
    /* a sample is one row; otherwise its last axis is, and there are keys `layout` and `lora` */
    bool flattens;
} rp_affine_facts;

typedef struct {
    uint32_t out, in_out; /* in_out: 1 if W is stored [in, out] */
    bool bias, relu;
    rp_lora lora;
} rp_affine_spec;

rp_err rp_affine_parse(rp_layer *layer, rp_node *keys, const rp_model_data *data) RP_MUST_CHECK;
rp_err rp_affine_plan(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) RP_MUST_CHECK;
size_t rp_affine_workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan_of,
                                 const rp_shape *in, uint32_t n, rp_gemm_choice choice);
rp_err rp_affine_forward(const rp_layer_call *call) RP_MUST_CHECK;
rp_err rp_affine_backward(const rp_layer_call *call) RP_MUST_CHECK;
bool rp_affine_fuse_relu(rp_layer *layer);

#define RP_AFFINE_FUNCTIONS                                                                        \
    .spec_bytes = sizeof(rp_affine_spec), .inputs_min = 1, .inputs_max = 1,                        \
    .parse = rp_affine_parse, .plan = rp_affine_plan,                                              \
    .workspace_bytes = rp_affine_workspace_bytes, .forward = rp_affine_forward,                    \
    .backward = rp_affine_backward, .fuse_relu = rp_affine_fuse_relu

#endif
