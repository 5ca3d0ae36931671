/* y = x > 0 ? x : slope x. The slope is not negative, because backward reads y, whose sign must
 * equal that of x. */
#include "nn/activation.h"

const rp_layer_kind rp_layer_leaky_relu = {
    .name = "leaky_relu",
    .keys = "slope",
    .source = "torch.nn.LeakyReLU",
    .facts =
        &(const rp_activation){
            .from_y = true, .flops_forward = 2, .flops_backward = 2, .slope = 0.01f},
    RP_ACTIVATION_FUNCTIONS,
};
