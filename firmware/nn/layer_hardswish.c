/* y = x clamp(x + 3, 0, 6) / 6; the derivative is 0 at -3 and 1 at 3. */
#include "nn/activation.h"

const rp_layer_kind rp_layer_hardswish = {
    .name = "hardswish",
    .source = "Howard et al. 2019; torch.nn.Hardswish",
    .facts = &(const rp_activation){.flops_forward = 5, .flops_backward = 5},
    RP_ACTIVATION_FUNCTIONS,
};
