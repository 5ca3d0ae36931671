/* A normalisation of rows, the last axes of a sample, is a table of facts:
 *
 *   const rp_layer_kind rp_layer_rmsnorm = {
 *       .name = "rmsnorm",
 *       .source = "torch.nn.RMSNorm",
 *       .facts = &(const rp_row_norm){.dims = 1, .eps = 1e-6f, .rms = true},
 *       RP_ROW_NORM_FUNCTIONS,
 *   };
 */
#ifndef RP_NN_ROW_NORM_H
#define RP_NN_ROW_NORM_H

#include "nn/layer.h"

/* The defaults of the keys, and the rule. */
typedef struct {
    uint32_t dims; /* a row is that many of the last axes; 0: all axes of a sample */
    float eps;
    bool rms; /* by the root of the mean square, without mean and bias */
} rp_row_norm;

rp_err rp_row_norm_parse(rp_layer *layer, rp_node *keys, const rp_model_data *data) RP_MUST_CHECK;
rp_err rp_row_norm_plan(const rp_layer *layer, const rp_shape *in,
                        rp_layer_plan *out) RP_MUST_CHECK;
size_t rp_row_norm_workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan,
                                   const rp_shape *in, uint32_t n, rp_gemm_choice choice);
rp_err rp_row_norm_forward(const rp_layer_call *call) RP_MUST_CHECK;
rp_err rp_row_norm_backward(const rp_layer_call *call) RP_MUST_CHECK;

#define RP_ROW_NORM_FUNCTIONS                                                                      \
    .keys = "dims, eps", .spec_bytes = sizeof(rp_row_norm), .inputs_min = 1, .inputs_max = 1,      \
    .parse = rp_row_norm_parse, .plan = rp_row_norm_plan,                                          \
    .workspace_bytes = rp_row_norm_workspace_bytes, .forward = rp_row_norm_forward,                \
    .backward = rp_row_norm_backward

#endif
