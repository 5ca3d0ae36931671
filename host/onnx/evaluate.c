#include "onnx/evaluate.h"

#include <math.h>
#include <string.h>

#include "onnx/ops.h"
#include "onnx/tensor.h"

enum { DEPTH_MAX = 64 };

static double value_at(rp_onnx_evaluation *e, const rp_onnx_view *view, uint64_t index,
                       uint32_t depth);

static double fail(rp_onnx_evaluation *e) {
    e->good = false;
    return 0.0;
}

/* The element of an input that element `index` of the node's output reads, by NumPy's rule. */
static uint64_t spread_index(const rp_onnx_dims *out, const rp_onnx_dims *in, uint64_t index) {
    uint64_t at = 0;
    uint64_t stride = 1;
    for (uint32_t i = 0; i < out->rank; i++) {
        const uint64_t place = index % (uint64_t)out->dim[out->rank - 1 - i];
        index /= (uint64_t)out->dim[out->rank - 1 - i];
        if (i < in->rank) {
            const uint64_t size = (uint64_t)in->dim[in->rank - 1 - i];
            at += (size == 1 ? 0 : place) * stride;
            stride *= size;
        }
    }
    return at;
}

/* Input `i` of a node for element `index` of its output. */
static double input_at(rp_onnx_evaluation *e, const rp_onnx_visit *node, uint32_t i,
                       const rp_onnx_dims *out, uint64_t index, uint32_t depth) {
    const rp_onnx_value *in = rp_onnx_in(node, i);
    rp_onnx_dims common;
    if (!in || !in->view || in->view->dims.rank > out->rank || in->view->dims.count == 0 ||
        !rp_onnx_dims_broadcast(&in->view->dims, out, &common) ||
        !rp_onnx_dims_equal(&common, out)) {
        return fail(e);
    }
    return value_at(e, in->view, spread_index(out, &in->view->dims, index), depth);
}

static double binary(rp_onnx_evaluation *e, const char *op, double a, double b) {
    static const char *const names[] = {
        "And", "Or",  "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual",
        "Add", "Sub", "Mul",   "Min",  "Max"};
    const double results[] = {a != 0.0 && b != 0.0,
                              a != 0.0 || b != 0.0,
                              a == b,
                              a<b, a>
                                  b,
                              a <= b,
                              a >= b,
                              a + b,
                              a - b,
                              a * b,
                              fmin(a, b),
                              fmax(a, b)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(op, names[i]) == 0) {
            return results[i];
        }
    }
    return fail(e);
}

static double unary(rp_onnx_evaluation *e, const rp_onnx_node *node, double a) {
    const int64_t to = rp_onnx_int(node, "to", 0);
    if (strcmp(node->op, "Not") == 0) {
        return a == 0.0;
    }
    if (strcmp(node->op, "Neg") == 0) {
        return -a;
    }
    if (strcmp(node->op, "Cast") != 0) {
        return fail(e);
    }
    return to == RP_ONNX_BOOL                            ? a != 0.0
           : to == RP_ONNX_FLOAT || to == RP_ONNX_DOUBLE ? a
                                                         : trunc(a);
}

/* A cast to the type of input 1. */
static double cast_like(const rp_onnx_visit *node, double a) {
    const rp_onnx_value *like = rp_onnx_in(node, 1);
    return like && like->whole ? trunc(a) : a;
}

/* A row of the data that a constant index chooses. */
static double gathered_nd(rp_onnx_evaluation *e, const rp_onnx_visit *node, uint64_t index,
                          uint32_t depth) {
    const rp_onnx_value *data = rp_onnx_in(node, 0);
    const rp_onnx_value *at = rp_onnx_in(node, 1);
    uint64_t source;
    if (!data || !data->view || !at || at->state != RP_ONNX_CONST || !at->whole ||
        !rp_onnx_find_row(&data->view->dims, at, index, &source)) {
        return fail(e);
    }
    return value_at(e, data->view, source, depth);
}

static double node_at(rp_onnx_evaluation *e, uint32_t number, const rp_onnx_dims *out,
                      uint64_t index, uint32_t depth) {
    const rp_onnx_visit node = {
        .graph = e->graph, .node = &e->graph->model->node[number], .index = number};
    const char *op = node.node->op;
    if (!rp_onnx_is_standard(node.node)) {
        return fail(e);
    }
    if (strcmp(op, "GatherND") == 0) {
        return gathered_nd(e, &node, index, depth);
    }
    if (strcmp(op, "CastLike") == 0) {
        return cast_like(&node, input_at(e, &node, 0, out, index, depth));
    }
    if (node.node->input_count == 1) {
        return unary(e, node.node, input_at(e, &node, 0, out, index, depth));
    }
    if (node.node->input_count == 2) {
        return binary(e, op, input_at(e, &node, 0, out, index, depth),
                      input_at(e, &node, 1, out, index, depth));
    }
    if (strcmp(op, "Where") == 0 && node.node->input_count == 3) {
        const bool first = input_at(e, &node, 0, out, index, depth) != 0.0;
        return input_at(e, &node, first ? 1 : 2, out, index, depth);
    }
    return fail(e);
}

/* A whole number of an input. */
static double id_at(rp_onnx_evaluation *e, uint32_t layer, uint64_t index) {
    if (e->input != RP_ONNX_NONE && e->input != layer) {
        return fail(e);
    }
    e->input = layer;
    return (double)e->id(e->seed, index);
}

static double value_at(rp_onnx_evaluation *e, const rp_onnx_view *view, uint64_t index,
                       uint32_t depth) {
    if (!e->good || depth == 0 || e->steps >= e->graph->budget) {
        return fail(e);
    }
    e->steps += 1 + view->depth;
    const rp_onnx_source source = rp_onnx_view_source(view, index);
    const rp_onnx_value *leaf = &e->graph->value[source.leaf];
    if (leaf->state == RP_ONNX_CONST) {
        return leaf->whole ? (double)leaf->ints[source.index] : (double)leaf->floats[source.index];
    }
    if (leaf->state == RP_ONNX_PARAM) {
        const rp_onnx_model *model = e->graph->model;
        return (double)rp_onnx_float_at(&model->tensor[model->tensor_of[source.leaf]],
                                        source.index);
    }
    if (leaf->state != RP_ONNX_DYNAMIC) {
        return fail(e);
    }
    if (leaf->layer != RP_ONNX_NONE) {
        return leaf->layer < e->graph->model->input_count && leaf->whole
                   ? id_at(e, leaf->layer, source.index)
                   : fail(e);
    }
    return leaf->node != RP_ONNX_NONE
               ? node_at(e, leaf->node, &leaf->view->dims, source.index, depth - 1)
               : fail(e);
}

double rp_onnx_evaluate(rp_onnx_evaluation *e, const rp_onnx_view *view, uint64_t index) {
    return value_at(e, view, index, DEPTH_MAX);
}
