/* mean, sum and max-over: one value for each element of the axes that are not in `axes`. */
#include "nn/axes.h"

enum { GROUP_ITEMS = 64 };

typedef struct {
    uint32_t axes; /* bits; 0: all */
    bool keep;
} reduce_spec;

typedef enum { SUM, MEAN, MAX } reduce_mode;

static reduce_mode mode_of(const rp_layer *layer) {
    return *(const reduce_mode *)layer->kind->facts;
}

static rp_err parse_reduce(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    reduce_spec *spec = layer->spec;
    rp_err err;
    (void)data;
    *spec = (reduce_spec){0};
    RP_TRY(rp_axes_read(keys, "axes", &spec->axes));
    RP_TRY(rp_node_bool(keys, "keep", &spec->keep));
fail:
    return err;
}

static bool is_reduced(const reduce_spec *spec, uint32_t axis) {
    return spec->axes == 0 || (spec->axes >> axis & 1);
}

/* The input with size 1 at the axes that are reduced. */
static rp_shape kept_shape(const reduce_spec *spec, const rp_shape *in) {
    rp_shape out = *in;
    for (uint32_t i = 0; i < in->dims; i++) {
        out.dim[i] = is_reduced(spec, i) ? 1 : in->dim[i];
    }
    return out;
}

/* Without the axes that are reduced; [1] if none is left. */
static rp_shape squeezed_shape(const reduce_spec *spec, const rp_shape *in) {
    rp_shape out = {0};
    for (uint32_t i = 0; i < in->dims; i++) {
        if (!is_reduced(spec, i)) {
            out.dim[out.dims++] = in->dim[i];
        }
    }
    return out.dims > 0 ? out : rp_shape_1(1);
}

static rp_err plan_reduce(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const reduce_spec *spec = layer->spec;
    const double elements = (double)rp_shape_count(in);
    uint32_t last = 0;
    while (last + 1 < RP_AXES_MAX && spec->axes >> (last + 1)) {
        last++;
    }
    rp_err err = rp_axes_need(layer, last, in);
    if (err == RP_OK) {
        *out = (rp_layer_plan){
            .out = spec->keep ? kept_shape(spec, in) : squeezed_shape(spec, in),
            .needs_x = mode_of(layer) == MAX,
            .flops_forward = elements,
            .flops_backward = elements,
        };
    }
    return err;
}

static rp_axes_runs runs_of(const rp_layer_call *call) {
    const rp_shape kept = kept_shape(call->layer->spec, &call->in[0]);
    return rp_axes_runs_of(call->n, &kept, &call->in[0]);
}

/* What the sum is multiplied by. */
static float factor_of(const rp_layer_call *call) {
    const double count =
        (double)rp_shape_count(&call->in[0]) / (double)rp_shape_count(&call->plan->out);
    return mode_of(call->layer) == MEAN ? (float)(1.0 / count) : 1.0f;
}

static rp_err forward_sum(const rp_layer_call *call) {
    const rp_axes_runs runs = runs_of(call);
    return rp_axes_sum(call, &runs, call->y, rp_layer_rows(call->x[0], 0), factor_of(call), false);
}

static rp_err backward_sum(const rp_layer_call *call) {
    const rp_shape *in = &call->in[0];
    const rp_shape kept = kept_shape(call->layer->spec, in);
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    return rp_axes_move(call, rp_axes_over(call->n, in), rp_axes_operand_of(call->dx[0], in, in),
                        rp_axes_operand_of(call->dy, &kept, in), factor_of(call), call->dx_add[0]);
}

/* The last arguments of both directions. */
static rp_err run_max(const rp_layer_call *call, rp_launch *launch) {
    const rp_axes_runs runs = runs_of(call);
    for (uint32_t i = 0; i < 3; i++) {
        rp_arg_u32(launch, runs.keep[i]);
        rp_arg_u32(launch, runs.over[i]);
    }
    return rp_layer_run_items(launch, (size_t)runs.keep[0] * runs.keep[1] * runs.keep[2],
                              GROUP_ITEMS);
}

static rp_err forward_max(const rp_layer_call *call) {
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "axes", "max_forward", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->y);
    rp_arg_tensor(&launch, call->x[0]);
    return run_max(call, &launch);
}

static rp_err backward_max(const rp_layer_call *call) {
    rp_launch launch;
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    rp_err err = rp_layer_begin(call, "axes", "max_backward", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->dx[0]);
    rp_arg_tensor(&launch, call->dy);
    rp_arg_tensor(&launch, call->x[0]);
    rp_arg_u32(&launch, call->dx_add[0]);
    return run_max(call, &launch);
}

#define REDUCE(id, word, about, direction, mode)                                                   \
    const rp_layer_kind rp_layer_##id = {                                                          \
        .name = word,                                                                              \
        .keys = "axes, keep",                                                                      \
        .source = about,                                                                           \
        .spec_bytes = sizeof(reduce_spec),                                                         \
        .inputs_min = 1,                                                                           \
        .inputs_max = 1,                                                                           \
        .parse = parse_reduce,                                                                     \
        .plan = plan_reduce,                                                                       \
        .forward = forward_##direction,                                                            \
        .backward = backward_##direction,                                                          \
        .facts = &(const reduce_mode){mode},                                                       \
    }

REDUCE(mean, "mean", "torch.mean", sum, MEAN);
REDUCE(sum, "sum", "torch.sum", sum, SUM);
REDUCE(max_over, "max-over", "torch.amax, with the derivative of torch.max", max, MAX);
