/* y = x tanh(log(1 + exp(x))). */
#include "nn/activation.h"

const rp_layer_kind rp_layer_mish = {
    .name = "mish",
    .source = "Misra 2020; torch.nn.Mish",
    .facts = &(const rp_activation){.flops_forward = 20, .flops_backward = 30},
    RP_ACTIVATION_FUNCTIONS,
};
