/* AdamW: w *= 1 - lr wd, then Adam without the L2 term. */
#include "optim/adam.h"

static rp_err parse(rp_optim *optim, rp_node *keys) {
    return rp_adam_parse(optim, keys, 0.01);
}

static rp_err step(const rp_optim_call *call) {
    return rp_adam_step(call, true);
}

static rp_err predict(const rp_optim_call *call, rp_buffer *out, float s) {
    return rp_adam_predict(call, out, s, true);
}

const rp_optim_kind rp_optim_adamw = {
    .name = "adamw",
    .source = "Loshchilov & Hutter 2019; torch.optim.AdamW; prediction: PipeOptim, METHODS 5.1",
    .state_names = rp_adam_state_names,
    .state_count = rp_adam_state_count,
    .parse = parse,
    .step = step,
    .predict = predict,
};
