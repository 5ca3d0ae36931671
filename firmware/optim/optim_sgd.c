/* SGD with momentum, dampening, Nesterov and L2 weight decay.
 *
 *   g += wd w;  buf = mu buf + (1 - dampening) g, at the first step buf = g
 *   d = buf, or g + mu buf with nesterov, or g without momentum;  w -= lr d
 *
 * predict moves along the last applied d. With momentum that is buf; otherwise torch's state does
 * not contain it, so a stage that predicts stores it: without momentum in the place of buf (METHODS
 * 5.1 with u = 0), with nesterov in a second state. PipeOptim's released code instead moves along
 * mu buf + (1 - dampening) g (METHODS 5.3: the last gradient counts twice), which is stored in the
 * same place, because the gradient buffer belongs to the next step by then. */
#include "optim/optim_own.h"

static const char *const state_names[] = {"momentum_buffer", "direction", NULL};

static uint32_t buffers_of_sgd(const rp_optim *optim) {
    return optim->momentum != 0.0 ? 1 : 0;
}

static bool keeps_direction(const rp_optim *optim) {
    return optim->predicts &&
           (optim->momentum == 0.0 || optim->nesterov || optim->rule == RP_PREDICT_RELEASED);
}

static uint32_t state_count(const rp_optim *optim) {
    return buffers_of_sgd(optim) + keeps_direction(optim);
}

/* The state that holds the direction of prediction, or NULL. */
static rp_buffer *direction_of(const rp_optim_call *call) {
    const rp_optim *optim = call->optim;
    if (keeps_direction(optim)) {
        return call->state[buffers_of_sgd(optim)];
    }
    return optim->momentum != 0.0 && !optim->nesterov ? call->state[0] : NULL;
}

static rp_err parse_sgd(rp_optim *optim, rp_node *keys) {
    rp_err err;
    RP_TRY(rp_node_f64(keys, "momentum", 0.0, 1.0, &optim->momentum));
    RP_TRY(rp_node_f64(keys, "dampening", 0.0, 1.0, &optim->dampening));
    RP_TRY(rp_node_bool(keys, "nesterov", &optim->nesterov));
    RP_TRY(rp_optim_parse_decay(optim, keys));
    RP_TRY(rp_node_done(keys)); /* report a mistyped momentum before the missing one */
    if (optim->nesterov && (optim->momentum == 0.0 || optim->dampening != 0.0)) {
        return rp_node_fail(rp_node_find(keys, "nesterov"),
                            "nesterov needs momentum above 0 and dampening 0, found momentum %g "
                            "and dampening %g",
                            optim->momentum, optim->dampening);
    }
    return RP_OK;
fail:
    return err;
}

static rp_err step_sgd(const rp_optim_call *call) {
    const rp_optim *optim = call->optim;
    rp_launch launch;
    rp_err err;
    RP_TRY(rp_optim_begin(call, "sgd", &launch));
    rp_arg_buffer(&launch, call->w);
    rp_arg_buffer(&launch, call->g);
    rp_arg_buffer(&launch, buffers_of_sgd(optim) ? call->state[0] : NULL);
    rp_arg_buffer(&launch, keeps_direction(optim) ? direction_of(call) : NULL);
    rp_arg_u32(&launch, call->count);
    rp_arg_f32(&launch, call->grad_scale);
    rp_arg_f32(&launch, call->lr);
    rp_arg_f32(&launch, (float)optim->momentum);
    rp_arg_f32(&launch, (float)(1.0 - optim->dampening));
    rp_arg_f32(&launch, (float)optim->weight_decay);
    rp_arg_u32(&launch, optim->nesterov);
    rp_arg_u32(&launch, optim->rule == RP_PREDICT_RELEASED);
    rp_arg_u32(&launch, call->t == 0);
    RP_TRY(rp_optim_run(call, &launch));
    return RP_OK;
fail:
    return err;
}

static rp_err predict_sgd(const rp_optim_call *call, rp_buffer *out, float s) {
    return rp_optim_predict_along(call, direction_of(call), out, s);
}

const rp_optim_kind rp_optim_sgd = {
    .name = "sgd",
    .keys = "momentum, dampening, nesterov, weight_decay",
    .source = "torch.optim.SGD; prediction: PipeOptim, Guan et al. 2023, METHODS 5.1; the applied "
              "direction for nesterov is our derivation",
    .state_names = state_names,
    .state_count = state_count,
    .parse = parse_sgd,
    .step = step_sgd,
    .predict = predict_sgd,
};
