/* y = min(max(x, 0), 6); NaN is kept; the gradient at 0 and at 6 is 0. */
#include "nn/activation.h"

const rp_layer_kind rp_layer_relu6 = {
    .name = "relu6",
    .source = "torch.nn.ReLU6",
    .facts = &(const rp_activation){.from_y = true, .flops_forward = 2, .flops_backward = 2},
    RP_ACTIVATION_FUNCTIONS,
};
