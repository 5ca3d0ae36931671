/* Arrangements by blocks: repetitions, and channels that become pixels or the reverse. */
#include <string.h>

#include "onnx/constants.h"
#include "onnx/ops.h"

static rp_err give(const rp_onnx_visit *visit, const rp_onnx_view *view, bool *done) {
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    *done = view != NULL;
    if (view && in->state == RP_ONNX_CONST) {
        return rp_onnx_give_arranged(visit, 0, in->whole, view, done);
    }
    if (view) {
        rp_onnx_give_view(visit, 0, in->state, in->whole, view);
    }
    return RP_OK;
}

/* The view with other axes; NULL: it has another number of elements. */
static rp_err reshape(rp_arena *arena, uint32_t rank, const int64_t *dim,
                      const rp_onnx_view **view) {
    rp_onnx_dims dims;
    if (!rp_onnx_dims_of(rank, dim, &dims)) {
        *view = NULL;
        return RP_OK;
    }
    return rp_onnx_view_reshape(arena, *view, &dims, view);
}

/* Repeats an axis as a whole: a new axis before it, which is expanded and joined with it. */
static rp_err repeat_axis(rp_arena *arena, uint32_t axis, int64_t times,
                          const rp_onnx_view **view) {
    const uint32_t rank = (*view)->dims.rank;
    const int64_t *from = (*view)->dims.dim;
    int64_t dim[RP_ONNX_RANK_MAX + 1];
    int64_t joined[RP_ONNX_RANK_MAX];
    rp_onnx_dims dims;
    rp_err err;
    memcpy(joined, from, rank * sizeof *joined);
    memcpy(dim, from, axis * sizeof *dim);
    dim[axis] = 1;
    memcpy(dim + axis + 1, from + axis, (rank - axis) * sizeof *dim);
    if (times < 1 || __builtin_mul_overflow(joined[axis], times, &joined[axis])) {
        *view = NULL;
        return RP_OK;
    }
    RP_TRY(reshape(arena, rank + 1, dim, view));
    dim[axis] = times;
    if (*view && rp_onnx_dims_of(rank + 1, dim, &dims)) {
        RP_TRY(rp_onnx_view_expand(arena, *view, &dims, view));
    } else {
        *view = NULL;
    }
    if (*view) {
        RP_TRY(reshape(arena, rank, joined, view));
    }
fail:
    return err;
}

rp_err rp_onnx_arrange_tile(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    const rp_onnx_view *view = in ? in->view : NULL;
    const int64_t *times;
    uint64_t count;
    rp_err err;
    *done = false;
    RP_TRY(rp_onnx_const_ints(visit, 1, &times, &count));
    if (!view || !times || count != view->dims.rank) {
        return RP_OK;
    }
    for (uint32_t i = 0; i < count && view; i++) {
        if (times[i] != 1) {
            RP_TRY(repeat_axis(visit->graph->arena, i, times[i], &view));
        }
    }
    RP_TRY(give(visit, view, done));
fail:
    return err;
}

/* Splits the axes, moves the new ones and joins them again. */
static rp_err move_blocks(const rp_onnx_visit *visit, const int64_t split[6], const int64_t perm[6],
                          const int64_t joined[4], bool *done) {
    rp_arena *arena = visit->graph->arena;
    const rp_onnx_view *view = rp_onnx_in(visit, 0)->view;
    rp_err err;
    RP_TRY(reshape(arena, 6, split, &view));
    if (view) {
        RP_TRY(rp_onnx_view_transpose(arena, view, perm, &view));
    }
    if (view) {
        RP_TRY(reshape(arena, 4, joined, &view));
    }
    RP_TRY(give(visit, view, done));
fail:
    return err;
}

/* Sizes of an image in blocks of b x b; false: it has other axes, or b is no size. */
static bool read_blocks(const rp_onnx_visit *visit, const int64_t **dim, int64_t *b) {
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    *b = rp_onnx_int(visit->node, "blocksize", 0);
    *dim = in && in->view ? in->view->dims.dim : NULL;
    return *dim && in->view->dims.rank == 4 && in->view->dims.count > 0 && *b >= 1 && *b <= 256;
}

rp_err rp_onnx_arrange_depth_to_space(const rp_onnx_visit *visit, bool *done) {
    static const int64_t blocks_first[] = {0, 3, 4, 1, 5, 2};
    static const int64_t channels_first[] = {0, 1, 4, 2, 5, 3};
    const bool crd = strcmp(rp_onnx_text(visit->node, "mode", "DCR"), "CRD") == 0;
    const int64_t *d;
    int64_t b;
    *done = false;
    if (!read_blocks(visit, &d, &b) || d[1] % (b * b) != 0) {
        return RP_OK;
    }
    const int64_t c = d[1] / (b * b);
    const int64_t dcr[6] = {d[0], b, b, c, d[2], d[3]};
    const int64_t split[6] = {d[0], c, b, b, d[2], d[3]};
    const int64_t joined[4] = {d[0], c, d[2] * b, d[3] * b};
    return move_blocks(visit, crd ? split : dcr, crd ? channels_first : blocks_first, joined, done);
}

rp_err rp_onnx_arrange_space_to_depth(const rp_onnx_visit *visit, bool *done) {
    static const int64_t perm[] = {0, 3, 5, 1, 2, 4};
    const int64_t *d;
    int64_t b;
    *done = false;
    if (!read_blocks(visit, &d, &b) || d[2] % b != 0 || d[3] % b != 0) {
        return RP_OK;
    }
    const int64_t split[6] = {d[0], d[1], d[2] / b, b, d[3] / b, b};
    const int64_t joined[4] = {d[0], d[1] * b * b, d[2] / b, d[3] / b};
    return move_blocks(visit, split, perm, joined, done);
}
