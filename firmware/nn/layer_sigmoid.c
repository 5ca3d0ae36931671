/* y = 1 / (1 + exp(-x)), dx = dy y (1 - y). */
#include "nn/activation.h"

const rp_layer_kind rp_layer_sigmoid = {
    .name = "sigmoid",
    .source = "torch.nn.Sigmoid",
    .facts = &(const rp_activation){.from_y = true, .flops_forward = 10, .flops_backward = 3},
    RP_ACTIVATION_FUNCTIONS,
};
