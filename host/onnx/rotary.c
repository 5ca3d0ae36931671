#include "onnx/rotary.h"

#include <math.h>
#include <string.h>

#include "onnx/constants.h"
#include "onnx/layers.h"

/* Whether both views have the same elements. Costs budget. */
static bool is_same(rp_onnx_graph *graph, const rp_onnx_view *a, const rp_onnx_view *b) {
    const uint64_t cost = a->dims.count * (a->depth + b->depth + 2);
    if (!rp_onnx_dims_equal(&a->dims, &b->dims) || cost > graph->budget) {
        return false;
    }
    graph->budget -= cost;
    for (uint64_t i = 0; i < a->dims.count; i++) {
        const rp_onnx_source x = rp_onnx_view_source(a, i);
        const rp_onnx_source y = rp_onnx_view_source(b, i);
        if (x.leaf != y.leaf || x.index != y.index) {
            return false;
        }
    }
    return true;
}

/* Whether input `i` of a node is (-x2, x1). */
static rp_err is_turned(const rp_onnx_visit *node, uint32_t i, const rp_onnx_view *x, bool *yes) {
    const int64_t half = x->dims.dim[3] / 2;
    rp_arena *arena = node->graph->arena;
    const rp_onnx_view *first;
    const rp_onnx_view *second;
    rp_onnx_visit joined;
    rp_onnx_visit negative;
    rp_err err = RP_OK;
    *yes = x->dims.dim[3] == 2 * half && rp_onnx_producer(node, i, "Concat", &joined) &&
           joined.node->input_count == 2 && rp_onnx_producer(&joined, 0, "Neg", &negative) &&
           rp_onnx_in_is(&negative, 0, RP_ONNX_DYNAMIC) &&
           rp_onnx_in_is(&joined, 1, RP_ONNX_DYNAMIC);
    if (!*yes) {
        return RP_OK;
    }
    const int64_t axis = rp_onnx_int(joined.node, "axis", 0);
    RP_TRY(rp_onnx_view_slice(arena, x, 3, 0, 1, half, &first));
    RP_TRY(rp_onnx_view_slice(arena, x, 3, half, 1, half, &second));
    *yes = (axis == -1 || axis == 3) && first && second &&
           is_same(node->graph, rp_onnx_in(&joined, 1)->view, first) &&
           is_same(node->graph, rp_onnx_in(&negative, 0)->view, second);
fail:
    return err;
}

/* ---- angles ---------------------------------------------------------------------------------- */

/* Whether a constant has a row of D numbers for each of T positions. */
static bool has_rows(const rp_onnx_value *value, const rp_onnx_dims *x) {
    const rp_onnx_dims *dims = value && value->view ? &value->view->dims : NULL;
    return dims && value->state == RP_ONNX_CONST && !value->whole && dims->rank >= 2 &&
           dims->rank <= 4 && dims->count > 0 && dims->dim[dims->rank - 1] == x->dim[3] &&
           dims->dim[dims->rank - 2] == x->dim[2];
}

static bool has_angles(const rp_onnx_value *value, const rp_onnx_dims *x, double base,
                       double (*function)(double)) {
    const uint64_t width = (uint64_t)x->dim[3];
    const uint64_t time = (uint64_t)x->dim[2];
    for (uint64_t i = 0; i < value->view->dims.count; i++) {
        const double place = (double)(i % width % (width / 2));
        const double position = (double)(i / width % time);
        const double angle = position * pow(base, -2.0 * place / (double)width);
        if (!(fabs((double)value->floats[i] - function(angle)) <= 1e-4)) {
            return false;
        }
    }
    return true;
}

/* The base whose angles the constants are; 0: there is no such base. The slowest angle says it. */
static double find_base(const rp_onnx_value *cosines, const rp_onnx_value *sines,
                        const rp_onnx_dims *x) {
    const int64_t half = x->dim[3] / 2;
    if (!has_rows(cosines, x) || !has_rows(sines, x) || half < 2 || x->dim[2] < 2) {
        return 0.0;
    }
    const uint64_t at = (uint64_t)(x->dim[3] + half - 1);
    const double angle = atan2((double)sines->floats[at], (double)cosines->floats[at]);
    const double found = angle > 0.0 ? pow(angle, -(double)half / (double)(half - 1)) : 0.0;
    const double step = found > 0.0 ? pow(10.0, floor(log10(found)) - 3.0) : 1.0;
    const double base = round(found / step) * step; /* four digits */
    return base > 1.0 && has_angles(cosines, x, base, cos) && has_angles(sines, x, base, sin) ? base
                                                                                              : 0.0;
}

/* ---- the pattern ----------------------------------------------------------------------------- */

/* Input `i` of the sum is x cos(a); the other input is rotate(x) sin(a). */
static rp_err match_sum(const rp_onnx_visit *sum, uint32_t i, rp_onnx_rotary *out,
                        const rp_onnx_view **x) {
    rp_onnx_visit straight;
    rp_onnx_visit crossed;
    rp_err err = RP_OK;
    if (!rp_onnx_producer(sum, i, "Mul", &straight) ||
        !rp_onnx_producer(sum, 1 - i, "Mul", &crossed)) {
        return RP_OK;
    }
    const uint32_t a = rp_onnx_in_is(&straight, 0, RP_ONNX_DYNAMIC) ? 0 : 1;
    const uint32_t b = rp_onnx_in_is(&crossed, 0, RP_ONNX_DYNAMIC) ? 0 : 1;
    const rp_onnx_value *in = rp_onnx_in(&straight, a);
    bool turned;
    if (!in || in->state != RP_ONNX_DYNAMIC || in->view->dims.rank != 4) {
        return RP_OK;
    }
    RP_TRY(is_turned(&crossed, b, in->view, &turned));
    if (turned) { /* tables that are initialisers are no parameters */
        RP_TRY(rp_onnx_make_const(&straight, 1 - a));
        RP_TRY(rp_onnx_make_const(&crossed, 1 - b));
        out->base =
            find_base(rp_onnx_in(&straight, 1 - a), rp_onnx_in(&crossed, 1 - b), &in->view->dims);
        *x = out->base > 0.0 ? in->view : *x;
    }
fail:
    return err;
}

rp_err rp_onnx_find_rotary(const rp_onnx_visit *visit, const rp_onnx_view *view,
                           rp_onnx_rotary *out, const rp_onnx_view **x) {
    const rp_onnx_graph *graph = visit->graph;
    const uint32_t leaf = rp_onnx_view_only_leaf(view);
    rp_err err = RP_OK;
    *out = (rp_onnx_rotary){0};
    *x = view;
    if (leaf == RP_ONNX_NONE || graph->value[leaf].node == RP_ONNX_NONE ||
        !rp_onnx_dims_equal(&graph->value[leaf].view->dims, &view->dims) ||
        strcmp(graph->model->node[graph->value[leaf].node].op, "Add") != 0 ||
        !rp_onnx_view_is_whole(view, view->dims.count)) {
        return RP_OK;
    }
    const rp_onnx_visit sum = {.graph = visit->graph,
                               .node = &graph->model->node[graph->value[leaf].node],
                               .index = graph->value[leaf].node};
    for (uint32_t i = 0; i < 2 && out->base == 0.0; i++) {
        RP_TRY(match_sum(&sum, i, out, x));
    }
fail:
    return err;
}
