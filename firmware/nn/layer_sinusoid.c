/* Adds constant waves to a sequence [T, C]: y[t][2 i] = x + sin(t / 10000^(2 i / C)), y[t][2 i + 1]
 * = x + cos(t / 10000^(2 i / C)). */
#include <math.h>

#include "nn/layer_common.h"

#define TURNS_OF_RADIAN 0.15915494309189535 /* 1 / (2 pi) */

static rp_err parse_sinusoid(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)layer;
    (void)keys;
    (void)data;
    return RP_OK;
}

static rp_err plan_sinusoid(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    rp_err err = rp_layer_need_sequence(layer, in);
    if (err == RP_OK) {
        *out = (rp_layer_plan){
            .out = *in,
            .in_place = true,
            .flops_forward = (double)rp_shape_count(in),
        };
    }
    return err;
}

static rp_err forward_sinusoid(const rp_layer_call *call) {
    const uint32_t steps = call->in[0].dim[0];
    const uint32_t columns = call->in[0].dim[1];
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "positions", "sinusoid_forward", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->y);
    rp_arg_tensor(&launch, call->x[0]);
    rp_arg_u32(&launch, call->n);
    rp_arg_u32(&launch, steps);
    rp_arg_u32(&launch, columns);
    rp_arg_u64(&launch, (uint64_t)ldexp(TURNS_OF_RADIAN, 64));
    rp_arg_u64(&launch, (uint64_t)ldexp(pow(10000, -2.0 / columns), 64));
    return rp_layer_run_wide(&launch, (size_t)rp_layer_divide_up(columns, 16) * 16 * steps);
}

static rp_err backward_sinusoid(const rp_layer_call *call) {
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    return rp_layer_copy(call, call->dx[0], call->dy, &call->in[0], call->dx_add[0]);
}

const rp_layer_kind rp_layer_sinusoid = {
    .name = "sinusoid",
    .source = "Vaswani et al. 2017, section 3.5",
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_sinusoid,
    .plan = plan_sinusoid,
    .forward = forward_sinusoid,
    .backward = backward_sinusoid,
};
