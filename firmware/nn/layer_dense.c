/* y = x W' + b over the flattened sample; W [out, in]. */
#include "nn/affine.h"

const rp_layer_kind rp_layer_dense = {
    .name = "dense",
    .keys = "out, bias",
    .source = "torch.nn.Linear",
    .facts = &(const rp_affine_facts){.flattens = true},
    RP_AFFINE_FUNCTIONS,
};
