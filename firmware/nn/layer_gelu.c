/* y = x Phi(x), Phi the normal distribution by erf (not the tanh approximation). */
#include "nn/activation.h"

const rp_layer_kind rp_layer_gelu = {
    .name = "gelu",
    .source = "Hendrycks & Gimpel 2016; torch.nn.GELU",
    .facts = &(const rp_activation){.flops_forward = 20, .flops_backward = 30},
    RP_ACTIVATION_FUNCTIONS,
};
