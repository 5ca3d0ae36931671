/* softmax and logsoftmax along one axis of a sample, the last one unless `axis` says otherwise. */
#include "nn/axes.h"

enum { GROUP_ITEMS = 16, VECTOR = 16 };

typedef struct {
    uint32_t axis; /* UINT32_MAX: the last one */
} softmax_spec;

static rp_err parse_softmax(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    softmax_spec *spec = layer->spec;
    (void)data;
    *spec = (softmax_spec){UINT32_MAX};
    return rp_node_find(keys, "axis") ? rp_node_u32(keys, "axis", 0, RP_AXES_MAX - 1, &spec->axis)
                                      : RP_OK;
}

static rp_err plan_softmax(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const softmax_spec *spec = layer->spec;
    const double elements = (double)rp_shape_count(in);
    rp_err err = spec->axis == UINT32_MAX ? RP_OK : rp_axes_need(layer, spec->axis, in);
    if (err == RP_OK) {
        *out = (rp_layer_plan){
            .out = *in,
            .needs_y = true,
            .in_place = true,
            .flops_forward = 12 * elements,
            .flops_backward = 4 * elements,
        };
    }
    return err;
}

/* A sample is [outer, length, inner]. */
static rp_err run(const rp_layer_call *call, rp_launch *launch, uint32_t inner) {
    const softmax_spec *spec = call->layer->spec;
    const rp_shape *in = &call->in[0];
    const uint32_t axis = spec->axis == UINT32_MAX ? in->dims - 1 : spec->axis;
    const size_t rows = call->n * rp_shape_count(in) / in->dim[axis] / inner;
    rp_arg_u32(launch, (uint32_t)rows);
    rp_arg_u32(launch, in->dim[axis]);
    rp_arg_u32(launch, inner);
    return rp_layer_run_items(launch, rows * rp_layer_divide_up(inner, VECTOR), GROUP_ITEMS);
}

static uint32_t inner_of(const rp_layer_call *call) {
    const softmax_spec *spec = call->layer->spec;
    uint32_t inner = 1;
    for (uint32_t i = spec->axis; spec->axis != UINT32_MAX && i + 1 < call->in[0].dims; i++) {
        inner *= call->in[0].dim[i + 1];
    }
    return inner;
}

static rp_err begin(const rp_layer_call *call, const char *rows, const char *columns,
                    rp_launch *launch) {
    const bool log = *(const bool *)call->layer->kind->facts;
    return rp_layer_begin(call, "softmax", inner_of(call) == 1 ? rows : columns,
                          log ? "-DLOG=1" : "-DLOG=0", launch);
}

static rp_err forward_softmax(const rp_layer_call *call) {
    rp_launch launch;
    rp_err err = begin(call, "rows_forward", "columns_forward", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->y);
    rp_arg_tensor(&launch, call->x[0]);
    return run(call, &launch, inner_of(call));
}

static rp_err backward_softmax(const rp_layer_call *call) {
    rp_launch launch;
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    rp_err err = begin(call, "rows_backward", "columns_backward", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->dx[0]);
    rp_arg_tensor(&launch, call->dy);
    rp_arg_tensor(&launch, call->y);
    rp_arg_u32(&launch, call->dx_add[0]);
    return run(call, &launch, inner_of(call));
}

#define SOFTMAX(id, about, is_log)                                                                 \
    const rp_layer_kind rp_layer_##id = {                                                          \
        .name = #id,                                                                               \
        .keys = "axis",                                                                            \
        .source = about,                                                                           \
        .spec_bytes = sizeof(softmax_spec),                                                        \
        .inputs_min = 1,                                                                           \
        .inputs_max = 1,                                                                           \
        .parse = parse_softmax,                                                                    \
        .plan = plan_softmax,                                                                      \
        .forward = forward_softmax,                                                                \
        .backward = backward_softmax,                                                              \
        .facts = &(const bool){is_log},                                                            \
    }

SOFTMAX(softmax, "torch.softmax", false);
SOFTMAX(logsoftmax, "torch.log_softmax", true);
