/* y = x Phi(x), Phi the normal distribution by erf, or with `approximate: tanh` by
 * 0.5 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). */
#include "nn/activation.h"

const rp_layer_kind rp_layer_gelu = {
    .name = "gelu",
    .keys = "approximate",
    .source = "Hendrycks & Gimpel 2016; torch.nn.GELU",
    .facts = &(const rp_activation){.flops_forward = 20,
                                    .flops_backward = 30,
                                    .words = (const char *const[]){"none", "tanh", NULL}},
    RP_ACTIVATION_FUNCTIONS,
};
