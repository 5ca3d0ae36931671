/* y = log(1 + exp(x)). The derivative is computed from y. */
#include "nn/activation.h"

const rp_layer_kind rp_layer_softplus = {
    .name = "softplus",
    .source = "torch.nn.Softplus",
    .facts = &(const rp_activation){.from_y = true, .flops_forward = 20, .flops_backward = 10},
    RP_ACTIVATION_FUNCTIONS,
};
