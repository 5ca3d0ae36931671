#include "optim/adam.h"

#include <math.h>

#include "optim/optim_own.h"

const char *const rp_adam_state_names[] = {"exp_avg", "exp_avg_sq", NULL};

uint32_t rp_adam_state_count(const rp_optim *optim) {
    (void)optim;
    return 2;
}

static rp_err read_betas(rp_optim *optim, rp_node *keys) {
    rp_node *list = rp_node_find(keys, "betas");
    rp_err err;
    const bool single = rp_node_find(keys, "beta1") || rp_node_find(keys, "beta2");
    if (!list) {
        return single ? RP_OK : rp_node_default(keys, "betas", "[0.9, 0.999]");
    }
    if (single) {
        return rp_node_fail(list, "expected either betas or beta1 and beta2, found both");
    }
    if (!rp_node_is_list(list) || rp_node_count(list) != 2) {
        return rp_node_fail(list, "expected a list of two numbers, e.g. [0.9, 0.999]");
    }
    RP_TRY(rp_node_item_f64(list, 0, 0.0, 1.0, &optim->beta1));
    RP_TRY(rp_node_item_f64(list, 1, 0.0, 1.0, &optim->beta2));
    return RP_OK;
fail:
    return err;
}

rp_err rp_adam_parse(rp_optim *optim, rp_node *keys, double weight_decay) {
    rp_err err;
    optim->beta1 = 0.9;
    optim->beta2 = 0.999;
    optim->eps = 1e-8;
    optim->weight_decay = weight_decay;
    RP_TRY(read_betas(optim, keys));
    if (rp_node_find(keys, "beta1") || rp_node_find(keys, "beta2")) {
        RP_TRY(rp_node_f64(keys, "beta1", 0.0, 1.0, &optim->beta1));
        RP_TRY(rp_node_f64(keys, "beta2", 0.0, 1.0, &optim->beta2));
    }
    if (optim->beta1 == 1.0 || optim->beta2 == 1.0) {
        return rp_node_fail(keys, "beta1 and beta2 must be below 1");
    }
    RP_TRY(rp_node_f64(keys, "eps", 0.0, 1e6, &optim->eps));
    RP_TRY(rp_optim_parse_decay(optim, keys));
    return RP_OK;
fail:
    return err;
}

/* lr / (1 - beta1^t) and sqrt(1 - beta2^t) after t steps. */
static void correct_bias(const rp_optim_call *call, uint64_t t, double *rate, double *root) {
    *rate = (double)call->lr / (1.0 - pow(call->optim->beta1, (double)t));
    *root = sqrt(1.0 - pow(call->optim->beta2, (double)t));
}

rp_err rp_adam_step(const rp_optim_call *call) {
    const rp_optim *optim = call->optim;
    const bool decoupled = optim->kind->decoupled;
    const double decay = optim->weight_decay;
    double rate;
    double root;
    rp_launch launch;
    rp_err err;
    correct_bias(call, call->t + 1, &rate, &root);
    RP_TRY(rp_optim_begin(call, "adam", &launch));
    rp_arg_buffer(&launch, call->w);
    rp_arg_buffer(&launch, call->g);
    rp_arg_buffer(&launch, call->state[0]);
    rp_arg_buffer(&launch, call->state[1]);
    rp_arg_u32(&launch, call->count);
    rp_arg_f32(&launch, call->grad_scale);
    rp_arg_f32(&launch, (float)rate);
    rp_arg_f32(&launch, (float)optim->beta1);
    rp_arg_f32(&launch, (float)(1.0 - optim->beta1));
    rp_arg_f32(&launch, (float)optim->beta2);
    rp_arg_f32(&launch, (float)(1.0 - optim->beta2));
    rp_arg_f32(&launch, (float)root);
    rp_arg_f32(&launch, (float)optim->eps);
    rp_arg_f32(&launch, decoupled ? 0.0f : (float)decay);
    rp_arg_f32(&launch, decoupled ? (float)(1.0 - (double)call->lr * decay) : 1.0f);
    RP_TRY(rp_optim_run(call, &launch));
    return RP_OK;
fail:
    return err;
}

rp_err rp_adam_predict(const rp_optim_call *call, rp_buffer *out, float s) {
    const rp_optim *optim = call->optim;
    const bool decays = optim->kind->decoupled && optim->predict_decay;
    double rate;
    double root;
    rp_launch launch;
    rp_err err;
    if (call->t == 0 || s == 0.0f) {
        return rp_optim_copy(call, out);
    }
    correct_bias(call, optim->rule == RP_PREDICT_XPIPE ? 1 : call->t, &rate, &root);
    RP_TRY(rp_optim_begin(call, "predict_adam", &launch));
    rp_arg_buffer(&launch, out);
    rp_arg_buffer(&launch, call->w);
    rp_arg_buffer(&launch, call->state[0]);
    rp_arg_buffer(&launch, call->state[1]);
    rp_arg_u32(&launch, call->count);
    rp_arg_f32(&launch, (float)(rate * (double)s));
    rp_arg_f32(&launch, (float)root);
    rp_arg_f32(&launch, (float)optim->eps);
    rp_arg_f32(&launch,
               decays ? (float)pow(1.0 - (double)call->lr * optim->weight_decay, (double)s) : 1.0f);
    RP_TRY(rp_optim_run(call, &launch));
    return RP_OK;
fail:
    return err;
}
