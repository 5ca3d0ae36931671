#include "onnx/pad.h"

#include <string.h>

#include "onnx/layers.h"
#include "onnx/ops.h"

enum { PAD_MAX = 255 };

/* Zeros before and after each axis of the node's input; *done is false if they are unknown. */
static rp_err read_pads(const rp_onnx_visit *visit, int64_t before[RP_ONNX_RANK_MAX],
                        int64_t after[RP_ONNX_RANK_MAX], bool *done) {
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    const int64_t *pads;
    const int64_t *axes;
    uint64_t pad_count;
    uint64_t axis_count;
    float value;
    rp_err err;
    *done = false;
    RP_TRY(rp_onnx_const_ints(visit, 1, &pads, &pad_count));
    RP_TRY(rp_onnx_const_ints(visit, 3, &axes, &axis_count));
    if (!in || !in->view || !pads || (rp_onnx_in(visit, 3) && !axes) ||
        strcmp(rp_onnx_text(visit->node, "mode", "constant"), "constant") != 0 ||
        (rp_onnx_in(visit, 2) && (!rp_onnx_const_number(visit, 2, &value) || value != 0.0f))) {
        return RP_OK;
    }
    const uint64_t count = axes ? axis_count : in->view->dims.rank;
    if (count > in->view->dims.rank || pad_count != 2 * count) {
        return RP_OK;
    }
    memset(before, 0, RP_ONNX_RANK_MAX * sizeof *before);
    memset(after, 0, RP_ONNX_RANK_MAX * sizeof *after);
    *done = true;
    for (uint64_t i = 0; i < count; i++) {
        int64_t axis = axes ? axes[i] : (int64_t)i;
        axis += axis < 0 ? in->view->dims.rank : 0;
        *done = *done && axis >= 0 && axis < in->view->dims.rank && pads[i] >= 0 &&
                pads[i] <= PAD_MAX && pads[count + i] >= 0 && pads[count + i] <= PAD_MAX;
        if (*done) {
            before[axis] = pads[i];
            after[axis] = pads[count + i];
        }
    }
fail:
    return err;
}

rp_err rp_onnx_find_pad(const rp_onnx_visit *visit, uint32_t i, rp_onnx_visit *pad,
                        int64_t before[2], int64_t after[2], bool *yes) {
    int64_t first[RP_ONNX_RANK_MAX];
    int64_t last[RP_ONNX_RANK_MAX];
    *yes = rp_onnx_producer(visit, i, "Pad", pad);
    const uint32_t axes = *yes ? rp_onnx_in(visit, i)->view->dims.rank - 2 : 0;
    *yes = *yes && (axes == 1 || axes == 2);
    const rp_err err = *yes ? read_pads(pad, first, last, yes) : RP_OK;
    if (err == RP_OK && *yes) {
        *yes = first[0] == 0 && last[0] == 0 && first[1] == 0 && last[1] == 0;
        before[0] = after[0] = 0; /* of a signal */
        memcpy(before + 2 - axes, first + 2, axes * sizeof *before);
        memcpy(after + 2 - axes, last + 2, axes * sizeof *after);
    }
    return err;
}

rp_err rp_onnx_layer_pad(const rp_onnx_visit *visit, bool *done) {
    *done = false;
    return rp_onnx_refuse_operands(visit,
                                   "only zeros around images that a convolution or an average "
                                   "pool reads can be trained here, as many on each side");
}

/* The shape with the zeros, so that a convolution can include them. */
rp_err rp_onnx_shape_pad(const rp_onnx_visit *visit, bool *done) {
    int64_t before[RP_ONNX_RANK_MAX];
    int64_t after[RP_ONNX_RANK_MAX];
    rp_onnx_dims dims;
    rp_err err;
    RP_TRY(read_pads(visit, before, after, done));
    if (*done) {
        dims = rp_onnx_in(visit, 0)->view->dims;
        for (uint32_t i = 0; i < dims.rank; i++) {
            *done =
                *done && !__builtin_add_overflow(dims.dim[i], before[i] + after[i], &dims.dim[i]);
        }
    }
    *done = *done && rp_onnx_dims_of(dims.rank, dims.dim, &dims);
    if (*done) {
        RP_TRY(rp_onnx_give_expression(visit, 0, rp_onnx_in(visit, 0)->whole, &dims));
    }
fail:
    return err;
}
