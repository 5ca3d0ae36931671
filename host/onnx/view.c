#include "onnx/view.h"

#include <string.h>

#define COUNT_MAX (UINT64_C(1) << 40)

/* ---- sizes ----------------------------------------------------------------------------------- */

bool rp_onnx_dims_of(uint32_t rank, const int64_t *dim, rp_onnx_dims *out) {
    rp_onnx_dims dims = {.rank = rank, .count = 1}; /* dim may be that of *out */
    for (uint32_t i = 0; i < rank && i < RP_ONNX_RANK_MAX; i++) {
        dims.dim[i] = dim[i];
        if (dim[i] < 0 || __builtin_mul_overflow(dims.count, (uint64_t)dim[i], &dims.count) ||
            dims.count > COUNT_MAX) {
            return false;
        }
    }
    *out = dims;
    return rank <= RP_ONNX_RANK_MAX;
}

bool rp_onnx_dims_equal(const rp_onnx_dims *a, const rp_onnx_dims *b) {
    return a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0;
}

/* Size of axis `i`, counted from the last one. */
static int64_t size_from_end(const rp_onnx_dims *dims, uint32_t i) {
    return i < dims->rank ? dims->dim[dims->rank - 1 - i] : 1;
}

bool rp_onnx_dims_broadcast(const rp_onnx_dims *a, const rp_onnx_dims *b, rp_onnx_dims *out) {
    int64_t dim[RP_ONNX_RANK_MAX] = {0};
    const uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
    for (uint32_t i = 0; i < rank; i++) {
        const int64_t x = size_from_end(a, i);
        const int64_t y = size_from_end(b, i);
        if (x != y && x != 1 && y != 1) {
            return false;
        }
        dim[rank - 1 - i] = x == 1 ? y : x;
    }
    return rp_onnx_dims_of(rank, dim, out);
}

/* ---- construction ---------------------------------------------------------------------------- */

static rp_err make_view(rp_arena *arena, rp_onnx_view_op op, const rp_onnx_view *const *in,
                        uint32_t count, const rp_onnx_dims *dims, rp_onnx_view **out) {
    uint32_t depth = 0;
    const rp_onnx_view **list;
    rp_err err;
    *out = NULL;
    for (uint32_t i = 0; i < count; i++) {
        depth = in[i]->depth >= depth ? in[i]->depth + 1 : depth;
    }
    if (depth > RP_ONNX_VIEW_DEPTH_MAX) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, count + 1, &list));
    for (uint32_t i = 0; i < count; i++) {
        list[i] = in[i];
    }
    RP_TRY(RP_ARENA_NEW(arena, 1, out));
    **out = (rp_onnx_view){.op = op, .dims = *dims, .depth = depth, .in_count = count, .in = list};
fail:
    return err;
}

rp_err rp_onnx_view_leaf(rp_arena *arena, uint32_t value, const rp_onnx_dims *dims,
                         const rp_onnx_view **out) {
    rp_onnx_view *view;
    const rp_err err = make_view(arena, RP_ONNX_LEAF, NULL, 0, dims, &view);
    if (err == RP_OK) {
        view->leaf = value;
        *out = view;
    }
    return err;
}

rp_err rp_onnx_view_reshape(rp_arena *arena, const rp_onnx_view *in, const rp_onnx_dims *dims,
                            const rp_onnx_view **out) {
    rp_onnx_view *view = NULL;
    rp_err err = RP_OK;
    *out = NULL;
    if (rp_onnx_dims_equal(&in->dims, dims)) {
        *out = in;
        return RP_OK;
    }
    /* only the last of several reshapes matters */
    const rp_onnx_view *from = in->op == RP_ONNX_RESHAPE ? in->in[0] : in;
    if (in->dims.count == dims->count) {
        err = rp_onnx_dims_equal(&from->dims, dims)
                  ? RP_OK
                  : make_view(arena, RP_ONNX_RESHAPE, &from, 1, dims, &view);
        *out = rp_onnx_dims_equal(&from->dims, dims) ? from : view;
    }
    return err;
}

/* The axes of `in` that a transposition of it has; a transposition of another is one. */
static bool find_perm(const rp_onnx_view *in, const int64_t *perm, uint8_t *out) {
    uint32_t seen = 0;
    for (uint32_t i = 0; i < in->dims.rank; i++) {
        if (perm[i] < 0 || perm[i] >= in->dims.rank || (seen >> perm[i] & 1)) {
            return false;
        }
        seen |= 1u << perm[i];
        out[i] = in->op == RP_ONNX_TRANSPOSE ? in->perm[perm[i]] : (uint8_t)perm[i];
    }
    return true;
}

rp_err rp_onnx_view_transpose(rp_arena *arena, const rp_onnx_view *in, const int64_t *perm,
                              const rp_onnx_view **out) {
    uint8_t all[RP_ONNX_RANK_MAX];
    rp_onnx_view *view = NULL;
    bool same = true;
    rp_err err = RP_OK;
    *out = NULL;
    if (!find_perm(in, perm, all)) {
        return RP_OK;
    }
    const rp_onnx_view *from = in->op == RP_ONNX_TRANSPOSE ? in->in[0] : in;
    rp_onnx_dims dims = from->dims;
    for (uint32_t i = 0; i < dims.rank; i++) {
        dims.dim[i] = from->dims.dim[all[i]];
        same &= all[i] == i;
    }
    if (same) {
        *out = from;
        return RP_OK;
    }
    err = make_view(arena, RP_ONNX_TRANSPOSE, &from, 1, &dims, &view);
    if (view) {
        memcpy(view->perm, all, dims.rank * sizeof *all);
    }
    *out = view;
    return err;
}

/* The part of a concatenation that has all of the range; NULL: several have it. *start then counts
 * from that part. */
static const rp_onnx_view *find_part(const rp_onnx_view *view, uint32_t axis, int64_t *start,
                                     int64_t last) {
    int64_t first = 0;
    if (view->op != RP_ONNX_CONCAT || view->axis != axis) {
        return NULL;
    }
    for (uint32_t i = 0; i < view->in_count; i++) {
        const int64_t end = first + view->in[i]->dims.dim[axis];
        if (*start >= first && *start < end && last >= first && last < end) {
            *start -= first;
            return view->in[i];
        }
        first = end;
    }
    return NULL;
}

rp_err rp_onnx_view_slice(rp_arena *arena, const rp_onnx_view *in, uint32_t axis, int64_t start,
                          int64_t step, int64_t count, const rp_onnx_view **out) {
    rp_onnx_dims dims = in->dims;
    rp_onnx_view *view = NULL;
    int64_t last;
    rp_err err;
    *out = NULL;
    if (axis >= dims.rank || count < 1 || step == 0 || start < 0 || start >= dims.dim[axis] ||
        __builtin_mul_overflow(count - 1, step, &last) ||
        __builtin_add_overflow(last, start, &last) || last < 0 || last >= dims.dim[axis]) {
        return RP_OK;
    }
    const rp_onnx_view *part = find_part(in, axis, &start, last);
    in = part ? part : in;
    dims = in->dims;
    if (start == 0 && step == 1 && count == dims.dim[axis]) {
        *out = in;
        return RP_OK;
    }
    dims.dim[axis] = count;
    if (!rp_onnx_dims_of(dims.rank, dims.dim, &dims)) {
        return RP_OK;
    }
    err = make_view(arena, RP_ONNX_SLICE, &in, 1, &dims, &view);
    for (uint32_t i = 0; view && i < dims.rank; i++) {
        view->start[i] = i == axis ? start : 0;
        view->step[i] = i == axis ? step : 1;
    }
    *out = view;
    return err;
}

rp_err rp_onnx_view_concat(rp_arena *arena, const rp_onnx_view *const *in, uint32_t count,
                           uint32_t axis, const rp_onnx_view **out) {
    rp_onnx_view *view = NULL;
    *out = NULL;
    if (count == 0 || axis >= in[0]->dims.rank) {
        return RP_OK;
    }
    rp_onnx_dims dims = in[0]->dims;
    for (uint32_t i = 1; i < count; i++) {
        rp_onnx_dims other = in[i]->dims;
        if (other.rank != dims.rank ||
            __builtin_add_overflow(dims.dim[axis], other.dim[axis], &dims.dim[axis])) {
            return RP_OK;
        }
        other.dim[axis] = dims.dim[axis];
        if (!rp_onnx_dims_equal(&other, &dims)) {
            return RP_OK;
        }
    }
    if (!rp_onnx_dims_of(dims.rank, dims.dim, &dims)) {
        return RP_OK;
    }
    const rp_err err = make_view(arena, RP_ONNX_CONCAT, in, count, &dims, &view);
    if (view) {
        view->axis = axis;
    }
    *out = view;
    return err;
}

rp_err rp_onnx_view_expand(rp_arena *arena, const rp_onnx_view *in, const rp_onnx_dims *dims,
                           const rp_onnx_view **out) {
    rp_onnx_view *view = NULL;
    rp_onnx_dims common;
    rp_err err = RP_OK;
    *out = NULL;
    if (rp_onnx_dims_equal(&in->dims, dims)) {
        *out = in;
    } else if (rp_onnx_dims_broadcast(&in->dims, dims, &common) &&
               rp_onnx_dims_equal(&common, dims)) {
        err = make_view(arena, RP_ONNX_EXPAND, &in, 1, dims, &view);
        *out = view;
    }
    return err;
}

/* ---- the map --------------------------------------------------------------------------------- */

static void find_place(const rp_onnx_dims *dims, uint64_t index, int64_t *place) {
    for (uint32_t i = dims->rank; i-- > 0;) {
        place[i] = (int64_t)(index % (uint64_t)dims->dim[i]);
        index /= (uint64_t)dims->dim[i];
    }
}

static uint64_t index_of(const rp_onnx_dims *dims, const int64_t *place) {
    uint64_t index = 0;
    for (uint32_t i = 0; i < dims->rank; i++) {
        index = index * (uint64_t)dims->dim[i] + (uint64_t)place[i];
    }
    return index;
}

/* The place in the view's input that is `place` in the view; a concatenation chooses its input. */
static const rp_onnx_view *step_down(const rp_onnx_view *view, const int64_t *place,
                                     int64_t *inner) {
    const rp_onnx_view *in = view->in[0];
    const uint32_t missing = view->dims.rank - in->dims.rank;
    uint32_t part = 0;
    for (uint32_t i = 0; i < view->dims.rank; i++) {
        switch (view->op) {
        case RP_ONNX_TRANSPOSE:
            inner[view->perm[i]] = place[i];
            break;
        case RP_ONNX_SLICE:
            inner[i] = view->start[i] + place[i] * view->step[i];
            break;
        case RP_ONNX_EXPAND:
            if (i >= missing) {
                inner[i - missing] = in->dims.dim[i - missing] == 1 ? 0 : place[i];
            }
            break;
        default:
            inner[i] = place[i];
            break;
        }
    }
    while (view->op == RP_ONNX_CONCAT &&
           inner[view->axis] >= view->in[part]->dims.dim[view->axis]) {
        inner[view->axis] -= view->in[part++]->dims.dim[view->axis];
    }
    return view->in[part];
}

rp_onnx_source rp_onnx_view_source(const rp_onnx_view *view, uint64_t index) {
    int64_t place[RP_ONNX_RANK_MAX];
    int64_t inner[RP_ONNX_RANK_MAX] = {0};
    while (view->op != RP_ONNX_LEAF) {
        if (view->op == RP_ONNX_RESHAPE) {
            view = view->in[0];
            continue;
        }
        find_place(&view->dims, index, place);
        view = step_down(view, place, inner);
        index = index_of(&view->dims, inner);
    }
    return (rp_onnx_source){view->leaf, index};
}

uint32_t rp_onnx_view_only_leaf(const rp_onnx_view *view) {
    while (view->op != RP_ONNX_LEAF && view->in_count == 1) {
        view = view->in[0];
    }
    return view->op == RP_ONNX_LEAF ? view->leaf : RP_ONNX_NONE;
}

bool rp_onnx_view_repeats(const rp_onnx_view *view) {
    while (view->op != RP_ONNX_EXPAND && view->op != RP_ONNX_LEAF && view->in_count == 1) {
        view = view->in[0];
    }
    return view->op == RP_ONNX_EXPAND;
}

bool rp_onnx_view_is_whole(const rp_onnx_view *view, uint64_t count) {
    if (count == 0 || view->dims.count != count) {
        return false;
    }
    if (view->op == RP_ONNX_LEAF ||
        (view->op == RP_ONNX_RESHAPE && view->in[0]->op == RP_ONNX_LEAF)) {
        return true;
    }
    const uint32_t leaf = rp_onnx_view_source(view, 0).leaf;
    for (uint64_t i = 0; i < count; i++) {
        const rp_onnx_source source = rp_onnx_view_source(view, i);
        if (source.leaf != leaf || source.index != i) {
            return false;
        }
    }
    return true;
}
