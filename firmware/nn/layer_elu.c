/* y = x > 0 ? x : alpha (exp(x) - 1). alpha is not negative, because backward reads y, whose sign
 * must equal that of x. */
#include "nn/activation.h"

const rp_layer_kind rp_layer_elu = {
    .name = "elu",
    .keys = "alpha",
    .source = "Clevert, Unterthiner & Hochreiter 2016; torch.nn.ELU",
    .facts =
        &(const rp_activation){
            .from_y = true, .flops_forward = 10, .flops_backward = 2, .slope = 1.0f},
    RP_ACTIVATION_FUNCTIONS,
};
