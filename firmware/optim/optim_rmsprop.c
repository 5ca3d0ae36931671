/* RMSprop, plain or centered, with or without momentum.
 *
 *   g += wd w;  s = alpha s + (1 - alpha) g^2;  centered: a = alpha a + (1 - alpha) g
 *   d = g / (sqrt(s - a^2) + eps);  buf = mu buf + d;  w -= lr buf
 *
 * Without momentum buf is d, the last applied direction, and is kept only by a stage that predicts
 * (or that also has a, because states have fixed positions). */
#include "optim/optim_own.h"

static const char *const state_names[] = {"square_avg", "momentum_buffer", "grad_avg", NULL};

static uint32_t state_count(const rp_optim *optim) {
    if (optim->centered) {
        return 3;
    }
    return optim->momentum != 0.0 || optim->predicts ? 2 : 1;
}

static rp_buffer *state_at(const rp_optim_call *call, uint32_t index) {
    return index < state_count(call->optim) ? call->state[index] : NULL;
}

static rp_err parse_rmsprop(rp_optim *optim, rp_node *keys) {
    rp_err err;
    optim->alpha = 0.99;
    optim->eps = 1e-8;
    RP_TRY(rp_node_f64(keys, "alpha", 0.0, 1.0, &optim->alpha));
    RP_TRY(rp_node_f64(keys, "eps", 0.0, 1e6, &optim->eps));
    RP_TRY(rp_node_f64(keys, "momentum", 0.0, 1.0, &optim->momentum));
    RP_TRY(rp_node_bool(keys, "centered", &optim->centered));
    RP_TRY(rp_optim_parse_decay(optim, keys));
    return RP_OK;
fail:
    return err;
}

static rp_err step_rmsprop(const rp_optim_call *call) {
    const rp_optim *optim = call->optim;
    rp_launch launch;
    rp_err err;
    RP_TRY(rp_optim_begin(call, "rmsprop", &launch));
    rp_arg_buffer(&launch, call->w);
    rp_arg_buffer(&launch, call->g);
    rp_arg_buffer(&launch, call->state[0]);
    rp_arg_buffer(&launch, state_at(call, 1));
    rp_arg_buffer(&launch, state_at(call, 2));
    rp_arg_u32(&launch, call->count);
    rp_arg_f32(&launch, call->grad_scale);
    rp_arg_f32(&launch, call->lr);
    rp_arg_f32(&launch, (float)optim->alpha);
    rp_arg_f32(&launch, (float)(1.0 - optim->alpha));
    rp_arg_f32(&launch, (float)optim->eps);
    rp_arg_f32(&launch, (float)optim->momentum);
    rp_arg_f32(&launch, (float)optim->weight_decay);
    RP_TRY(rp_optim_run(call, &launch));
    return RP_OK;
fail:
    return err;
}

static rp_err predict_rmsprop(const rp_optim_call *call, rp_buffer *out, float s) {
    return rp_optim_predict_along(call, state_at(call, 1), out, s);
}

const rp_optim_kind rp_optim_rmsprop = {
    .name = "rmsprop",
    .keys = "alpha, eps, momentum, centered, weight_decay",
    .source = "Tieleman & Hinton 2012; torch.optim.RMSprop; prediction: METHODS 3, the last "
              "applied direction",
    .state_names = state_names,
    .state_count = state_count,
    .parse = parse_rmsprop,
    .step = step_rmsprop,
    .predict = predict_rmsprop,
};
