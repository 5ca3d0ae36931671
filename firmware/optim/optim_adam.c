/* Adam with L2 weight decay.
 *
 *   g += wd w;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
 *   w -= lr m / (1 - b1^t) / (sqrt(v) / sqrt(1 - b2^t) + eps) */
#include "optim/adam.h"

static rp_err parse_adam(rp_optim *optim, rp_node *keys) {
    return rp_adam_parse(optim, keys, 0.0);
}

const rp_optim_kind rp_optim_adam = {
    .name = "adam",
    .keys = "betas, eps, weight_decay",
    .source = "Kingma & Ba 2015; torch.optim.Adam; prediction: PipeOptim, METHODS 5.1",
    .state_names = rp_adam_state_names,
    .state_count = rp_adam_state_count,
    .parse = parse_adam,
    .step = rp_adam_step,
    .predict = rp_adam_predict,
};
