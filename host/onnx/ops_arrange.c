/* Operators whose output has the elements of an input in another arrangement, and those that only
 * depend on shapes. */
#include <string.h>

#include "onnx/constants.h"
#include "onnx/ops.h"
#include "onnx/tensor.h"

/* Sets output `i` to an arrangement of `in`, if it is one. */
static rp_err give(const rp_onnx_visit *visit, uint32_t i, const rp_onnx_value *in,
                   const rp_onnx_view *view, bool *done) {
    *done = view != NULL;
    if (view && in->state == RP_ONNX_CONST) {
        return rp_onnx_give_arranged(visit, i, in->whole, view, done);
    }
    if (view) {
        rp_onnx_give_view(visit, i, in->state, in->whole, view);
    }
    return RP_OK;
}

/* The first input, if its arrangement is known. */
static const rp_onnx_value *first_in(const rp_onnx_visit *visit) {
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    return in && in->view ? in : NULL;
}

static bool wrap_axis(int64_t *axis, uint32_t rank) {
    *axis += *axis < 0 ? rank : 0;
    return *axis >= 0 && *axis < rank;
}

/* Axes of input `i`, or of the attribute `axes`; NULL if they are not constant or absent. */
static rp_err find_axes(const rp_onnx_visit *visit, uint32_t i, const int64_t **axes,
                        uint64_t *count) {
    const rp_onnx_attribute *attribute = rp_onnx_find(visit->node, "axes");
    if (attribute) {
        *axes = attribute->ints;
        *count = attribute->int_count;
        return RP_OK;
    }
    return rp_onnx_const_ints(visit, i, axes, count);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static int64_t clamp_axis(int64_t axis, uint32_t rank) {
    axis += axis < 0 ? rank : 0;
    return axis < 0 ? 0 : axis > rank ? rank : axis;
}

rp_err rp_onnx_arrange_shape(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = first_in(visit);
    *done = in != NULL;
    if (!in) {
        return RP_OK;
    }
    const uint32_t rank = in->view->dims.rank;
    const int64_t start = clamp_axis(rp_onnx_int(visit->node, "start", 0), rank);
    const int64_t end = clamp_axis(rp_onnx_int(visit->node, "end", rank), rank);
    const int64_t count = end > start ? end - start : 0;
    const rp_onnx_dims dims = {.rank = 1, .dim = {count}, .count = (uint64_t)count};
    return rp_onnx_give_const(visit, 0, true, &dims, in->view->dims.dim + start, NULL);
}

rp_err rp_onnx_arrange_size(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = first_in(visit);
    const rp_onnx_dims one = {.count = 1};
    int64_t *count;
    *done = in != NULL;
    if (!in) {
        return RP_OK;
    }
    const rp_err err = RP_ARENA_NEW(visit->graph->arena, 1, &count);
    if (err != RP_OK) {
        return err;
    }
    *count = (int64_t)in->view->dims.count;
    return rp_onnx_give_const(visit, 0, true, &one, count, NULL);
}

rp_err rp_onnx_arrange_reshape(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = first_in(visit);
    const bool zero_is_zero = rp_onnx_int(visit->node, "allowzero", 0) != 0;
    const int64_t *shape;
    uint64_t rank;
    int64_t dim[RP_ONNX_RANK_MAX];
    uint64_t known = 1;
    uint32_t free = RP_ONNX_RANK_MAX;
    rp_onnx_dims dims;
    const rp_onnx_view *view = NULL;
    rp_err err;
    *done = false;
    RP_TRY(rp_onnx_const_ints(visit, 1, &shape, &rank));
    if (!in || !shape || rank > RP_ONNX_RANK_MAX) {
        return RP_OK;
    }
    for (uint32_t i = 0; i < rank; i++) {
        dim[i] = shape[i] == 0 && !zero_is_zero && i < in->view->dims.rank ? in->view->dims.dim[i]
                                                                           : shape[i];
        if (dim[i] == -1) {
            free = i;
        } else if (dim[i] < 0 || __builtin_mul_overflow(known, (uint64_t)dim[i], &known)) {
            return RP_OK;
        }
    }
    if (free < RP_ONNX_RANK_MAX) {
        dim[free] = known > 0 ? (int64_t)(in->view->dims.count / known) : 0;
    }
    if (rp_onnx_dims_of((uint32_t)rank, dim, &dims)) {
        RP_TRY(rp_onnx_view_reshape(visit->graph->arena, in->view, &dims, &view));
    }
    RP_TRY(give(visit, 0, in, view, done));
fail:
    return err;
}

rp_err rp_onnx_arrange_flatten(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = first_in(visit);
    int64_t axis = rp_onnx_int(visit->node, "axis", 1);
    int64_t dim[2] = {1, 1};
    rp_onnx_dims dims;
    const rp_onnx_view *view = NULL;
    rp_err err = RP_OK;
    *done = false;
    if (!in || axis < -(int64_t)in->view->dims.rank || axis > in->view->dims.rank) {
        return RP_OK;
    }
    axis += axis < 0 ? in->view->dims.rank : 0;
    for (uint32_t i = 0; i < in->view->dims.rank; i++) {
        dim[i >= axis] *= in->view->dims.dim[i];
    }
    if (rp_onnx_dims_of(2, dim, &dims)) {
        RP_TRY(rp_onnx_view_reshape(visit->graph->arena, in->view, &dims, &view));
    }
    RP_TRY(give(visit, 0, in, view, done));
fail:
    return err;
}

rp_err rp_onnx_arrange_squeeze(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = first_in(visit);
    const int64_t *axes;
    uint64_t count;
    uint32_t drop = 0;
    rp_onnx_dims dims = {0};
    const rp_onnx_view *view = NULL;
    rp_err err;
    *done = false;
    RP_TRY(find_axes(visit, 1, &axes, &count));
    if (!in || (!axes && rp_onnx_in(visit, 1))) {
        return RP_OK;
    }
    for (uint64_t i = 0; i < count; i++) {
        int64_t axis = axes[i];
        if (!wrap_axis(&axis, in->view->dims.rank)) {
            return RP_OK;
        }
        drop |= 1u << axis;
    }
    for (uint32_t i = 0; i < in->view->dims.rank; i++) {
        const bool dropped = axes ? drop >> i & 1 : in->view->dims.dim[i] == 1;
        if (!dropped) {
            dims.dim[dims.rank++] = in->view->dims.dim[i];
        }
    }
    if (rp_onnx_dims_of(dims.rank, dims.dim, &dims)) {
        RP_TRY(rp_onnx_view_reshape(visit->graph->arena, in->view, &dims, &view));
    }
    RP_TRY(give(visit, 0, in, view, done));
fail:
    return err;
}

rp_err rp_onnx_arrange_unsqueeze(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = first_in(visit);
    const int64_t *axes;
    uint64_t count;
    uint32_t added = 0;
    uint32_t from = 0;
    rp_onnx_dims dims = {0};
    const rp_onnx_view *view = NULL;
    rp_err err;
    *done = false;
    RP_TRY(find_axes(visit, 1, &axes, &count));
    if (!in || !axes || count > RP_ONNX_RANK_MAX ||
        in->view->dims.rank + count > RP_ONNX_RANK_MAX) {
        return RP_OK;
    }
    dims.rank = in->view->dims.rank + (uint32_t)count;
    for (uint64_t i = 0; i < count; i++) {
        int64_t axis = axes[i];
        if (!wrap_axis(&axis, dims.rank) || (added >> axis & 1)) {
            return RP_OK;
        }
        added |= 1u << axis;
    }
    for (uint32_t i = 0; i < dims.rank; i++) {
        dims.dim[i] = added >> i & 1 ? 1 : in->view->dims.dim[from++];
    }
    if (rp_onnx_dims_of(dims.rank, dims.dim, &dims)) {
        RP_TRY(rp_onnx_view_reshape(visit->graph->arena, in->view, &dims, &view));
    }
    RP_TRY(give(visit, 0, in, view, done));
fail:
    return err;
}

/* ---- order ----------------------------------------------------------------------------------- */

rp_err rp_onnx_arrange_identity(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = first_in(visit);
    *done = false;
    return in ? give(visit, 0, in, in->view, done) : RP_OK;
}

/* A cast between types of one sort changes nothing: ids stay ids, floats are trained as float32. */
rp_err rp_onnx_arrange_cast(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = first_in(visit);
    const int64_t to = rp_onnx_int(visit->node, "to", 0);
    *done = false;
    if (in && in->state == RP_ONNX_DYNAMIC && (to == RP_ONNX_FLOAT16 || to == RP_ONNX_BFLOAT16)) {
        return rp_onnx_refuse(visit,
                              "arithmetic in %s cannot be trained here; export the net in "
                              "float32",
                              rp_onnx_type_name((int32_t)to));
    }
    if (!in || in->state == RP_ONNX_CONST || to < 0 || to > INT32_MAX || to == RP_ONNX_BOOL ||
        in->whole != rp_onnx_type_is_whole((int32_t)to)) {
        return RP_OK;
    }
    return give(visit, 0, in, in->view, done);
}

rp_err rp_onnx_arrange_cast_like(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = first_in(visit);
    const rp_onnx_value *like = rp_onnx_in(visit, 1);
    *done = false;
    if (!in || !like || !like->view) {
        return RP_OK;
    }
    if (in->state == RP_ONNX_CONST && in->whole != like->whole) {
        return rp_onnx_fold_cast(visit, done);
    }
    return in->whole == like->whole ? give(visit, 0, in, in->view, done) : RP_OK;
}

rp_err rp_onnx_arrange_transpose(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = first_in(visit);
    const rp_onnx_attribute *perm = rp_onnx_find(visit->node, "perm");
    int64_t reverse[RP_ONNX_RANK_MAX];
    const rp_onnx_view *view = NULL;
    rp_err err = RP_OK;
    *done = false;
    if (!in || (perm && perm->int_count != in->view->dims.rank)) {
        return RP_OK;
    }
    for (uint32_t i = 0; i < in->view->dims.rank; i++) {
        reverse[i] = perm ? perm->ints[i] : in->view->dims.rank - 1 - i;
    }
    RP_TRY(rp_onnx_view_transpose(visit->graph->arena, in->view, reverse, &view));
    RP_TRY(give(visit, 0, in, view, done));
fail:
    return err;
}

rp_err rp_onnx_arrange_expand(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = first_in(visit);
    const int64_t *shape;
    uint64_t rank;
    rp_onnx_dims wanted;
    rp_onnx_dims dims;
    const rp_onnx_view *view = NULL;
    rp_err err;
    *done = false;
    RP_TRY(rp_onnx_const_ints(visit, 1, &shape, &rank));
    if (in && shape && rank <= RP_ONNX_RANK_MAX &&
        rp_onnx_dims_of((uint32_t)rank, shape, &wanted) &&
        rp_onnx_dims_broadcast(&in->view->dims, &wanted, &dims)) {
        RP_TRY(rp_onnx_view_expand(visit->graph->arena, in->view, &dims, &view));
        RP_TRY(give(visit, 0, in, view, done));
    }
fail:
    return err;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Start and count of ONNX's Slice along an axis of `size` elements. */
static bool find_part(int64_t size, int64_t *start, int64_t end, int64_t step, int64_t *count) {
    const int64_t least = step < 0 ? -1 : 0;
    const int64_t most = step < 0 ? size - 1 : size;
    int64_t from = *start;
    from = from < 0 ? (from < -size ? -size : from) + size : from;
    end = end < 0 ? (end < -size ? -size - 1 : end) + size : end;
    from = from < 0 ? 0 : from > most ? most : from;
    end = end < least ? least : end > most && step > 0 ? most : end > size ? size : end;
    *start = from;
    if (step == 0 || step == INT64_MIN) {
        return false;
    }
    const int64_t span = step > 0 ? end - from : from - end;
    const int64_t stride = step > 0 ? step : -step;
    *count = span > 0 ? (span - 1) / stride + 1 : 0;
    return *count > 0;
}

/* No elements of a constant along one axis, which exporters use in computations of shapes. */
static rp_err give_empty(const rp_onnx_visit *visit, const rp_onnx_value *in,
                         const rp_onnx_view *view, uint32_t axis, bool *done) {
    rp_onnx_dims dims = view->dims;
    int64_t *nothing;
    dims.dim[axis] = 0;
    dims.count = 0;
    const rp_err err = RP_ARENA_NEW(visit->graph->arena, 1, &nothing);
    if (err != RP_OK) {
        return err;
    }
    *done = true;
    return rp_onnx_give_const(visit, 0, in->whole, &dims, in->whole ? nothing : NULL,
                              in->whole ? NULL : (const float *)(const void *)nothing);
}

rp_err rp_onnx_arrange_slice(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = first_in(visit);
    const int64_t *list[4]; /* starts, ends, axes, steps */
    uint64_t count[4];
    const rp_onnx_view *view = in ? in->view : NULL;
    rp_err err = RP_OK;
    *done = false;
    for (uint32_t i = 0; i < 4; i++) {
        RP_TRY(rp_onnx_const_ints(visit, i + 1, &list[i], &count[i]));
        if (rp_onnx_in(visit, i + 1) ? !list[i] || count[i] != count[0] : i < 2) {
            return RP_OK;
        }
    }
    for (uint64_t i = 0; view && i < count[0]; i++) {
        int64_t axis = list[2] ? list[2][i] : (int64_t)i;
        const int64_t step = list[3] ? list[3][i] : 1;
        int64_t start = list[0][i];
        int64_t size;
        if (!wrap_axis(&axis, view->dims.rank)) {
            return RP_OK;
        }
        if (!find_part(view->dims.dim[axis], &start, list[1][i], step, &size)) {
            const bool empty = in->state == RP_ONNX_CONST && step != 0 && step != INT64_MIN;
            return empty ? give_empty(visit, in, view, (uint32_t)axis, done) : RP_OK;
        }
        RP_TRY(rp_onnx_view_slice(visit->graph->arena, view, (uint32_t)axis, start, step, size,
                                  &view));
    }
    if (in) {
        RP_TRY(give(visit, 0, in, view, done));
    }
fail:
    return err;
}

/* Size of output `i` of a Split; 0 if it is unknown. */
static int64_t split_size(const rp_onnx_visit *visit, const int64_t *sizes, uint64_t count,
                          int64_t whole, uint32_t i) {
    const uint32_t outputs = visit->node->output_count;
    if (sizes) {
        return i < count && count == outputs ? sizes[i] : 0;
    }
    const int64_t each = (whole + outputs - 1) / outputs;
    const int64_t rest = whole - each * i;
    return rest < each ? rest : each;
}

rp_err rp_onnx_arrange_split(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = first_in(visit);
    int64_t axis = rp_onnx_int(visit->node, "axis", 0);
    const int64_t *sizes;
    uint64_t count;
    int64_t start = 0;
    rp_err err;
    *done = false;
    RP_TRY(rp_onnx_const_ints(visit, 1, &sizes, &count));
    if (!in || !wrap_axis(&axis, in->view->dims.rank) || (!sizes && rp_onnx_in(visit, 1))) {
        return RP_OK;
    }
    for (uint32_t i = 0; i < visit->node->output_count; i++) {
        const rp_onnx_view *view = NULL;
        const int64_t size = split_size(visit, sizes, count, in->view->dims.dim[axis], i);
        RP_TRY(rp_onnx_view_slice(visit->graph->arena, in->view, (uint32_t)axis, start, 1, size,
                                  &view));
        RP_TRY(give(visit, i, in, view, done));
        if (!*done) {
            return RP_OK;
        }
        start += size;
    }
fail:
    return err;
}

/* The sequence is the whole value, of which SequenceAt takes a part. */
rp_err rp_onnx_arrange_split_to_sequence(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = first_in(visit);
    *done = in && (in->state == RP_ONNX_DYNAMIC || in->state == RP_ONNX_PARAM);
    if (*done) {
        rp_onnx_give_view(visit, 0, in->state, in->whole, in->view);
    }
    return RP_OK;
}

/* Place and size of part `at` of a SplitToSequence: parts of one size, or of the listed ones. */
static rp_err find_sequence_part(const rp_onnx_visit *split, int64_t whole, int64_t at,
                                 int64_t *start, int64_t *size) {
    const rp_onnx_value *sizes = rp_onnx_in(split, 1);
    const int64_t *list;
    uint64_t count;
    const rp_err err = rp_onnx_const_ints(split, 1, &list, &count);
    *start = 0;
    *size = 0;
    if (!list || count == 0) {
        return err;
    }
    const bool listed = sizes->view->dims.rank > 0;
    const uint64_t parts = listed ? count : list[0] > 0 ? (uint64_t)((whole - 1) / list[0] + 1) : 0;
    at += at < 0 ? (int64_t)parts : 0;
    for (uint64_t i = 0; at >= 0 && (uint64_t)at < parts && i <= (uint64_t)at; i++) {
        *start += *size;
        *size = listed ? list[i] : list[0];
        if (*size < 1 || *size > whole) {
            *size = 0;
            return err;
        }
    }
    *size = whole - *start < *size ? whole - *start : *size;
    return err;
}

rp_err rp_onnx_arrange_sequence_at(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_graph *graph = visit->graph;
    const rp_onnx_value *in = first_in(visit);
    const rp_onnx_node *node =
        in && in->node != RP_ONNX_NONE ? &graph->model->node[in->node] : NULL;
    const int64_t *at;
    uint64_t count;
    int64_t start;
    int64_t size;
    const rp_onnx_view *view = NULL;
    rp_err err;
    *done = false;
    RP_TRY(rp_onnx_const_ints(visit, 1, &at, &count));
    if (!node || strcmp(node->op, "SplitToSequence") != 0 || !at || count != 1) {
        return RP_OK;
    }
    const rp_onnx_visit split = {.graph = visit->graph, .node = node, .index = in->node};
    int64_t axis = rp_onnx_int(node, "axis", 0);
    if (!wrap_axis(&axis, in->view->dims.rank)) {
        return RP_OK;
    }
    RP_TRY(find_sequence_part(&split, in->view->dims.dim[axis], at[0], &start, &size));
    RP_TRY(
        rp_onnx_view_slice(visit->graph->arena, in->view, (uint32_t)axis, start, 1, size, &view));
    RP_TRY(give(visit, 0, in, view, done));
fail:
    return err;
}

/* Shape of a Gather from `in`: the axis becomes those of the index, or 1 for each of them. False:
 * it is too large. */
static bool find_gather_dims(const rp_onnx_dims *in, uint32_t axis, const rp_onnx_dims *index,
                             bool ones, rp_onnx_dims *out) {
    rp_onnx_dims dims = {0};
    for (uint32_t i = 0; i < in->rank; i++) {
        for (uint32_t k = 0; i == axis && k < index->rank; k++) {
            dims.dim[dims.rank++] = ones ? 1 : index->dim[k];
        }
        if (i != axis) {
            dims.dim[dims.rank++] = in->dim[i];
        }
    }
    return rp_onnx_dims_of(dims.rank, dims.dim, out);
}

/* One row, maybe many times, or rows that follow each other at one distance, however the index is
 * arranged. */
rp_err rp_onnx_arrange_gather(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = first_in(visit);
    int64_t axis = rp_onnx_int(visit->node, "axis", 0);
    const rp_onnx_value *index = rp_onnx_in(visit, 1);
    const int64_t *rows;
    uint64_t count;
    const rp_onnx_view *view = NULL;
    rp_err err;
    *done = false;
    RP_TRY(rp_onnx_const_ints(visit, 1, &rows, &count));
    if (!in || in->state == RP_ONNX_CONST || !rows || count == 0 ||
        !wrap_axis(&axis, in->view->dims.rank) ||
        in->view->dims.rank - 1 + index->view->dims.rank > RP_ONNX_RANK_MAX) {
        return RP_OK;
    }
    const int64_t size = in->view->dims.dim[axis];
    if (rows[0] < -size || rows[0] >= size) {
        return RP_OK;
    }
    const int64_t first = rows[0] + (rows[0] < 0 ? size : 0);
    const int64_t step = count > 1 && rows[1] >= 0 && rows[1] < size ? rows[1] - rows[0] : 1;
    for (uint64_t i = 1; i < count; i++) {
        if (rows[i] < 0 || rows[i] >= size || rows[i] - rows[i - 1] != step) {
            return RP_OK;
        }
    }
    const bool repeats = step == 0;
    rp_onnx_dims dims;
    rp_onnx_dims all;
    if (!find_gather_dims(&in->view->dims, (uint32_t)axis, &index->view->dims, repeats, &dims) ||
        !find_gather_dims(&in->view->dims, (uint32_t)axis, &index->view->dims, false, &all)) {
        return RP_OK;
    }
    RP_TRY(rp_onnx_view_slice(visit->graph->arena, in->view, (uint32_t)axis, first,
                              repeats ? 1 : step, repeats ? 1 : (int64_t)count, &view));
    if (view) {
        RP_TRY(rp_onnx_view_reshape(visit->graph->arena, view, &dims, &view));
    }
    if (view && repeats) {
        RP_TRY(rp_onnx_view_expand(visit->graph->arena, view, &all, &view));
    }
    RP_TRY(give(visit, 0, in, view, done));
fail:
    return err;
}

/* Joins constants, or parameters. A concatenation of dynamic values is a layer, apart from one
 * along the first axis: the states of recurrent layers are there before the batch, and are taken
 * out of it again. */
rp_err rp_onnx_arrange_concat(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = first_in(visit);
    int64_t axis = rp_onnx_int(visit->node, "axis", 0);
    const rp_onnx_view *part[RP_ONNX_INPUTS_MAX];
    const rp_onnx_view *view = NULL;
    rp_err err = RP_OK;
    *done = false;
    for (uint32_t i = 0; i < visit->node->input_count; i++) {
        const rp_onnx_value *other = rp_onnx_in(visit, i);
        if (!in || !other || other->state != in->state || other->whole != in->whole) {
            return RP_OK;
        }
        part[i] = other->view;
    }
    if (in && wrap_axis(&axis, in->view->dims.rank) &&
        (in->state != RP_ONNX_DYNAMIC || axis == 0)) {
        RP_TRY(rp_onnx_view_concat(visit->graph->arena, part, visit->node->input_count,
                                   (uint32_t)axis, &view));
        RP_TRY(give(visit, 0, in, view, done));
    }
fail:
    return err;
}
