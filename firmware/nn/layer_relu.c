/* y = max(x, 0); NaN is kept; the gradient at 0 is 0. */
#include "nn/activation.h"

const rp_layer_kind rp_layer_relu = {
    .name = "relu",
    .source = "torch.nn.ReLU",
    .facts = &(const rp_activation){.from_y = true, .flops_forward = 1, .flops_backward = 1},
    RP_ACTIVATION_FUNCTIONS,
};
