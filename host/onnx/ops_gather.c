/* GatherElements and GatherND: elements and rows of constants, in shapes and masks. */
#include "onnx/constants.h"
#include "onnx/ops.h"

/* Element by element, along one axis. */
rp_err rp_onnx_fold_gather_elements(const rp_onnx_visit *visit, bool *done) {
    rp_onnx_graph *graph = visit->graph;
    const rp_onnx_value *data = rp_onnx_in(visit, 0);
    const rp_onnx_value *index = rp_onnx_in(visit, 1);
    const rp_onnx_dims *from = &data->view->dims;
    const rp_onnx_dims *at = &index->view->dims;
    int64_t axis = rp_onnx_int(visit->node, "axis", 0);
    int64_t *ints;
    float *floats;
    rp_err err;
    axis += axis < 0 ? from->rank : 0;
    *done = axis >= 0 && axis < from->rank && from->rank == at->rank && index->whole;
    for (uint32_t i = 0; i < from->rank && *done; i++) {
        *done = i == axis || at->dim[i] <= from->dim[i];
    }
    if (!*done) {
        return RP_OK;
    }
    RP_TRY(rp_onnx_new_const(graph, data->whole, at->count, &ints, &floats));
    *done = ints || floats;
    for (uint64_t i = 0; *done && i < at->count; i++) {
        uint64_t rest = i;
        uint64_t source = 0;
        uint64_t stride = 1;
        for (uint32_t d = from->rank; d-- > 0;) {
            int64_t place = (int64_t)(rest % (uint64_t)at->dim[d]);
            rest /= (uint64_t)at->dim[d];
            if (d == axis) {
                place = index->ints[i] + (index->ints[i] < 0 ? from->dim[d] : 0);
            }
            *done = *done && place >= 0 && place < from->dim[d];
            source += *done ? (uint64_t)place * stride : 0;
            stride *= (uint64_t)from->dim[d];
        }
        if (*done && data->whole) {
            ints[i] = data->ints[source];
        } else if (*done) {
            floats[i] = data->floats[source];
        }
    }
    if (*done) {
        RP_TRY(rp_onnx_give_const(visit, 0, data->whole, at, ints, floats));
    }
fail:
    return err;
}

/* The shape: the index without its last axis, then the axes of the data that it leaves. */
static bool find_shape(const rp_onnx_visit *visit, rp_onnx_dims *out) {
    const rp_onnx_value *data = rp_onnx_in(visit, 0);
    const rp_onnx_value *index = rp_onnx_in(visit, 1);
    *out = (rp_onnx_dims){0};
    if (!data || !data->view || !index || !index->view || index->view->dims.rank == 0) {
        return false;
    }
    const rp_onnx_dims *from = &data->view->dims;
    const rp_onnx_dims *at = &index->view->dims;
    const int64_t keys = at->dim[at->rank - 1];
    if (keys < 1 || keys > (int64_t)from->rank || !index->whole ||
        at->rank - 1 + from->rank - keys > RP_ONNX_RANK_MAX ||
        rp_onnx_int(visit->node, "batch_dims", 0) != 0) {
        return false;
    }
    for (uint32_t i = 0; i + 1 < at->rank; i++) {
        out->dim[out->rank++] = at->dim[i];
    }
    for (uint32_t i = (uint32_t)keys; i < from->rank; i++) {
        out->dim[out->rank++] = from->dim[i];
    }
    return rp_onnx_dims_of(out->rank, out->dim, out);
}

rp_err rp_onnx_shape_gather_nd(const rp_onnx_visit *visit, bool *done) {
    rp_onnx_dims out;
    *done = find_shape(visit, &out);
    return *done ? rp_onnx_give_expression(visit, 0, rp_onnx_in(visit, 0)->whole, &out) : RP_OK;
}

bool rp_onnx_find_row(const rp_onnx_dims *data, const rp_onnx_value *index, uint64_t element,
                      uint64_t *source) {
    const rp_onnx_dims *at = &index->view->dims;
    const uint64_t keys = at->rank > 0 ? (uint64_t)at->dim[at->rank - 1] : 0;
    uint64_t inner = 1;
    *source = 0;
    for (uint64_t i = keys; i < data->rank; i++) {
        inner *= (uint64_t)data->dim[i];
    }
    const uint64_t row = inner > 0 ? element / inner : 0;
    if (keys == 0 || keys > data->rank || inner == 0 || row >= at->count / keys) {
        return false;
    }
    for (uint64_t i = 0; i < keys; i++) {
        int64_t place = index->ints[row * keys + i];
        place += place < 0 ? data->dim[i] : 0;
        if (place < 0 || place >= data->dim[i]) {
            return false;
        }
        *source = *source * (uint64_t)data->dim[i] + (uint64_t)place;
    }
    *source = *source * inner + element % inner;
    return true;
}

rp_err rp_onnx_fold_gather_nd(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *data = rp_onnx_in(visit, 0);
    rp_onnx_dims dims;
    int64_t *ints;
    float *floats;
    rp_err err;
    *done = false;
    if (!find_shape(visit, &dims)) {
        return RP_OK;
    }
    RP_TRY(rp_onnx_new_const(visit->graph, data->whole, dims.count, &ints, &floats));
    *done = ints || floats;
    for (uint64_t i = 0; *done && i < dims.count; i++) {
        uint64_t source;
        *done = rp_onnx_find_row(&data->view->dims, rp_onnx_in(visit, 1), i, &source);
        if (*done && data->whole) {
            ints[i] = data->ints[source];
        } else if (*done) {
            floats[i] = data->floats[source];
        }
    }
    if (*done) {
        RP_TRY(rp_onnx_give_const(visit, 0, data->whole, &dims, ints, floats));
    }
fail:
    return err;
}
