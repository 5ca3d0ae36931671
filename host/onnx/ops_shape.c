/* Shapes of nodes that no layer computes alone, so that patterns can include them. */
#include <string.h>

#include "onnx/ops.h"

static const rp_onnx_dims *dims_in(const rp_onnx_visit *visit, uint32_t i) {
    const rp_onnx_value *in = rp_onnx_in(visit, i);
    return in && in->view ? &in->view->dims : NULL;
}

rp_err rp_onnx_shape_same(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_dims *dims = dims_in(visit, 0);
    *done = dims != NULL;
    return dims ? rp_onnx_give_expression(visit, 0, rp_onnx_in(visit, 0)->whole, dims) : RP_OK;
}

/* The common shape of all inputs. */
static bool broadcast(const rp_onnx_visit *visit, rp_onnx_dims *out) {
    bool good = visit->node->input_count > 0;
    *out = (rp_onnx_dims){.count = 1};
    for (uint32_t i = 0; good && i < visit->node->input_count; i++) {
        const rp_onnx_dims *dims = dims_in(visit, i);
        const rp_onnx_dims before = *out;
        good = dims && rp_onnx_dims_broadcast(&before, dims, out);
    }
    return good;
}

rp_err rp_onnx_shape_broadcast(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *last = rp_onnx_in(visit, visit->node->input_count - 1);
    rp_onnx_dims dims;
    *done = broadcast(visit, &dims);
    return *done ? rp_onnx_give_expression(visit, 0, last->whole, &dims) : RP_OK;
}

rp_err rp_onnx_shape_mask(const rp_onnx_visit *visit, bool *done) {
    rp_onnx_dims dims;
    *done = broadcast(visit, &dims);
    return *done ? rp_onnx_give_expression(visit, 0, true, &dims) : RP_OK;
}

rp_err rp_onnx_shape_matmul(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_dims *a = dims_in(visit, 0);
    const rp_onnx_dims *b = dims_in(visit, 1);
    rp_onnx_dims x;
    rp_onnx_dims y;
    rp_onnx_dims out;
    *done = false;
    if (!a || !b || a->rank < 2 || b->rank < 2 || a->dim[a->rank - 1] != b->dim[b->rank - 2]) {
        return RP_OK;
    }
    x = (rp_onnx_dims){.rank = a->rank - 2};
    y = (rp_onnx_dims){.rank = b->rank - 2};
    memcpy(x.dim, a->dim, sizeof x.dim);
    memcpy(y.dim, b->dim, sizeof y.dim);
    if (!rp_onnx_dims_broadcast(&x, &y, &out) || out.rank + 2 > RP_ONNX_RANK_MAX) {
        return RP_OK;
    }
    out.dim[out.rank++] = a->dim[a->rank - 2];
    out.dim[out.rank++] = b->dim[b->rank - 1];
    *done = rp_onnx_dims_of(out.rank, out.dim, &out);
    return *done ? rp_onnx_give_expression(visit, 0, false, &out) : RP_OK;
}

rp_err rp_onnx_shape_reduce(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_dims *in = dims_in(visit, 0);
    const rp_onnx_attribute *attribute = rp_onnx_find(visit->node, "axes");
    const bool keep = rp_onnx_int(visit->node, "keepdims", 1) != 0;
    const int64_t *axes;
    uint64_t count;
    uint32_t reduced = 0;
    rp_onnx_dims out = {0};
    rp_err err;
    *done = false;
    RP_TRY(rp_onnx_const_ints(visit, 1, &axes, &count));
    axes = attribute ? attribute->ints : axes;
    count = attribute ? attribute->int_count : count;
    if (!in || (!axes && rp_onnx_in(visit, 1))) {
        return RP_OK;
    }
    for (uint64_t i = 0; i < count; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + in->rank : axes[i];
        if (axis < 0 || axis >= in->rank) {
            return RP_OK;
        }
        reduced |= 1u << axis;
    }
    reduced =
        count == 0 && !rp_onnx_int(visit->node, "noop_with_empty_axes", 0) ? UINT32_MAX : reduced;
    for (uint32_t i = 0; i < in->rank; i++) {
        if (!(reduced >> i & 1) || keep) {
            out.dim[out.rank++] = reduced >> i & 1 ? 1 : in->dim[i];
        }
    }
    *done = rp_onnx_dims_of(out.rank, out.dim, &out);
    if (*done) {
        RP_TRY(rp_onnx_give_expression(visit, 0, rp_onnx_in(visit, 0)->whole, &out));
    }
fail:
    return err;
}

rp_err rp_onnx_shape_concat(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_dims *first = dims_in(visit, 0);
    int64_t axis = rp_onnx_int(visit->node, "axis", 0);
    rp_onnx_dims out;
    *done = false;
    if (!first) {
        return RP_OK;
    }
    axis += axis < 0 ? first->rank : 0;
    if (axis < 0 || axis >= first->rank) {
        return RP_OK;
    }
    out = *first;
    for (uint32_t i = 1; i < visit->node->input_count; i++) {
        const rp_onnx_dims *dims = dims_in(visit, i);
        rp_onnx_dims other = dims ? *dims : (rp_onnx_dims){0};
        if (other.rank != out.rank ||
            __builtin_add_overflow(out.dim[axis], other.dim[axis], &out.dim[axis])) {
            return RP_OK;
        }
        other.dim[axis] = out.dim[axis];
        if (!rp_onnx_dims_equal(&other, &out)) {
            return RP_OK;
        }
    }
    *done = rp_onnx_dims_of(out.rank, out.dim, &out);
    return *done ? rp_onnx_give_expression(visit, 0, rp_onnx_in(visit, 0)->whole, &out) : RP_OK;
}
