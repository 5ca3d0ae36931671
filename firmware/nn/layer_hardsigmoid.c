/* y = clamp(x + 3, 0, 6) / 6; the derivative is 0 at -3 and 3. */
#include "nn/activation.h"

const rp_layer_kind rp_layer_hardsigmoid = {
    .name = "hardsigmoid",
    .source = "torch.nn.Hardsigmoid",
    .facts = &(const rp_activation){.flops_forward = 4, .flops_backward = 2},
    RP_ACTIVATION_FUNCTIONS,
};
