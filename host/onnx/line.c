#include "onnx/line.h"

#include <inttypes.h>

#include "onnx/layers.h"

/* The value whose elements the view has in their order; RP_ONNX_NONE: it moves some. */
static uint32_t find_leaf(const rp_onnx_view *view) {
    while (view->op == RP_ONNX_RESHAPE) {
        view = view->in[0];
    }
    return view->op == RP_ONNX_LEAF ? view->leaf : RP_ONNX_NONE;
}

uint32_t rp_onnx_line_layer(const rp_onnx_graph *graph, const rp_onnx_view *view) {
    const rp_onnx_dims *dims = &view->dims;
    const uint32_t leaf = dims->rank == 3 ? find_leaf(view) : RP_ONNX_NONE;
    const uint32_t layer = leaf == RP_ONNX_NONE ? RP_ONNX_NONE : graph->value[leaf].layer;
    if (layer == RP_ONNX_NONE) {
        return RP_ONNX_NONE;
    }
    const rp_shape *out = &graph->layer[layer].out;
    const bool same = out->dims == 3 && out->dim[1] == 1 && dims->dim[0] == graph->batch &&
                      dims->dim[1] == out->dim[0] && dims->dim[2] == out->dim[2];
    return same ? layer : RP_ONNX_NONE;
}

bool rp_onnx_is_line(const rp_onnx_visit *visit, uint32_t i) {
    const rp_onnx_value *in = rp_onnx_in(visit, i);
    return in && in->state == RP_ONNX_DYNAMIC &&
           rp_onnx_line_layer(visit->graph, in->view) != RP_ONNX_NONE;
}

rp_err rp_onnx_read_line(const rp_onnx_visit *visit, uint32_t i, uint32_t *from, bool *done) {
    const rp_onnx_value *in = rp_onnx_in(visit, i);
    rp_onnx_layer draft;
    rp_err err = RP_OK;
    *done = false;
    if (!in || in->state != RP_ONNX_DYNAMIC || in->view->dims.rank != 3) {
        return RP_OK;
    }
    *from = rp_onnx_line_layer(visit->graph, in->view);
    *done = *from != RP_ONNX_NONE;
    if (!*done) {
        const int64_t *dim = in->view->dims.dim;
        RP_TRY(rp_onnx_read_input(visit, i, from, done));
        if (*done) {
            RP_TRY(rp_onnx_draft(visit, "reshape", *from, &draft,
                                 "shape: [%" PRId64 ", 1, %" PRId64 "]", dim[1], dim[2]));
            RP_TRY(rp_onnx_emit(visit, &draft, from, done));
        }
    }
fail:
    return err;
}

rp_err rp_onnx_emit_line(const rp_onnx_visit *visit, const rp_onnx_layer *draft, bool *done) {
    rp_onnx_graph *graph = visit->graph;
    const rp_onnx_view *view;
    rp_onnx_dims dims;
    uint32_t layer;
    rp_err err;
    RP_TRY(rp_onnx_emit(visit, draft, &layer, done));
    if (!*done) {
        return RP_OK;
    }
    const rp_shape *out = &graph->layer[layer].out;
    RP_ASSERT(out->dims == 3 && out->dim[1] == 1);
    const int64_t dim[3] = {graph->batch, out->dim[0], out->dim[2]};
    RP_TRY(rp_onnx_add_value(graph, layer, &view));
    if (view && rp_onnx_dims_of(3, dim, &dims)) {
        RP_TRY(rp_onnx_view_reshape(graph->arena, view, &dims, &view));
    }
    *done = view != NULL;
    if (*done) {
        rp_onnx_give_view(visit, 0, RP_ONNX_DYNAMIC, false, view);
    }
fail:
    return err;
}
