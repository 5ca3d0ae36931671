#include "onnx/visit.h"

#include <string.h>

#include "onnx/constants.h"
#include "onnx/elementary.h"
#include "onnx/layers.h"
#include "onnx/names.h"
#include "onnx/ops.h"
#include "onnx/tensor.h"

/* ---- one node -------------------------------------------------------------------------------- */

/* What the inputs are. */
typedef struct {
    uint32_t unknown, params, dynamic;
} inputs;

static inputs count_inputs(const rp_onnx_visit *visit) {
    inputs sum = {0};
    for (uint32_t i = 0; i < visit->node->input_count; i++) {
        const rp_onnx_value *in = rp_onnx_in(visit, i);
        sum.unknown += in && in->state == RP_ONNX_UNKNOWN;
        sum.params += in && in->state == RP_ONNX_PARAM;
        sum.dynamic += in && in->state == RP_ONNX_DYNAMIC;
    }
    return sum;
}

/* Computes with initialisers as constants. They are constants for this node only: a layer that
 * reads one of them trains it, before or after this node. */
static rp_err fold_with_params(const rp_onnx_visit *visit, const rp_onnx_op *op, bool *done) {
    rp_onnx_graph *graph = visit->graph;
    const rp_onnx_node *node = visit->node;
    rp_onnx_value *before;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(graph->arena, (size_t)node->input_count + 1, &before));
    for (uint32_t i = 0; i < node->input_count; i++) {
        const rp_onnx_value *in = rp_onnx_in(visit, i);
        before[i] = in ? *in : (rp_onnx_value){.state = RP_ONNX_UNKNOWN};
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        RP_TRY(rp_onnx_fold_param(visit, i));
    }
    if (count_inputs(visit).params == 0) {
        RP_TRY(op->fold(visit, done));
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (rp_onnx_in(visit, i)) {
            graph->value[node->input[i]] = before[i];
        }
    }
fail:
    return err;
}

/* A weight with the name of a module that is only computed with is not trained. */
static rp_err note_folded(const rp_onnx_visit *visit) {
    for (uint32_t i = 0; i < visit->node->input_count; i++) {
        const char *name = rp_onnx_weight_name(visit->graph, rp_onnx_in(visit, i));
        if (name) {
            return rp_onnx_add_finding(visit->graph->notes, "assumed",
                                       "%s of %s is a constant there, because %s computes with it "
                                       "before a layer reads it",
                                       name, visit->node->name, visit->node->op);
        }
    }
    return RP_OK;
}

/* Constants, or parameters as such. */
static rp_err try_fold(const rp_onnx_visit *visit, const rp_onnx_op *op, bool *done) {
    rp_err err = RP_OK;
    if (op->fold && count_inputs(visit).params > 0) {
        RP_TRY(note_folded(visit));
        RP_TRY(fold_with_params(visit, op, done));
    } else if (op->fold) {
        RP_TRY(op->fold(visit, done));
    }
    if (!*done && !visit->graph->why[visit->index]) {
        RP_TRY(rp_onnx_refuse(visit, "it computes with weights before a layer, or with constants "
                                     "that are too large"));
    }
fail:
    return err;
}

static rp_err try_layer(const rp_onnx_visit *visit, const rp_onnx_op *op, bool *done) {
    rp_onnx_graph *graph = visit->graph;
    rp_err err = RP_OK;
    if (graph->elements == RP_ONNX_ELEMENTS_FIRST) {
        RP_TRY(rp_onnx_element(visit, done));
    }
    if (!*done && op->layer) {
        RP_TRY(op->layer(visit, done));
    }
    if (!*done && graph->elements == RP_ONNX_ELEMENTS_LAST) {
        const char *before = graph->why[visit->index];
        graph->why[visit->index] = NULL;
        RP_TRY(rp_onnx_element(visit, done));
        graph->why[visit->index] = graph->why[visit->index] ? graph->why[visit->index] : before;
    }
    if (!*done && !op->layer) {
        const char *reason = "this operator cannot be trained here";
        RP_TRY(rp_onnx_has_element(op->name) ? rp_onnx_refuse_operands(visit, reason)
                                             : rp_onnx_refuse(visit, "%s", reason));
    }
    if (*done) {
        graph->why[visit->index] = NULL;
        return RP_OK;
    }
    graph->refused[visit->index] = true;
    if (op->shape) {
        RP_TRY(op->shape(visit, done));
    }
fail:
    return err;
}

static rp_err visit_known(const rp_onnx_visit *visit, const rp_onnx_op *op, bool *done) {
    const inputs in = count_inputs(visit);
    rp_err err = RP_OK;
    if (!rp_onnx_has_inputs(visit->node, op)) {
        return rp_onnx_refuse(visit, "it has an unexpected number of inputs");
    }
    if (in.unknown > 0) {
        return RP_OK;
    }
    if (op->fold && in.params + in.dynamic == 0) {
        RP_TRY(op->fold(visit, done));
    }
    if (!*done && op->arrange) {
        RP_TRY(op->arrange(visit, done));
    }
    if (!*done && in.dynamic > 0) {
        if (op->arrange && !op->layer && !op->shape) {
            return rp_onnx_refuse_operands(visit,
                                           "this arrangement of elements cannot be followed");
        }
        RP_TRY(try_layer(visit, op, done));
    } else if (!*done) {
        RP_TRY(try_fold(visit, op, done));
    }
fail:
    return err;
}

/* A value of an unsupported node has the shape that the file states, so that later nodes can be
 * judged. */
static rp_err give_stated_shapes(const rp_onnx_visit *visit) {
    const rp_onnx_graph *graph = visit->graph;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < visit->node->output_count; i++) {
        const uint32_t value = visit->node->output[i];
        rp_onnx_dims dims;
        if (value == RP_ONNX_NONE || graph->value[value].state != RP_ONNX_UNKNOWN) {
            continue;
        }
        rp_onnx_info info = graph->model->info[value];
        if (info.shaped && info.rank > 0 && info.dim[0] < 0) {
            info.dim[0] = graph->batch;
        }
        if (info.shaped && rp_onnx_dims_of(info.rank, info.dim, &dims)) {
            RP_TRY(rp_onnx_give_expression(visit, i, rp_onnx_type_is_whole(info.type), &dims));
        }
    }
fail:
    return err;
}

static rp_err visit_node(rp_onnx_graph *graph, uint32_t index) {
    const rp_onnx_visit visit = {
        .graph = graph, .node = &graph->model->node[index], .index = index};
    const rp_onnx_node *node = visit.node;
    const rp_onnx_op *op = rp_onnx_op_of(node);
    bool done = false;
    rp_err err = RP_OK;
    graph->refused[index] = false;
    graph->why[index] = NULL;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->output[i] != RP_ONNX_NONE) {
            graph->value[node->output[i]].node = index;
        }
    }
    if (node->domain[0]) {
        RP_TRY(rp_onnx_refuse(&visit, "domain %.60s: only operators of ai.onnx can be read",
                              node->domain));
    } else if (node->has_graph) {
        RP_TRY(rp_onnx_refuse(&visit, "a node with a graph of its own cannot be trained here"));
    } else if (!op) {
        RP_TRY(rp_onnx_refuse(&visit, "this operator cannot be trained here"));
    } else {
        RP_TRY(visit_known(&visit, op, &done));
    }
    if (!done) {
        graph->refused[index] = true;
        RP_TRY(give_stated_shapes(&visit));
    }
fail:
    return err;
}

rp_err rp_onnx_visit_nodes(rp_onnx_graph *graph, bool no_fuse) {
    rp_err err = RP_OK;
    graph->elements = no_fuse ? RP_ONNX_ELEMENTS_FIRST : RP_ONNX_NO_ELEMENTS;
    graph->read_steps = no_fuse ? rp_onnx_element_steps : NULL;
    for (uint32_t i = 0; err == RP_OK && i < graph->model->node_count; i++) {
        err = visit_node(graph, i);
    }
    return err;
}

/* ---- what the output depends on -------------------------------------------------------------- */

/* Values and layers that are still to be looked at. */
typedef struct {
    rp_onnx_graph *graph;
    bool *seen; /* by value */
    uint32_t *value;
    uint32_t value_count;
    uint32_t *layer;
    uint32_t layer_count;
    bool *live_node; /* by node: the output depends on it, and no layer computes it */
} search;

static void want_value(search *s, uint32_t value) {
    if (!s->seen[value]) {
        s->seen[value] = true;
        s->value[s->value_count++] = value;
    }
}

static void want_layer(search *s, uint32_t layer) {
    if (!s->graph->layer[layer].live) {
        s->graph->layer[layer].live = true;
        s->layer[s->layer_count++] = layer;
    }
}

/* Each leaf of a value is a layer's output, or the node that gives it has to be looked at. */
static void follow_value(search *s, uint32_t value) {
    const rp_onnx_graph *graph = s->graph;
    const rp_onnx_value *v = &graph->value[value];
    const uint32_t leaf = v->view ? rp_onnx_view_only_leaf(v->view) : value;
    if (v->state == RP_ONNX_CONST || v->state == RP_ONNX_PARAM) {
        return;
    }
    if (leaf != RP_ONNX_NONE && graph->value[leaf].layer != RP_ONNX_NONE) {
        want_layer(s, graph->value[leaf].layer);
        return;
    }
    /* A value of several leaves: the inputs of its node are followed. */
    const uint32_t index = leaf != RP_ONNX_NONE ? graph->value[leaf].node : v->node;
    if (index == RP_ONNX_NONE) {
        return;
    }
    s->live_node[index] = true;
    if (v->state == RP_ONNX_UNKNOWN && !graph->refused[index]) {
        graph->why[index] = "one of its further outputs is used, which no layer gives here";
    }
    const rp_onnx_node *node = &graph->model->node[index];
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->input[i] != RP_ONNX_NONE) {
            want_value(s, node->input[i]);
        }
    }
}

static rp_err new_search(rp_onnx_graph *graph, search *s) {
    rp_err err;
    *s = (search){.graph = graph};
    RP_TRY(RP_ARENA_NEW(graph->arena, graph->value_count + 1, &s->seen));
    RP_TRY(RP_ARENA_NEW(graph->arena, graph->value_count + 1, &s->value));
    RP_TRY(RP_ARENA_NEW(graph->arena, graph->layer_count + 1, &s->layer));
    RP_TRY(RP_ARENA_NEW(graph->arena, graph->model->node_count + 1, &s->live_node));
fail:
    return err;
}

static rp_err add_findings(const search *s, rp_onnx_findings *findings) {
    const rp_onnx_graph *graph = s->graph;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < graph->model->node_count && err == RP_OK; i++) {
        const rp_onnx_node *node = &graph->model->node[i];
        const char *output = node->output_count > 0 && node->output[0] != RP_ONNX_NONE
                                 ? graph->model->value[node->output[0]]
                                 : "";
        if (s->live_node[i] && graph->why[i]) {
            err = rp_onnx_add_node_finding(findings, node->op, node->name, output, graph->why[i]);
        }
    }
    return err;
}

/* The output as a layer; a last arrangement of it becomes a layer of its own. */
static rp_err read_output(rp_onnx_graph *graph, uint32_t *layer, bool *done) {
    const uint32_t value = graph->model->output[0];
    uint32_t in = value;
    const rp_onnx_node end = {
        .name = "", .op = "output", .domain = "", .input_count = 1, .input = &in};
    const rp_onnx_visit visit = {.graph = graph, .node = &end, .index = graph->model->node_count};
    *done = false;
    return rp_onnx_read_input(&visit, 0, layer, done);
}

/* Follows the output. `layer` gives it; RP_ONNX_NONE: none does. */
static rp_err run_search(rp_onnx_graph *graph, search *s, uint32_t *layer, bool *done) {
    rp_err err;
    RP_TRY(read_output(graph, layer, done));
    RP_TRY(new_search(graph, s));
    if (*done) {
        want_layer(s, *layer);
    } else {
        *layer = RP_ONNX_NONE;
        want_value(s, graph->model->output[0]);
    }
    while (s->value_count + s->layer_count > 0) {
        if (s->layer_count > 0) {
            const rp_onnx_layer *at = &graph->layer[s->layer[--s->layer_count]];
            for (uint32_t i = 0; at->kind && i < at->from_count; i++) {
                want_layer(s, at->from[i]);
            }
        } else {
            follow_value(s, s->value[--s->value_count]);
        }
    }
fail:
    return err;
}

/* Whether the node arranges a value that has changed. Its own value then refers to the old one. */
static bool is_outdated(const rp_onnx_graph *graph, uint32_t index, const bool *changed) {
    const rp_onnx_node *node = &graph->model->node[index];
    const rp_onnx_op *op = rp_onnx_op_of(node);
    bool outdated = false;
    if (!op || !op->arrange || node->output_count == 0 || node->output[0] == RP_ONNX_NONE ||
        graph->value[node->output[0]].layer != RP_ONNX_NONE) {
        return false;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        outdated |= node->input[i] != RP_ONNX_NONE && changed[node->input[i]];
    }
    return outdated;
}

rp_err rp_onnx_visit_again(rp_onnx_graph *graph) {
    const rp_onnx_model *model = graph->model;
    search s;
    uint32_t layer;
    bool *changed; /* by value */
    bool done;
    rp_err err;
    if (model->output_count == 0) {
        return RP_OK;
    }
    RP_TRY(run_search(graph, &s, &layer, &done));
    graph->why[model->node_count] = NULL;
    graph->elements = RP_ONNX_ELEMENTS_LAST;
    graph->read_steps = rp_onnx_element_steps;
    for (uint32_t i = 0; i < graph->layer_count; i++) {
        graph->layer[i].live = false;
    }
    RP_TRY(RP_ARENA_NEW(graph->arena, graph->value_count + 1, &changed));
    for (uint32_t i = 0; i < model->node_count; i++) {
        if (!s.live_node[i] && !is_outdated(graph, i, changed)) {
            continue;
        }
        RP_TRY(visit_node(graph, i));
        for (uint32_t k = 0; k < model->node[i].output_count; k++) {
            if (model->node[i].output[k] != RP_ONNX_NONE) {
                changed[model->node[i].output[k]] = true;
            }
        }
    }
fail:
    return err;
}

rp_err rp_onnx_collect(rp_onnx_graph *graph, rp_onnx_findings *findings, uint32_t *layer) {
    const rp_onnx_model *model = graph->model;
    search s;
    bool done = false;
    rp_err err = RP_OK;
    *layer = RP_ONNX_NONE;
    if (model->output_count == 0) {
        return RP_OK;
    }
    RP_TRY(run_search(graph, &s, layer, &done));
    RP_TRY(add_findings(&s, findings));
    if (!done && graph->why[model->node_count]) {
        RP_TRY(rp_onnx_add_finding(findings, "output", "output %s: %s",
                                   model->value[model->output[0]], graph->why[model->node_count]));
    }
fail:
    return err;
}
