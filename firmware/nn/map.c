#include "nn/map.h"

#include <stdio.h>

enum { OPERANDS_MAX = 3, DEFINES_BYTES = 80 };

/* The operands of a call in the loop over y. */
typedef struct {
    rp_axes axes;
    rp_axes_operand operand[OPERANDS_MAX];
} map_loop;

static bool find_common(const rp_map *map, const rp_shape *in, rp_shape *out) {
    *out = in[0];
    for (uint32_t i = 1; i < map->operands; i++) {
        const rp_shape before = *out;
        if (!rp_axes_common(&before, &in[i], out)) {
            return false;
        }
    }
    return true;
}

static bool is_any_broadcast(const rp_map *map, const rp_shape *in, const rp_shape *out) {
    bool any = false;
    for (uint32_t i = 0; i < map->operands; i++) {
        any |= rp_shape_count(&in[i]) != rp_shape_count(out);
    }
    return any;
}

rp_err rp_map_plan(const rp_map *map, const rp_layer *layer, const rp_shape *in,
                   rp_layer_plan *out) {
    rp_shape common;
    if (!find_common(map, in, &common)) {
        char text[OPERANDS_MAX][RP_LAYER_SHAPE_TEXT];
        const bool three = map->operands == OPERANDS_MAX;
        return rp_fail(RP_ERR_SHAPE, "layer '%s': %s cannot broadcast %s, %s%s%s to one shape",
                       layer->name, layer->kind->name, rp_layer_shape_text(&in[0], text[0]),
                       rp_layer_shape_text(&in[1], text[1]), three ? ", " : "",
                       three ? rp_layer_shape_text(&in[2], text[2]) : "");
    }
    const double elements = (double)rp_shape_count(&common);
    const double sums = is_any_broadcast(map, in, &common) ? 3 : 2;
    *out = (rp_layer_plan){
        .out = common,
        .needs_x = map->gradient == RP_MAP_COMPUTED,
        .ids = map->takes_ids && layer->reads_ids,
        .flops_forward = elements,
        .flops_backward = map->gradient == RP_MAP_NONE ? 0 : sums * elements,
    };
    return RP_OK;
}

size_t rp_map_workspace_bytes(const rp_map *map, const rp_layer_plan *plan, const rp_shape *in,
                              uint32_t n) {
    return map->gradient == RP_MAP_COMPUTED && is_any_broadcast(map, in, &plan->out)
               ? n * rp_shape_count(&plan->out) * sizeof(float)
               : 0;
}

static map_loop make_loop(const rp_map *map, const rp_layer_call *call) {
    map_loop loop = {.axes = rp_axes_over(call->n, &call->plan->out)};
    rp_axes_operand *each[OPERANDS_MAX];
    for (uint32_t i = 0; i < OPERANDS_MAX; i++) {
        each[i] = &loop.operand[i];
        if (i < map->operands) {
            loop.operand[i] = rp_axes_operand_of(call->x[i], &call->in[i], &call->plan->out);
        }
    }
    rp_axes_merge(&loop.axes, each, map->operands);
    return loop;
}

static rp_err begin(const rp_map *map, const rp_layer_call *call, const char *entry,
                    rp_launch *launch) {
    const bool backward = map->gradient == RP_MAP_COMPUTED;
    char defines[DEFINES_BYTES];
    (void)snprintf(defines, sizeof defines, "-DFORWARD=f_%s -DOPERANDS=%u -DIDS=%d%s%s", map->name,
                   map->operands, rp_layer_takes_ids(call->plan, 0),
                   backward ? " -DBACKWARD=g_" : "", backward ? map->name : "");
    return rp_layer_begin(call, "map", entry, defines, launch);
}

static void put_operands(rp_launch *launch, const map_loop *loop) {
    for (uint32_t i = 0; i < OPERANDS_MAX; i++) {
        rp_arg_buffer(launch, loop->operand[i].buffer);
        rp_arg_u64(launch, loop->operand[i].first);
    }
    rp_axes_put_sizes(launch, &loop->axes);
    for (uint32_t i = 0; i < OPERANDS_MAX; i++) {
        rp_axes_put_steps(launch, &loop->operand[i]);
    }
}

rp_err rp_map_forward(const rp_map *map, const rp_layer_call *call) {
    const map_loop loop = make_loop(map, call);
    rp_launch launch;
    rp_err err = begin(map, call, "map_forward", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->y);
    put_operands(&launch, &loop);
    return rp_axes_run(&launch, &loop.axes);
}

/* to (+)= the gradient of operand `which` for each element of y. */
static rp_err find_gradient(const rp_map *map, const rp_layer_call *call, uint32_t which,
                            const rp_tensor *to, bool add) {
    const map_loop loop = make_loop(map, call);
    rp_launch launch;
    rp_err err = begin(map, call, "map_backward", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, to);
    rp_arg_tensor(&launch, call->dy);
    put_operands(&launch, &loop);
    rp_arg_u32(&launch, which);
    rp_arg_u32(&launch, add);
    return rp_axes_run(&launch, &loop.axes);
}

/* The sum of `whole`, one value for each element of y, over the axes along which operand `which`
 * is broadcast. */
static rp_err sum_broadcast(const rp_layer_call *call, uint32_t which, const rp_tensor *whole,
                            float factor) {
    const rp_shape *out = &call->plan->out;
    const rp_shape own = rp_axes_padded(&call->in[which], out);
    const rp_axes_runs runs = rp_axes_runs_of(call->n, &own, out);
    return rp_axes_sum(call, &runs, call->dx[which], rp_layer_rows(whole, 0), factor,
                       call->dx_add[which]);
}

static rp_err backward_operand(const rp_map *map, const rp_layer_call *call, uint32_t which) {
    const bool whole = rp_shape_count(&call->in[which]) == rp_shape_count(&call->plan->out);
    const rp_tensor gradient = {.buffer = call->workspace, .shape = call->dy->shape};
    const bool add = call->dx_add[which];
    if (map->gradient == RP_MAP_NONE || (map->operands == OPERANDS_MAX && which == 0)) {
        const size_t count = call->n * rp_shape_count(&call->in[which]);
        return add ? RP_OK : rp_axes_fill(call, call->dx[which], count, 0.0f);
    }
    if (map->gradient == RP_MAP_LINEAR) {
        return sum_broadcast(call, which, call->dy, map->factor[which]);
    }
    if (whole) {
        return find_gradient(map, call, which, call->dx[which], add);
    }
    rp_err err = find_gradient(map, call, which, &gradient, false);
    return err == RP_OK ? sum_broadcast(call, which, &gradient, 1.0f) : err;
}

rp_err rp_map_backward(const rp_map *map, const rp_layer_call *call) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; call->want_dx && err == RP_OK && i < map->operands; i++) {
        if (call->dx[i]) {
            err = backward_operand(map, call, i);
        }
    }
    return err;
}
