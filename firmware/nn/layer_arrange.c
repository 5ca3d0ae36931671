/* Arrangements of the elements of a sample: transpose, reshape, expand, pad and gather. */
#include <string.h>

#include "nn/axes.h"

enum { RUNS_MAX = 256 };

static rp_err refuse_input(const rp_layer *layer, const rp_shape *in, const char *why) {
    char text[RP_LAYER_SHAPE_TEXT];
    return rp_fail(RP_ERR_SHAPE, "layer '%s': %s of %s: %s", layer->name, layer->kind->name,
                   rp_layer_shape_text(in, text), why);
}

static rp_axes_operand operand(const rp_tensor *tensor, const rp_shape *shape) {
    return rp_axes_operand_of(tensor, shape, shape);
}

static bool wants_dx(const rp_layer_call *call) {
    return call->want_dx && call->dx[0];
}

/* ---- transpose ------------------------------------------------------------------------------- */

/* Axis i of y is axis perm[i] of x. */
typedef struct {
    uint32_t dims, perm[RP_AXES_MAX];
} transpose_spec;

static rp_err parse_transpose(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    transpose_spec *spec = layer->spec;
    uint32_t bits = 0;
    rp_err err;
    (void)data;
    *spec = (transpose_spec){0};
    RP_TRY(rp_node_need(keys, "perm"));
    RP_TRY(rp_axes_read(keys, "perm", &bits));
    const rp_node *list = rp_node_find(keys, "perm");
    for (uint32_t i = 0; i < rp_node_count(list); i++) {
        RP_TRY(rp_node_item_u32(list, i, 0, rp_node_count(list) - 1, &spec->perm[spec->dims++]));
    }
fail:
    return err;
}

static rp_err plan_transpose(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const transpose_spec *spec = layer->spec;
    if (spec->dims != in->dims) {
        return refuse_input(layer, in, "`perm` needs as many axes");
    }
    *out = (rp_layer_plan){.out = {.dims = in->dims}};
    for (uint32_t i = 0; i < in->dims; i++) {
        out->out.dim[i] = in->dim[spec->perm[i]];
    }
    return RP_OK;
}

/* to (+)= from, where axis i of `to`, which has the shape `shape`, is axis axis_of[i] of `from`. */
static rp_err permute(const rp_layer_call *call, const rp_tensor *to, const rp_tensor *from,
                      const rp_shape *shape, const rp_shape *from_shape, const uint32_t *axis_of,
                      bool add) {
    const rp_axes_operand stored = operand(from, from_shape);
    rp_axes_operand source = stored;
    for (uint32_t i = 0; i < shape->dims; i++) {
        source.step[rp_axes_at(shape->dims, i)] = stored.step[rp_axes_at(shape->dims, axis_of[i])];
    }
    return rp_axes_move(call, rp_axes_over(call->n, shape), operand(to, shape), source, 1.0f, add);
}

static rp_err forward_transpose(const rp_layer_call *call) {
    const transpose_spec *spec = call->layer->spec;
    return permute(call, call->y, call->x[0], &call->plan->out, &call->in[0], spec->perm, false);
}

static rp_err backward_transpose(const rp_layer_call *call) {
    const transpose_spec *spec = call->layer->spec;
    uint32_t inverse[RP_AXES_MAX];
    for (uint32_t i = 0; i < spec->dims; i++) {
        inverse[spec->perm[i]] = i;
    }
    return wants_dx(call) ? permute(call, call->dx[0], call->dy, &call->in[0], &call->plan->out,
                                    inverse, call->dx_add[0])
                          : RP_OK;
}

/* ---- reshape, expand ------------------------------------------------------------------------- */

static rp_err parse_shape(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)data;
    return rp_axes_read_shape(keys, "shape", layer->spec);
}

static rp_err plan_reshape(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const rp_shape *shape = layer->spec;
    if (rp_shape_count(in) != rp_shape_count(shape)) {
        return refuse_input(layer, in, "`shape` needs as many elements");
    }
    *out = (rp_layer_plan){.out = *shape, .in_place = true, .same = true};
    return RP_OK;
}

/* Does nothing where both share memory. */
static rp_err forward_reshape(const rp_layer_call *call) {
    return rp_layer_copy(call, call->y, call->x[0], &call->plan->out, false);
}

static rp_err backward_reshape(const rp_layer_call *call) {
    return wants_dx(call)
               ? rp_layer_copy(call, call->dx[0], call->dy, &call->in[0], call->dx_add[0])
               : RP_OK;
}

static rp_err plan_expand(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const rp_shape *shape = layer->spec;
    rp_shape common;
    if (!rp_axes_common(in, shape, &common) || !rp_shape_equal(&common, shape)) {
        return refuse_input(layer, in, "it cannot be broadcast to `shape`");
    }
    *out = (rp_layer_plan){.out = *shape, .flops_backward = (double)rp_shape_count(shape)};
    return RP_OK;
}

static rp_err forward_expand(const rp_layer_call *call) {
    const rp_shape *out = &call->plan->out;
    return rp_axes_move(call, rp_axes_over(call->n, out), operand(call->y, out),
                        rp_axes_operand_of(call->x[0], &call->in[0], out), 1.0f, false);
}

static rp_err backward_expand(const rp_layer_call *call) {
    const rp_shape *out = &call->plan->out;
    const rp_shape own = rp_axes_padded(&call->in[0], out);
    const rp_axes_runs runs = rp_axes_runs_of(call->n, &own, out);
    return wants_dx(call) ? rp_axes_sum(call, &runs, call->dx[0], rp_layer_rows(call->dy, 0), 1.0f,
                                        call->dx_add[0])
                          : RP_OK;
}

/* ---- pad ------------------------------------------------------------------------------------- */

/* Elements added before and after each axis. */
typedef struct {
    uint32_t dims, before[RP_AXES_MAX], after[RP_AXES_MAX];
    float value;
} pad_spec;

static rp_err parse_pad(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    pad_spec *spec = layer->spec;
    rp_err err;
    (void)data;
    *spec = (pad_spec){0};
    RP_TRY(rp_node_need(keys, "pads"));
    const rp_node *list = rp_node_find(keys, "pads");
    const uint32_t count = rp_node_is_list(list) ? rp_node_count(list) : 0;
    if (count == 0 || count % 2 > 0 || count > 2 * RP_AXES_MAX) {
        return rp_node_fail(list, "expected a list of the elements before each axis of a sample, "
                                  "then of those after each, such as [0, 1, 0, 1]");
    }
    spec->dims = count / 2;
    for (uint32_t i = 0; i < spec->dims; i++) {
        RP_TRY(rp_node_item_u32(list, i, 0, RP_LAYER_OUT_MAX, &spec->before[i]));
        RP_TRY(rp_node_item_u32(list, spec->dims + i, 0, RP_LAYER_OUT_MAX, &spec->after[i]));
    }
    RP_TRY(rp_node_f32(keys, "value", -1e30, 1e30, &spec->value));
fail:
    return err;
}

static rp_err plan_pad(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const pad_spec *spec = layer->spec;
    if (spec->dims != in->dims) {
        return refuse_input(layer, in, "`pads` needs two numbers for each axis");
    }
    *out = (rp_layer_plan){.out = *in};
    for (uint32_t i = 0; i < in->dims; i++) {
        out->out.dim[i] += spec->before[i] + spec->after[i];
    }
    return RP_OK;
}

/* The part of y, or dy, that is x. */
static rp_axes_operand inner_part(const rp_layer_call *call, const rp_tensor *y) {
    const pad_spec *spec = call->layer->spec;
    rp_axes_operand out = operand(y, &call->plan->out);
    for (uint32_t i = 0; i < spec->dims; i++) {
        out.first += spec->before[i] * (uint64_t)out.step[rp_axes_at(spec->dims, i)];
    }
    return out;
}

static rp_err forward_pad(const rp_layer_call *call) {
    const pad_spec *spec = call->layer->spec;
    const size_t count = call->n * rp_shape_count(&call->plan->out);
    rp_err err = rp_axes_fill(call, call->y, count, spec->value);
    return err == RP_OK
               ? rp_axes_move(call, rp_axes_over(call->n, &call->in[0]), inner_part(call, call->y),
                              operand(call->x[0], &call->in[0]), 1.0f, false)
               : err;
}

static rp_err backward_pad(const rp_layer_call *call) {
    return wants_dx(call) ? rp_axes_move(call, rp_axes_over(call->n, &call->in[0]),
                                         operand(call->dx[0], &call->in[0]),
                                         inner_part(call, call->dy), 1.0f, call->dx_add[0])
                          : RP_OK;
}

/* ---- gather ---------------------------------------------------------------------------------- */

/* Indices start, start + step, ...; they differ, because step is not 0 if there are several. */
typedef struct {
    uint32_t start, count;
    int32_t step;
} gather_run;

typedef struct {
    uint32_t axis, count, largest; /* of all indices */
    uint32_t run_count;
    gather_run run[RUNS_MAX];
} gather_spec;

/* Appends an index to the last run if it continues it; otherwise to a new one. */
static bool add_index(gather_spec *spec, uint32_t index) {
    gather_run *last = spec->run_count > 0 ? &spec->run[spec->run_count - 1] : NULL;
    spec->count++;
    spec->largest = index > spec->largest ? index : spec->largest;
    if (last && last->count == 1 && index != last->start) {
        last->step = (int32_t)index - (int32_t)last->start;
        last->count = 2;
        return true;
    }
    if (last && last->count > 1 &&
        (int64_t)index == last->start + (int64_t)last->step * last->count) {
        last->count++;
        return true;
    }
    if (spec->run_count == RUNS_MAX) {
        return false;
    }
    spec->run[spec->run_count++] = (gather_run){.start = index, .count = 1};
    return true;
}

static rp_err parse_gather(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    gather_spec *spec = layer->spec;
    rp_err err;
    (void)data;
    memset(spec, 0, sizeof *spec);
    RP_TRY(rp_node_u32(keys, "axis", 0, RP_AXES_MAX - 1, &spec->axis));
    RP_TRY(rp_node_need(keys, "indices"));
    const rp_node *list = rp_node_find(keys, "indices");
    if (!rp_node_is_list(list) || rp_node_count(list) == 0) {
        return rp_node_fail(list, "expected a list of indices, such as [0, 2, 1]");
    }
    for (uint32_t i = 0; i < rp_node_count(list); i++) {
        uint32_t index = 0;
        RP_TRY(rp_node_item_u32(list, i, 0, INT32_MAX - 1, &index));
        if (!add_index(spec, index)) {
            return rp_node_fail(list,
                                "expected indices of at most %d runs with a constant step, found "
                                "another run at index %u",
                                RUNS_MAX, i);
        }
    }
fail:
    return err;
}

static rp_err plan_gather(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const gather_spec *spec = layer->spec;
    rp_err err = rp_axes_need(layer, spec->axis, in);
    if (err != RP_OK) {
        return err;
    }
    if (spec->largest >= in->dim[spec->axis]) {
        return refuse_input(layer, in, "an index is not within the axis");
    }
    *out = (rp_layer_plan){.out = *in};
    out->out.dim[spec->axis] = spec->count;
    return RP_OK;
}

/* The elements of x, or dx, at the indices of a run. */
static rp_axes_operand picked(const rp_layer_call *call, const rp_tensor *x,
                              const gather_run *run) {
    const gather_spec *spec = call->layer->spec;
    rp_axes_operand out = operand(x, &call->in[0]);
    int32_t *step = &out.step[rp_axes_at(call->in[0].dims, spec->axis)];
    out.first += run->start * (uint64_t)*step;
    *step *= run->step;
    return out;
}

/* The elements of y, or dy, for a run that begins at index number `at`. */
static rp_axes_operand placed(const rp_layer_call *call, const rp_tensor *y, uint32_t at) {
    const gather_spec *spec = call->layer->spec;
    rp_axes_operand out = operand(y, &call->plan->out);
    out.first += at * (uint64_t)out.step[rp_axes_at(call->in[0].dims, spec->axis)];
    return out;
}

static rp_err move_runs(const rp_layer_call *call, bool backward) {
    const gather_spec *spec = call->layer->spec;
    const rp_tensor *x = backward ? call->dx[0] : call->x[0];
    const rp_tensor *y = backward ? call->dy : call->y;
    rp_err err = RP_OK;
    for (uint32_t i = 0, at = 0; i < spec->run_count && err == RP_OK; i++) {
        const gather_run *run = &spec->run[i];
        const rp_axes_operand of_x = picked(call, x, run);
        const rp_axes_operand of_y = placed(call, y, at);
        rp_axes axes = rp_axes_over(call->n, &call->in[0]);
        axes.size[rp_axes_at(call->in[0].dims, spec->axis)] = run->count;
        err = rp_axes_move(call, axes, backward ? of_x : of_y, backward ? of_y : of_x, 1.0f,
                           backward);
        at += run->count;
    }
    return err;
}

static rp_err forward_gather(const rp_layer_call *call) {
    return move_runs(call, false);
}

/* An index that occurs again has the sum of its gradients, in the order of the indices. */
static rp_err backward_gather(const rp_layer_call *call) {
    const size_t count = call->n * rp_shape_count(&call->in[0]);
    rp_err err = RP_OK;
    if (!wants_dx(call)) {
        return RP_OK;
    }
    if (!call->dx_add[0]) {
        err = rp_axes_fill(call, call->dx[0], count, 0.0f);
    }
    return err == RP_OK ? move_runs(call, true) : err;
}

#define ARRANGE(id, own_keys, about, spec, own_parse)                                              \
    const rp_layer_kind rp_layer_##id = {                                                          \
        .name = #id,                                                                               \
        .keys = own_keys,                                                                          \
        .source = about,                                                                           \
        .spec_bytes = sizeof(spec),                                                                \
        .inputs_min = 1,                                                                           \
        .inputs_max = 1,                                                                           \
        .parse = own_parse,                                                                        \
        .plan = plan_##id,                                                                         \
        .forward = forward_##id,                                                                   \
        .backward = backward_##id,                                                                 \
    }

ARRANGE(transpose, "perm", "torch.permute", transpose_spec, parse_transpose);
ARRANGE(reshape, "shape", "torch.reshape", rp_shape, parse_shape);
ARRANGE(expand, "shape", "torch.Tensor.expand", rp_shape, parse_shape);
ARRANGE(pad, "pads, value", "ONNX Pad with a constant", pad_spec, parse_pad);
ARRANGE(gather, "axis, indices", "torch.index_select", gather_spec, parse_gather);
