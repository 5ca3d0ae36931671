/* A part of one axis, [start, end). Token ids stay token ids. */
#include "nn/layer_common.h"

enum { GROUP_ITEMS = 64 };

typedef struct {
    uint32_t axis, start, end; /* end 0: that of the axis */
} slice_spec;

static rp_err parse_slice(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    slice_spec *spec = layer->spec;
    rp_err err;
    (void)data;
    *spec = (slice_spec){0};
    RP_TRY(rp_node_u32(keys, "axis", 0, RP_DIMS_MAX - 2, &spec->axis));
    RP_TRY(rp_node_u32(keys, "start", 0, INT32_MAX - 1, &spec->start));
    RP_TRY(rp_node_u32(keys, "end", 1, INT32_MAX, &spec->end));
    if (spec->end > 0 && spec->end <= spec->start) {
        return rp_node_fail(rp_node_find(keys, "end"), "expected more than `start`, %u, found %u",
                            spec->start, spec->end);
    }
fail:
    return err;
}

static uint32_t end_of(const slice_spec *spec, const rp_shape *in) {
    return spec->end > 0 ? spec->end : in->dim[spec->axis];
}

static rp_err plan_slice(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const slice_spec *spec = layer->spec;
    char text[RP_LAYER_SHAPE_TEXT];
    if (spec->axis >= in->dims) {
        return rp_fail(RP_ERR_SHAPE, "layer '%s': slice of axis %u, but its input is %s",
                       layer->name, spec->axis, rp_layer_shape_text(in, text));
    }
    const uint32_t end = end_of(spec, in);
    if (spec->start >= end || end > in->dim[spec->axis]) {
        return rp_fail(RP_ERR_SHAPE, "layer '%s': [%u, %u) is not within axis %u of %s",
                       layer->name, spec->start, end, spec->axis, rp_layer_shape_text(in, text));
    }
    if (layer->reads_ids && spec->axis > 0) {
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': token ids can only be sliced along axis 0, found axis %u",
                       layer->name, spec->axis);
    }
    *out = (rp_layer_plan){.out = *in, .ids = layer->reads_ids, .gives_ids = layer->reads_ids};
    out->out.dim[spec->axis] = end - spec->start;
    if (layer->reads_ids) {
        out->ids_first = (uint32_t)(spec->start * (rp_shape_count(in) / in->dim[0]));
    }
    return RP_OK;
}

/* The last arguments of both directions: rows of x, and what is taken of each. */
static void add_rows(const rp_layer_call *call, rp_launch *launch) {
    const slice_spec *spec = call->layer->spec;
    const rp_shape *in = &call->in[0];
    size_t outer = call->n;
    size_t inner = 1;
    for (uint32_t i = 0; i < in->dims; i++) {
        outer *= i < spec->axis ? in->dim[i] : 1;
        inner *= i > spec->axis ? in->dim[i] : 1;
    }
    rp_arg_u32(launch, (uint32_t)outer);
    rp_arg_u32(launch, (uint32_t)(in->dim[spec->axis] * inner));
    rp_arg_u32(launch,
               call->plan->gives_ids ? call->plan->ids_first : (uint32_t)(spec->start * inner));
    rp_arg_u32(launch, (uint32_t)(call->plan->out.dim[spec->axis] * inner));
}

static rp_err forward_slice(const rp_layer_call *call) {
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "slice", "slice_forward", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->y);
    rp_arg_tensor(&launch, call->x[0]);
    add_rows(call, &launch);
    return rp_layer_run_items(&launch, call->n * rp_shape_count(&call->plan->out), GROUP_ITEMS);
}

static rp_err backward_slice(const rp_layer_call *call) {
    rp_launch launch;
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    rp_err err = rp_layer_begin(call, "slice", "slice_backward", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->dx[0]);
    rp_arg_tensor(&launch, call->dy);
    add_rows(call, &launch);
    rp_arg_u32(&launch, call->dx_add[0]);
    return rp_layer_run_items(&launch, call->n * rp_shape_count(&call->in[0]), GROUP_ITEMS);
}

const rp_layer_kind rp_layer_slice = {
    .name = "slice",
    .keys = "axis, start, end",
    .source = "ONNX Slice with steps of 1; torch.narrow",
    .spec_bytes = sizeof(slice_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_slice,
    .plan = plan_slice,
    .forward = forward_slice,
    .backward = backward_slice,
};
