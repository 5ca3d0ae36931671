/* Code shared by layernorm, rmsnorm and groupnorm: each sample is normalised on its own, over rows
 * or over groups of its channels. Private to the room. There are no batch statistics, so neither
 * microbatch nor cut changes a sample's result, and evaluation equals training. */
#ifndef RP_NN_GROUPS_H
#define RP_NN_GROUPS_H

#include "nn/layer_common.h"

/* A sample is `rows` rows of `groups` groups of `wide` channels of `pixels`; all rows have the same
 * weight and bias. `rms` divides by the root of the mean square and has neither mean nor bias. */
typedef struct {
    uint32_t rows, groups, wide, pixels;
    bool rms;
} rp_groups;

/* weight and bias have the shape `affine`, one element per channel. */
void rp_groups_plan(const rp_shape *in, const rp_groups *groups, const rp_shape *affine,
                    rp_layer_plan *out);
size_t rp_groups_workspace_bytes(const rp_groups *groups, uint32_t n);
rp_err rp_groups_forward(const rp_layer_call *call, const rp_groups *groups,
                         float eps) RP_MUST_CHECK;
rp_err rp_groups_backward(const rp_layer_call *call, const rp_groups *groups) RP_MUST_CHECK;

#endif
