/* y = tanh(x), dx = dy (1 - y^2). */
#include "nn/activation.h"

const rp_layer_kind rp_layer_tanh = {
    .name = "tanh",
    .source = "torch.nn.Tanh",
    .facts = &(const rp_activation){.from_y = true, .flops_forward = 10, .flops_backward = 3},
    RP_ACTIVATION_FUNCTIONS,
};
