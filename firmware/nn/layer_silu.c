/* y = x / (1 + exp(-x)). */
#include "nn/activation.h"

const rp_layer_kind rp_layer_silu = {
    .name = "silu",
    .source = "Hendrycks & Gimpel 2016; torch.nn.SiLU",
    .facts = &(const rp_activation){.flops_forward = 11, .flops_backward = 15},
    RP_ACTIVATION_FUNCTIONS,
};
