#include "onnx/constants.h"

rp_err rp_onnx_new_const(rp_onnx_graph *graph, bool whole, uint64_t count, int64_t **ints,
                         float **floats) {
    *ints = NULL;
    *floats = NULL;
    if (count > RP_ONNX_CONST_MAX || count > graph->budget) {
        return RP_OK;
    }
    graph->budget -= count;
    return whole ? RP_ARENA_NEW(graph->arena, count + 1, ints)
                 : RP_ARENA_NEW(graph->arena, count + 1, floats);
}

int64_t rp_onnx_int_of(const rp_onnx_graph *graph, const rp_onnx_view *view, uint64_t index) {
    const rp_onnx_source source = rp_onnx_view_source(view, index);
    return graph->value[source.leaf].ints[source.index];
}

float rp_onnx_float_of(const rp_onnx_graph *graph, const rp_onnx_view *view, uint64_t index) {
    const rp_onnx_source source = rp_onnx_view_source(view, index);
    return graph->value[source.leaf].floats[source.index];
}

/* floats: the elements of input `i`; NULL: it stays as it is. */
static rp_err set_const(const rp_onnx_visit *visit, uint32_t i, const float *floats) {
    rp_onnx_graph *graph = visit->graph;
    const rp_onnx_view *view;
    rp_err err = RP_OK;
    if (floats) {
        rp_onnx_value *in = &graph->value[visit->node->input[i]];
        RP_TRY(rp_onnx_view_leaf(graph->arena, visit->node->input[i], &in->view->dims, &view));
        in->state = RP_ONNX_CONST;
        in->floats = floats;
        in->view = view;
    }
fail:
    return err;
}

rp_err rp_onnx_make_const(const rp_onnx_visit *visit, uint32_t i) {
    const float *floats = NULL;
    uint64_t count;
    rp_err err = RP_OK;
    if (rp_onnx_in_is(visit, i, RP_ONNX_PARAM)) {
        RP_TRY(rp_onnx_const_floats(visit, i, &floats, &count));
        RP_TRY(set_const(visit, i, floats));
    }
fail:
    return err;
}

rp_err rp_onnx_fold_param(const rp_onnx_visit *visit, uint32_t i) {
    const float *floats;
    uint64_t count;
    rp_err err;
    RP_TRY(rp_onnx_folded_floats(visit, i, &floats, &count));
    RP_TRY(set_const(visit, i, floats));
fail:
    return err;
}

rp_err rp_onnx_give_arranged(const rp_onnx_visit *visit, uint32_t i, bool whole,
                             const rp_onnx_view *view, bool *done) {
    rp_onnx_graph *graph = visit->graph;
    int64_t *ints;
    float *floats;
    rp_err err;
    RP_TRY(rp_onnx_new_const(graph, whole, view->dims.count, &ints, &floats));
    *done = ints || floats;
    for (uint64_t k = 0; *done && k < view->dims.count; k++) {
        if (whole) {
            ints[k] = rp_onnx_int_of(graph, view, k);
        } else {
            floats[k] = rp_onnx_float_of(graph, view, k);
        }
    }
    if (*done) {
        RP_TRY(rp_onnx_give_const(visit, i, whole, &view->dims, ints, floats));
    }
fail:
    return err;
}
