/* AdamW: w *= 1 - lr wd, then Adam without the L2 term. */
#include "optim/adam.h"

static rp_err parse_adamw(rp_optim *optim, rp_node *keys) {
    return rp_adam_parse(optim, keys, 0.01);
}

const rp_optim_kind rp_optim_adamw = {
    .name = "adamw",
    .keys = "betas, eps, weight_decay",
    .source = "Loshchilov & Hutter 2019; torch.optim.AdamW; prediction: PipeOptim, METHODS 5.1",
    .state_names = rp_adam_state_names,
    .state_count = rp_adam_state_count,
    .parse = parse_adamw,
    .step = rp_adam_step,
    .predict = rp_adam_predict,
    .decoupled = true,
};
