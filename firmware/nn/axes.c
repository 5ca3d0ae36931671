#include "nn/axes.h"

#include <string.h>

enum { GROUP_ITEMS = 64, VECTOR = 16, LAST = RP_DIMS_MAX - 1 };

bool rp_axes_common(const rp_shape *a, const rp_shape *b, rp_shape *out) {
    const rp_shape *longer = a->dims >= b->dims ? a : b;
    const rp_shape *shorter = a->dims >= b->dims ? b : a;
    *out = *longer;
    for (uint32_t i = 0; i < shorter->dims; i++) {
        uint32_t *size = &out->dim[longer->dims - 1 - i];
        const uint32_t other = shorter->dim[shorter->dims - 1 - i];
        if (*size != other && *size != 1 && other != 1) {
            return false;
        }
        *size = *size == 1 ? other : *size;
    }
    return rp_shape_check(out);
}

rp_axes rp_axes_over(uint32_t n, const rp_shape *shape) {
    rp_axes out;
    for (uint32_t i = 0; i < RP_DIMS_MAX; i++) {
        const uint32_t before = LAST - shape->dims;
        out.size[i] = i < before ? 1 : i == before ? n : shape->dim[i - before - 1];
    }
    return out;
}

rp_axes_operand rp_axes_operand_of(const rp_tensor *tensor, const rp_shape *of,
                                   const rp_shape *shape) {
    rp_axes_operand out = {.buffer = tensor->buffer, .first = tensor->offset};
    uint32_t step = 1;
    RP_ASSERT(of->dims <= shape->dims && shape->dims <= RP_AXES_MAX);
    for (uint32_t i = 0; i < of->dims; i++) {
        const uint32_t size = of->dim[of->dims - 1 - i];
        out.step[LAST - i] = size > 1 ? (int32_t)step : 0;
        step *= size;
    }
    out.step[LAST - shape->dims] = (int32_t)step;
    return out;
}

static bool can_merge(const rp_axes *axes, rp_axes_operand *const *operands, uint32_t count,
                      uint32_t outer, uint32_t inner) {
    bool can = true;
    for (uint32_t k = 0; k < count; k++) {
        const int32_t *step = operands[k]->step;
        can = can && (int64_t)step[outer] == (int64_t)step[inner] * axes->size[inner];
    }
    return can;
}

void rp_axes_merge(rp_axes *axes, rp_axes_operand *const *operands, uint32_t count) {
    uint32_t to = LAST; /* the axis that is built; those after it are done */
    for (uint32_t i = LAST; i-- > 0;) {
        if (axes->size[i] == 1) {
            continue;
        }
        if (axes->size[to] > 1 && can_merge(axes, operands, count, i, to)) {
            axes->size[to] *= axes->size[i];
            axes->size[i] = 1;
            continue;
        }
        to -= axes->size[to] > 1;
        if (to != i) {
            axes->size[to] = axes->size[i];
            axes->size[i] = 1;
            for (uint32_t k = 0; k < count; k++) {
                operands[k]->step[to] = operands[k]->step[i];
            }
        }
    }
}

void rp_axes_put_sizes(rp_launch *launch, const rp_axes *axes) {
    for (uint32_t i = 0; i < RP_DIMS_MAX; i++) {
        rp_arg_u32(launch, axes->size[i]);
    }
}

void rp_axes_put_steps(rp_launch *launch, const rp_axes_operand *operand) {
    for (uint32_t i = 0; i < RP_DIMS_MAX; i++) {
        rp_arg_i32(launch, operand->step[i]);
    }
}

rp_err rp_axes_run(rp_launch *launch, const rp_axes *axes) {
    size_t items = rp_layer_divide_up(axes->size[LAST], VECTOR);
    for (uint32_t i = 0; i < LAST; i++) {
        items *= axes->size[i];
    }
    return rp_layer_run_items(launch, items, GROUP_ITEMS);
}

rp_err rp_axes_move(const rp_layer_call *call, rp_axes axes, rp_axes_operand to,
                    rp_axes_operand from, float factor, bool add) {
    rp_launch launch;
    rp_axes_merge(&axes, (rp_axes_operand *const[]){&to, &from}, 2);
    rp_err err = rp_layer_begin(call, "axes", "move", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, to.buffer);
    rp_arg_u64(&launch, to.first);
    rp_arg_buffer(&launch, from.buffer);
    rp_arg_u64(&launch, from.first);
    rp_axes_put_sizes(&launch, &axes);
    rp_axes_put_steps(&launch, &to);
    rp_axes_put_steps(&launch, &from);
    rp_arg_f32(&launch, factor);
    rp_arg_u32(&launch, add);
    return rp_axes_run(&launch, &axes);
}

rp_err rp_axes_fill(const rp_layer_call *call, const rp_tensor *to, size_t count, float value) {
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "axes", "fill", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, to);
    rp_arg_u32(&launch, (uint32_t)count);
    rp_arg_f32(&launch, value);
    return rp_layer_run_wide(&launch, count);
}

/* ---- sums ------------------------------------------------------------------------------------ */

rp_shape rp_axes_padded(const rp_shape *shape, const rp_shape *whole) {
    rp_shape out = {.dims = whole->dims};
    for (uint32_t i = 0; i < whole->dims; i++) {
        const uint32_t before = whole->dims - shape->dims;
        out.dim[i] = i < before ? 1 : shape->dim[i - before];
    }
    return out;
}

rp_axes_runs rp_axes_runs_of(uint32_t n, const rp_shape *part, const rp_shape *whole) {
    rp_axes_runs out = {.keep = {n, 1, 1}, .over = {1, 1, 1}};
    uint32_t run = 0;
    bool over = false; /* the last axis was not kept */
    RP_ASSERT(part->dims == whole->dims);
    for (uint32_t i = 0; i < whole->dims; i++) {
        const uint32_t size = whole->dim[i];
        if (size == 1) {
            continue;
        }
        const bool kept = part->dim[i] == size;
        run += kept && over;
        over = !kept;
        *(kept ? &out.keep[run] : &out.over[run]) *= size;
    }
    return out;
}

static void put_runs(rp_launch *launch, const rp_axes_runs *runs) {
    for (uint32_t i = 0; i < 3; i++) {
        rp_arg_u32(launch, runs->keep[i]);
        rp_arg_u32(launch, runs->over[i]);
    }
}

/* The last run that is kept, if nothing is summed after it: it has 16 elements in an item. */
static uint32_t find_wide(const rp_axes_runs *runs) {
    uint32_t wide = 2;
    while (wide > 0 && runs->keep[wide] == 1 && runs->over[wide] == 1) {
        wide--;
    }
    return runs->over[wide] == 1 ? wide : 3;
}

rp_err rp_axes_sum(const rp_layer_call *call, const rp_axes_runs *runs, const rp_tensor *out,
                   rp_rows x, float factor, bool add) {
    const uint32_t wide = find_wide(runs);
    rp_axes_runs own = *runs;
    uint32_t columns = 1;
    if (wide < 3) { /* columns, and one element of that run for the items */
        columns = own.keep[wide];
        own.keep[wide] = 1;
    }
    const size_t sums = (size_t)own.keep[0] * own.keep[1] * own.keep[2];
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "axes", wide < 3 ? "sum_columns" : "sum_rows", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, out);
    rp_arg_buffer(&launch, x.buffer);
    rp_arg_u64(&launch, x.first);
    put_runs(&launch, &own);
    rp_arg_u32(&launch, columns);
    rp_arg_f32(&launch, factor);
    rp_arg_u32(&launch, add);
    return rp_layer_run_items(&launch, sums * rp_layer_divide_up(columns, VECTOR), GROUP_ITEMS);
}

/* ---- keys ------------------------------------------------------------------------------------ */

rp_err rp_axes_read(rp_node *keys, const char *key, uint32_t *bits) {
    const rp_node *list = rp_node_find(keys, key);
    rp_err err = RP_OK;
    if (!list) {
        return RP_OK;
    }
    if (!rp_node_is_list(list) || rp_node_count(list) == 0 || rp_node_count(list) > RP_AXES_MAX) {
        return rp_node_fail(list, "expected a list of 1 to %d axes of a sample, such as [0, 1]",
                            RP_AXES_MAX);
    }
    *bits = 0;
    for (uint32_t i = 0; i < rp_node_count(list); i++) {
        uint32_t axis = 0;
        RP_TRY(rp_node_item_u32(list, i, 0, RP_AXES_MAX - 1, &axis));
        if (*bits >> axis & 1) {
            return rp_node_fail(list, "expected axes that differ, found %u twice", axis);
        }
        *bits |= 1u << axis;
    }
fail:
    return err;
}

rp_err rp_axes_read_shape(rp_node *keys, const char *key, rp_shape *out) {
    rp_err err;
    RP_TRY(rp_node_need(keys, key));
    const rp_node *list = rp_node_find(keys, key);
    *out = (rp_shape){0};
    if (!rp_node_is_list(list) || rp_node_count(list) == 0 || rp_node_count(list) > RP_AXES_MAX) {
        return rp_node_fail(list, "expected a list of 1 to %d sizes, such as [3, 32]", RP_AXES_MAX);
    }
    for (uint32_t i = 0; i < rp_node_count(list); i++) {
        RP_TRY(rp_node_item_u32(list, i, 1, INT32_MAX, &out->dim[out->dims++]));
    }
    if (!rp_shape_check(out)) {
        return rp_node_fail(list, "expected less than 2^31 elements");
    }
fail:
    return err;
}

rp_err rp_axes_need(const rp_layer *layer, uint32_t axis, const rp_shape *in) {
    if (axis >= in->dims) {
        char text[RP_LAYER_SHAPE_TEXT];
        return rp_fail(RP_ERR_SHAPE, "layer '%s': %s of axis %u, but its input is %s", layer->name,
                       layer->kind->name, axis, rp_layer_shape_text(in, text));
    }
    return RP_OK;
}
