#include "onnx/graph.h"
#include "onnx/signature.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "onnx/tensor.h"

enum {
    CONST_MAX = 1 << 22, /* elements of a constant that are copied */
    NAMED_STEPS = 4096
};

/* ---- attributes ------------------------------------------------------------------------------ */

const rp_onnx_attribute *rp_onnx_find(const rp_onnx_node *node, const char *name) {
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        if (strcmp(node->attribute[i].name, name) == 0) {
            return &node->attribute[i];
        }
    }
    return NULL;
}

int64_t rp_onnx_int(const rp_onnx_node *node, const char *name, int64_t usual) {
    const rp_onnx_attribute *found = rp_onnx_find(node, name);
    return found ? found->i : usual;
}

float rp_onnx_float(const rp_onnx_node *node, const char *name, float usual) {
    const rp_onnx_attribute *found = rp_onnx_find(node, name);
    return found ? found->f : usual;
}

const char *rp_onnx_text(const rp_onnx_node *node, const char *name, const char *usual) {
    const rp_onnx_attribute *found = rp_onnx_find(node, name);
    return found ? found->s : usual;
}

/* ---- inputs of a node ------------------------------------------------------------------------ */

const rp_onnx_value *rp_onnx_in(const rp_onnx_visit *visit, uint32_t i) {
    const rp_onnx_node *node = visit->node;
    const bool there = i < node->input_count && node->input[i] != RP_ONNX_NONE;
    return there ? &visit->graph->value[node->input[i]] : NULL;
}

bool rp_onnx_in_is(const rp_onnx_visit *visit, uint32_t i, rp_onnx_state state) {
    const rp_onnx_value *value = rp_onnx_in(visit, i);
    return value && value->state == state;
}

/* Visits views until the steps are used up. */
static bool has_named(const rp_onnx_graph *graph, const rp_onnx_view *view, uint32_t *steps) {
    bool named = *steps == 0 || (view->op == RP_ONNX_LEAF && graph->value[view->leaf].named);
    *steps -= *steps > 0;
    for (uint32_t i = 0; i < view->in_count && !named; i++) {
        named = has_named(graph, view->in[i], steps);
    }
    return named;
}

/* Whether an element may be that of an initialiser that the user or the file says is a parameter.
 */
static bool is_named(const rp_onnx_graph *graph, const rp_onnx_view *view) {
    uint32_t steps = NAMED_STEPS;
    return (graph->names || graph->model->signature) && has_named(graph, view, &steps);
}

/* Copies elements of initialisers; NULL if there are too many. */
static rp_err copy_floats(rp_onnx_graph *graph, const rp_onnx_view *view, const float **out) {
    const rp_onnx_model *model = graph->model;
    float *copy;
    *out = NULL;
    if (view->dims.count > CONST_MAX || view->dims.count > graph->budget) {
        return RP_OK;
    }
    graph->budget -= view->dims.count;
    const rp_err err = RP_ARENA_NEW(graph->arena, view->dims.count + 1, &copy);
    if (err != RP_OK) {
        return err;
    }
    for (uint64_t i = 0; i < view->dims.count; i++) {
        const rp_onnx_source source = rp_onnx_view_source(view, i);
        copy[i] = rp_onnx_float_at(&model->tensor[model->tensor_of[source.leaf]], source.index);
    }
    *out = copy;
    return RP_OK;
}

rp_err rp_onnx_const_ints(const rp_onnx_visit *visit, uint32_t i, const int64_t **out,
                          uint64_t *count) {
    const rp_onnx_value *value = rp_onnx_in(visit, i);
    *out = value && value->state == RP_ONNX_CONST && value->whole ? value->ints : NULL;
    *count = *out ? value->view->dims.count : 0;
    return RP_OK;
}

rp_err rp_onnx_folded_floats(const rp_onnx_visit *visit, uint32_t i, const float **out,
                             uint64_t *count) {
    rp_onnx_graph *graph = visit->graph;
    const rp_onnx_value *value = rp_onnx_in(visit, i);
    const bool param = value && value->state == RP_ONNX_PARAM;
    const bool kept = param && graph->names && is_named(graph, value->view);
    *out = NULL;
    const rp_err err = param && !kept ? copy_floats(graph, value->view, out) : RP_OK;
    *count = *out ? value->view->dims.count : 0;
    return err;
}

rp_err rp_onnx_const_floats(const rp_onnx_visit *visit, uint32_t i, const float **out,
                            uint64_t *count) {
    const rp_onnx_value *value = rp_onnx_in(visit, i);
    rp_err err = RP_OK;
    *out = NULL;
    if (value && value->state == RP_ONNX_CONST && !value->whole) {
        *out = value->floats;
    } else if (value && value->state == RP_ONNX_PARAM && !is_named(visit->graph, value->view)) {
        err = copy_floats(visit->graph, value->view, out);
    }
    *count = *out ? value->view->dims.count : 0;
    return err;
}

bool rp_onnx_number_of(const rp_onnx_graph *graph, const rp_onnx_value *value, float *out) {
    const rp_onnx_model *model = graph->model;
    if (!value || !value->view || value->view->dims.count != 1 || is_named(graph, value->view)) {
        return false;
    }
    if (value->state == RP_ONNX_PARAM) {
        const rp_onnx_source source = rp_onnx_view_source(value->view, 0);
        *out = rp_onnx_float_at(&model->tensor[model->tensor_of[source.leaf]], source.index);
    } else if (value->state == RP_ONNX_CONST) {
        *out = value->whole ? (float)value->ints[0] : value->floats[0];
    }
    return value->state == RP_ONNX_PARAM || value->state == RP_ONNX_CONST;
}

bool rp_onnx_const_number(const rp_onnx_visit *visit, uint32_t i, float *out) {
    return rp_onnx_number_of(visit->graph, rp_onnx_in(visit, i), out);
}

/* ---- outputs of a node ----------------------------------------------------------------------- */

static rp_onnx_value *out_of(const rp_onnx_visit *visit, uint32_t i) {
    const rp_onnx_node *node = visit->node;
    const bool there = i < node->output_count && node->output[i] != RP_ONNX_NONE;
    return there ? &visit->graph->value[node->output[i]] : NULL;
}

rp_err rp_onnx_give_const(const rp_onnx_visit *visit, uint32_t i, bool whole,
                          const rp_onnx_dims *dims, const int64_t *ints, const float *floats) {
    rp_onnx_value *out = out_of(visit, i);
    const rp_onnx_view *view = NULL;
    rp_err err = RP_OK;
    if (out) {
        err = rp_onnx_view_leaf(visit->graph->arena, visit->node->output[i], dims, &view);
        *out = (rp_onnx_value){.state = view ? RP_ONNX_CONST : RP_ONNX_UNKNOWN,
                               .whole = whole,
                               .view = view,
                               .node = visit->index,
                               .layer = RP_ONNX_NONE,
                               .ints = ints,
                               .floats = floats};
    }
    return err;
}

void rp_onnx_give_view(const rp_onnx_visit *visit, uint32_t i, rp_onnx_state state, bool whole,
                       const rp_onnx_view *view) {
    rp_onnx_value *out = out_of(visit, i);
    if (out) {
        *out = (rp_onnx_value){.state = state,
                               .whole = whole,
                               .view = view,
                               .node = visit->index,
                               .layer = RP_ONNX_NONE};
    }
}

rp_err rp_onnx_give_expression(const rp_onnx_visit *visit, uint32_t i, bool whole,
                               const rp_onnx_dims *dims) {
    const rp_onnx_view *view;
    const bool there = out_of(visit, i) != NULL;
    const rp_err err =
        there ? rp_onnx_view_leaf(visit->graph->arena, visit->node->output[i], dims, &view) : RP_OK;
    if (there && err == RP_OK) {
        rp_onnx_give_view(visit, i, RP_ONNX_DYNAMIC, whole, view);
    }
    return err;
}

/* The shape of a layer's output with the batch. */
static bool dims_of_layer(const rp_onnx_graph *graph, uint32_t layer, rp_onnx_dims *out) {
    const rp_shape *shape = &graph->layer[layer].out;
    int64_t dim[RP_DIMS_MAX + 1] = {graph->batch};
    for (uint32_t i = 0; i < shape->dims; i++) {
        dim[i + 1] = shape->dim[i];
    }
    return rp_onnx_dims_of(shape->dims + 1, dim, out);
}

rp_err rp_onnx_give_layer(const rp_onnx_visit *visit, uint32_t i, uint32_t layer) {
    rp_onnx_dims dims;
    rp_onnx_value *out = out_of(visit, i);
    rp_err err = RP_OK;
    if (out && dims_of_layer(visit->graph, layer, &dims)) {
        err = rp_onnx_give_expression(visit, i, visit->graph->layer[layer].ids, &dims);
        out->layer = layer;
    }
    return err;
}

rp_err rp_onnx_add_value(rp_onnx_graph *graph, uint32_t layer, const rp_onnx_view **out) {
    rp_onnx_dims dims;
    *out = NULL;
    if (graph->value_count == graph->value_room || !dims_of_layer(graph, layer, &dims)) {
        return RP_OK;
    }
    const rp_err err = rp_onnx_view_leaf(graph->arena, graph->value_count, &dims, out);
    if (err == RP_OK) {
        graph->value[graph->value_count++] = (rp_onnx_value){.state = RP_ONNX_DYNAMIC,
                                                             .view = *out,
                                                             .node = graph->layer[layer].node,
                                                             .layer = layer};
    }
    return err;
}

rp_err rp_onnx_refuse(const rp_onnx_visit *visit, const char *format, ...) {
    const char **why = &visit->graph->why[visit->index];
    char text[400];
    char *copy = NULL;
    va_list args;
    if (*why) {
        return RP_OK;
    }
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const rp_err err = rp_arena_string(visit->graph->arena, text, &copy);
    *why = copy;
    return err;
}

/* ---- the start ------------------------------------------------------------------------------- */

/* Whether the user's list, or without one that of torch.export, has the name as a parameter. */
static bool is_parameter(const rp_onnx_graph *graph, const char *name) {
    return graph->names ? rp_onnx_symbols_find(graph->names, name) != UINT32_MAX
                        : rp_onnx_is_listed(graph->model, "PARAMETER", name);
}

/* Integers are constants, floats may become parameters, and other types are not read. */
static rp_err state_initialiser(rp_onnx_graph *graph, uint32_t index) {
    const rp_onnx_tensor *tensor = &graph->model->tensor[index];
    const uint32_t value = graph->model->tensor_value[index];
    const bool whole = rp_onnx_type_is_whole(tensor->type);
    rp_onnx_dims dims;
    int64_t *ints = NULL;
    const rp_onnx_view *view;
    rp_err err = RP_OK;
    if (!tensor->data || !rp_onnx_dims_of(tensor->rank, tensor->dim, &dims) ||
        (whole && tensor->count > CONST_MAX)) {
        return RP_OK;
    }
    if (whole) {
        RP_TRY(RP_ARENA_NEW(graph->arena, tensor->count + 1, &ints));
        for (uint64_t i = 0; i < tensor->count; i++) {
            ints[i] = rp_onnx_whole_at(tensor, i);
        }
    }
    RP_TRY(rp_onnx_view_leaf(graph->arena, value, &dims, &view));
    graph->value[value] = (rp_onnx_value){.state = whole ? RP_ONNX_CONST : RP_ONNX_PARAM,
                                          .whole = whole,
                                          .named = !whole && is_parameter(graph, tensor->name),
                                          .view = view,
                                          .node = RP_ONNX_NONE,
                                          .layer = RP_ONNX_NONE,
                                          .ints = ints};
fail:
    return err;
}

/* The first layers stand for the inputs. */
static rp_err state_input(rp_onnx_graph *graph, uint32_t index, const rp_onnx_dims *given) {
    const uint32_t value = graph->model->input[index];
    const bool ids = rp_onnx_type_is_whole(graph->model->info[value].type);
    rp_onnx_dims dims = *given;
    rp_shape sample = {0};
    const rp_onnx_view *view;
    dims.dim[0] = dims.dim[0] < 0 ? graph->batch : dims.dim[0];
    if (dims.rank == 0 || dims.rank > RP_DIMS_MAX || !rp_onnx_dims_of(dims.rank, dims.dim, &dims)) {
        return RP_OK;
    }
    sample.dims = dims.rank - 1;
    for (uint32_t i = 0; i < sample.dims; i++) {
        sample.dim[i] = dims.dim[i + 1] <= UINT32_MAX ? (uint32_t)dims.dim[i + 1] : 0;
    }
    if (sample.dims == 0 || !rp_shape_check(&sample)) {
        return RP_OK;
    }
    const rp_err err = rp_onnx_view_leaf(graph->arena, value, &dims, &view);
    if (err == RP_OK) {
        graph->layer[index].out = sample;
        graph->layer[index].ids = ids;
        graph->value[value] = (rp_onnx_value){.state = RP_ONNX_DYNAMIC,
                                              .whole = ids,
                                              .view = view,
                                              .node = RP_ONNX_NONE,
                                              .layer = index};
    }
    return err;
}

rp_err rp_onnx_graph_init(rp_arena *arena, const rp_onnx_model *model, const rp_onnx_dims *inputs,
                          int64_t batch, uint64_t budget, const rp_onnx_symbols *names,
                          rp_onnx_findings *notes, rp_onnx_graph *out) {
    rp_err err;
    *out = (rp_onnx_graph){.arena = arena,
                           .model = model,
                           .batch = batch,
                           .value_count = model->value_count,
                           .value_room = model->value_count + 2 * model->node_count + 1,
                           .layer_count = model->input_count,
                           .layer_room = model->input_count + 1,
                           .budget = budget,
                           .names = names,
                           .notes = notes};
    RP_TRY(RP_ARENA_NEW(arena, out->value_room, &out->value));
    RP_TRY(RP_ARENA_NEW(arena, out->layer_room, &out->layer));
    RP_TRY(RP_ARENA_NEW(arena, model->node_count + 1, &out->why));
    RP_TRY(RP_ARENA_NEW(arena, model->node_count + 1, &out->refused));
    for (uint32_t i = 0; i < out->value_count; i++) {
        out->value[i] = (rp_onnx_value){.node = RP_ONNX_NONE, .layer = RP_ONNX_NONE};
    }
    for (uint32_t i = 0; i < model->tensor_count; i++) {
        RP_TRY(state_initialiser(out, i));
    }
    for (uint32_t i = 0; i < model->input_count; i++) {
        out->layer[i] =
            (rp_onnx_layer){.name = model->value[model->input[i]], .node = RP_ONNX_NONE};
        RP_TRY(state_input(out, i, &inputs[i]));
    }
fail:
    return err;
}
