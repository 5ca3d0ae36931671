#include "onnx/layers.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "onnx/ops.h"
#include "onnx/tensor.h"

/* ---- a layer --------------------------------------------------------------------------------- */

rp_err rp_onnx_draft(const rp_onnx_visit *visit, const char *kind, uint32_t from,
                     rp_onnx_layer *out, const char *keys, ...) {
    char text[400];
    char *copy;
    va_list args;
    va_start(args, keys);
    (void)vsnprintf(text, sizeof text, keys, args);
    va_end(args);
    const rp_err err = rp_arena_string(visit->graph->arena, text, &copy);
    if (err == RP_OK) {
        *out = (rp_onnx_layer){
            .kind = kind, .keys = copy, .from_count = 1, .from = {from}, .node = visit->index};
    }
    return err;
}

void rp_onnx_draft_param(rp_onnx_layer *draft, const char *suffix, const rp_onnx_view *view) {
    RP_ASSERT(draft->param_count < RP_LAYER_PARAMS_MAX);
    draft->param[draft->param_count++] = (rp_onnx_param){.suffix = suffix, .view = view};
}

static rp_onnx_param *find_param(rp_onnx_layer *draft, const char *suffix) {
    for (uint32_t i = 0; i < draft->param_count; i++) {
        if (strcmp(draft->param[i].suffix, suffix) == 0) {
            return &draft->param[i];
        }
    }
    return NULL;
}

/* Every tensor of the planned layer has its elements, and no other tensor is given. */
static bool check_params(const rp_layer_plan *plan, rp_onnx_layer *draft, const char **problem) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < plan->param_count; i++) {
        const rp_param *param = &plan->param[i];
        if (param->role == RP_PARAM_SCRATCH) {
            continue;
        }
        rp_onnx_param *given = find_param(draft, param->suffix);
        if (!given || given->view->dims.count != rp_shape_count(&param->shape)) {
            *problem = param->suffix;
            return false;
        }
        given->shape = param->shape;
        found++;
    }
    *problem = draft->param_count > 0 ? draft->param[0].suffix : "";
    return found == draft->param_count;
}

/* Parses the keys and plans the layer, as for a model file. The message is kept, not logged. */
static rp_err plan_draft(const rp_onnx_visit *visit, const rp_onnx_layer *draft,
                         rp_layer_plan *plan) {
    static const rp_model_data nothing = {0};
    const rp_onnx_graph *graph = visit->graph;
    rp_layer layer = {.kind = rp_layer_find(draft->kind),
                      .name = visit->node->name,
                      .input_count = draft->from_count};
    rp_shape in[RP_LAYER_INPUTS_MAX];
    char *text;
    rp_node *keys;
    rp_err err;
    RP_ASSERT(layer.kind);
    for (uint32_t i = 0; i < draft->from_count; i++) {
        in[i] = graph->layer[draft->from[i]].out;
    }
    layer.reads_ids = draft->from_count > 0 && graph->layer[draft->from[0]].ids;
    RP_TRY(rp_arena_printf(graph->arena, &text, "{%s}", draft->keys));
    RP_TRY(rp_config_read_text(graph->arena, text, strlen(text), visit->node->op, &keys));
    RP_TRY(rp_arena_alloc(graph->arena, 1, layer.kind->spec_bytes + 1, &layer.spec));
    RP_TRY(layer.kind->parse(&layer, keys, &nothing));
    RP_TRY(rp_layer_make_plan(&layer, in, plan));
    for (uint32_t i = 0; i < draft->from_count; i++) {
        if (rp_layer_takes_ids(plan, i) != graph->layer[draft->from[i]].ids) {
            return rp_fail(RP_ERR_SHAPE, "%s computes with %s", draft->kind,
                           graph->layer[draft->from[i]].ids ? "token ids"
                                                            : "numbers, not with ids");
        }
    }
    if (plan->out.dims >= RP_DIMS_MAX || !rp_shape_check(&plan->out)) {
        return rp_fail(RP_ERR_SHAPE, "its output is too large");
    }
fail:
    return err;
}

static bool same_layer(const rp_onnx_layer *a, const rp_onnx_layer *b) {
    return a->kind && strcmp(a->kind, b->kind) == 0 && strcmp(a->keys, b->keys) == 0 &&
           a->from_count == b->from_count &&
           memcmp(a->from, b->from, a->from_count * sizeof *a->from) == 0;
}

/* An earlier layer that computes the same without parameters; layers that draw are all different.
 */
static uint32_t find_same(const rp_onnx_graph *graph, const rp_onnx_layer *draft) {
    const bool draws = strcmp(draft->kind, "dropout") == 0 ||
                       strcmp(draft->kind, "droppath") == 0 ||
                       strcmp(draft->kind, "attention") == 0;
    for (uint32_t i = draws || draft->param_count > 0 ? graph->layer_count : 0;
         i < graph->layer_count; i++) {
        if (graph->layer[i].param_count == 0 && same_layer(&graph->layer[i], draft)) {
            return i;
        }
    }
    return RP_ONNX_NONE;
}

/* Adds a layer; the list may move. */
static rp_err add_layer(rp_onnx_graph *graph, const rp_onnx_layer *layer) {
    rp_onnx_layer *grown;
    if (graph->layer_count == graph->layer_room) {
        const uint32_t room = 2 * graph->layer_room + 16;
        const rp_err err = RP_ARENA_NEW(graph->arena, room, &grown);
        if (err != RP_OK) {
            return err;
        }
        memcpy(grown, graph->layer, graph->layer_count * sizeof *grown);
        graph->layer = grown;
        graph->layer_room = room;
    }
    graph->layer[graph->layer_count++] = *layer;
    return RP_OK;
}

/* Refuses the node for the kind's reason, which is in the kept message. */
static rp_err refuse_kind(const rp_onnx_visit *visit, rp_err err) {
    return err == RP_ERR_MEMORY ? err : rp_onnx_refuse(visit, "%s", rp_err_message());
}

rp_err rp_onnx_emit(const rp_onnx_visit *visit, const rp_onnx_layer *draft, uint32_t *layer,
                    bool *done) {
    rp_onnx_graph *graph = visit->graph;
    rp_onnx_layer new = *draft;
    rp_layer_plan plan;
    const char *problem;
    *done = false;
    const bool held = rp_err_hold(true);
    const rp_err err = plan_draft(visit, draft, &plan);
    (void)rp_err_hold(held);
    if (err != RP_OK) {
        return refuse_kind(visit, err);
    }
    if (!check_params(&plan, &new, &problem)) {
        return rp_onnx_refuse(visit, "%s %s has another number of elements than the layer's %s",
                              draft->kind, problem, problem);
    }
    *layer = find_same(graph, draft);
    *done = *layer != RP_ONNX_NONE;
    if (!*done && graph->layer_count == RP_ONNX_LAYERS_MAX) {
        return rp_onnx_refuse(visit, "the net has more than %d layers", RP_ONNX_LAYERS_MAX);
    }
    if (!*done) {
        new.out = plan.out;
        new.ids = plan.gives_ids;
        *layer = graph->layer_count;
        *done = true;
        return add_layer(graph, &new);
    }
    return RP_OK;
}

rp_err rp_onnx_emit_output(const rp_onnx_visit *visit, const rp_onnx_layer *draft, bool *done) {
    uint32_t layer;
    rp_err err;
    RP_TRY(rp_onnx_emit(visit, draft, &layer, done));
    if (*done) {
        RP_TRY(rp_onnx_give_layer(visit, 0, layer));
    }
fail:
    return err;
}

/* ---- a value as the output of a layer -------------------------------------------------------- */

/* Where element `index` of a sample is in a leaf with this sample shape. */
typedef uint64_t wanted_map(const rp_onnx_dims *view, const rp_onnx_dims *leaf, uint32_t axis,
                            int64_t start, uint64_t index);

static uint64_t map_same(const rp_onnx_dims *view, const rp_onnx_dims *leaf, uint32_t axis,
                         int64_t start, uint64_t index) {
    (void)view;
    (void)leaf;
    (void)axis;
    (void)start;
    return index;
}

/* [N, P, C] of an image [N, C, H, W], P = H W. */
static uint64_t map_sequence(const rp_onnx_dims *view, const rp_onnx_dims *leaf, uint32_t axis,
                             int64_t start, uint64_t index) {
    const uint64_t channels = (uint64_t)leaf->dim[1];
    const uint64_t pixels = (uint64_t)(leaf->dim[2] * leaf->dim[3]);
    const uint64_t sample = index / (channels * pixels);
    const uint64_t pixel = index / channels % pixels;
    (void)view;
    (void)axis;
    (void)start;
    return (sample * channels + index % channels) * pixels + pixel;
}

/* A part of one axis: from `start` on, as many as the view has, or one if it has no such axis. */
static uint64_t map_slice(const rp_onnx_dims *view, const rp_onnx_dims *leaf, uint32_t axis,
                          int64_t start, uint64_t index) {
    const uint64_t kept = view->rank == leaf->rank ? (uint64_t)view->dim[axis] : 1;
    uint64_t inner = 1;
    for (uint32_t i = axis + 1; i < leaf->rank; i++) {
        inner *= (uint64_t)leaf->dim[i];
    }
    const uint64_t outer = index / inner / kept;
    const uint64_t at = index / inner % kept + (uint64_t)start;
    return (outer * (uint64_t)leaf->dim[axis] + at) * inner + index % inner;
}

/* Whether the whole view is that map of its leaf. Costs budget. */
static bool is_map(rp_onnx_graph *graph, const rp_onnx_view *view, const rp_onnx_dims *leaf,
                   wanted_map *wanted, uint32_t axis, int64_t start) {
    const uint64_t cost = view->dims.count * (view->depth + 1);
    const bool in_order = view->op == RP_ONNX_LEAF ||
                          (view->op == RP_ONNX_RESHAPE && view->in[0]->op == RP_ONNX_LEAF);
    if (in_order && wanted == map_same) {
        return true;
    }
    if (cost > graph->budget) {
        return false;
    }
    graph->budget -= cost;
    for (uint64_t i = 0; i < view->dims.count; i++) {
        if (rp_onnx_view_source(view, i).index != wanted(&view->dims, leaf, axis, start, i)) {
            return false;
        }
    }
    return true;
}

/* The axis that the view has a part of, if it has all of every other axis. */
static bool find_part(const rp_onnx_view *view, const rp_onnx_dims *leaf, uint32_t *axis,
                      int64_t *start) {
    const rp_onnx_dims *dims = &view->dims;
    uint32_t differ = 0;
    if (dims->rank != leaf->rank) {
        return false;
    }
    for (uint32_t i = 0; i < leaf->rank; i++) {
        if (dims->dim[i] != leaf->dim[i]) {
            *axis = i;
            differ++;
        }
    }
    if (differ != 1 || *axis == 0) {
        return false;
    }
    uint64_t inner = 1;
    for (uint32_t i = *axis + 1; i < leaf->rank; i++) {
        inner *= (uint64_t)leaf->dim[i];
    }
    *start = (int64_t)(rp_onnx_view_source(view, 0).index / inner % (uint64_t)leaf->dim[*axis]);
    return true;
}

/* A layer that arranges `from` like the view, as a draft; kind NULL: no layer does. */
static rp_err draft_arrangement(const rp_onnx_visit *visit, const rp_onnx_view *view,
                                const rp_onnx_dims *leaf, uint32_t from, rp_onnx_layer *draft) {
    rp_onnx_graph *graph = visit->graph;
    const rp_onnx_dims *dims = &view->dims;
    uint32_t axis = 0;
    int64_t start = 0;
    draft->kind = NULL;
    if (dims->rank == 2 && dims->count == leaf->count &&
        is_map(graph, view, leaf, map_same, 0, 0)) {
        return rp_onnx_draft(visit, "flatten", from, draft, "%s", "");
    }
    if (dims->rank == 3 && leaf->rank == 4 && dims->count == leaf->count &&
        dims->dim[2] == leaf->dim[1] && is_map(graph, view, leaf, map_sequence, 0, 0)) {
        return rp_onnx_draft(visit, "sequence", from, draft, "%s", "");
    }
    if (find_part(view, leaf, &axis, &start) && is_map(graph, view, leaf, map_slice, axis, start)) {
        return rp_onnx_draft(visit, "slice", from, draft, "axis: %u, start: %lld, end: %lld",
                             axis - 1, (long long)start, (long long)(start + dims->dim[axis]));
    }
    if (dims->rank == 2 && leaf->rank == 3 && dims->dim[1] == leaf->dim[2]) {
        const bool first = is_map(graph, view, leaf, map_slice, 1, 0);
        if (first || is_map(graph, view, leaf, map_slice, 1, leaf->dim[1] - 1)) {
            return rp_onnx_draft(visit, "seqpool", from, draft, "mode: %s",
                                 first ? "first" : "last");
        }
    }
    return RP_OK;
}

static bool is_shape_of(const rp_onnx_dims *dims, const rp_shape *sample) {
    bool same = dims->rank == sample->dims + 1;
    for (uint32_t i = 0; same && i < sample->dims; i++) {
        same = dims->dim[i + 1] == sample->dim[i];
    }
    return same;
}

static rp_err refuse_arrangement(const rp_onnx_visit *visit, const rp_onnx_view *view,
                                 const rp_onnx_dims *leaf) {
    char a[RP_ONNX_SHAPE_TEXT];
    char b[RP_ONNX_SHAPE_TEXT];
    return rp_onnx_refuse(visit, "it reads %s arranged as %s, which no layer does here",
                          rp_onnx_shape_text(leaf->rank, leaf->dim, a),
                          rp_onnx_shape_text(view->dims.rank, view->dims.dim, b));
}

/* The value that has all elements of the view. Costs budget where the view is a part of a
 * concatenation. RP_ONNX_NONE: several values have them. */
static uint32_t find_leaf(rp_onnx_graph *graph, const rp_onnx_view *view) {
    const uint64_t cost = view->dims.count * (view->depth + 1);
    uint32_t leaf = rp_onnx_view_only_leaf(view);
    if (leaf != RP_ONNX_NONE || view->dims.count == 0 || cost > graph->budget) {
        return leaf;
    }
    graph->budget -= cost;
    leaf = rp_onnx_view_source(view, 0).leaf;
    for (uint64_t i = 1; i < view->dims.count && leaf != RP_ONNX_NONE; i++) {
        leaf = rp_onnx_view_source(view, i).leaf == leaf ? leaf : RP_ONNX_NONE;
    }
    return leaf;
}

/* An arranging layer stands for `node`. */
static rp_err read_arranged(const rp_onnx_visit *visit, const rp_onnx_view *view, uint32_t node,
                            uint32_t *layer, bool *done) {
    rp_onnx_graph *graph = visit->graph;
    const uint32_t value = find_leaf(graph, view);
    rp_onnx_layer draft = {0};
    rp_err err = RP_OK;
    *done = false;
    if (value == RP_ONNX_NONE) {
        return rp_onnx_refuse(visit,
                              "it reads a concatenation along the batch, or before it, which "
                              "no layer computes");
    }
    if (graph->value[value].layer == RP_ONNX_NONE || view->dims.count == 0) {
        return RP_OK;
    }
    const rp_onnx_dims *leaf = &graph->value[value].view->dims;
    *layer = graph->value[value].layer;
    if (view->dims.rank == 0 || view->dims.dim[0] != graph->batch) {
        return refuse_arrangement(visit, view, leaf);
    }
    *done = is_shape_of(&view->dims, &graph->layer[*layer].out) &&
            is_map(graph, view, leaf, map_same, 0, 0);
    if (*done) {
        return RP_OK;
    }
    RP_TRY(draft_arrangement(visit, view, leaf, *layer, &draft));
    if (!draft.kind && graph->read_steps && rp_onnx_view_only_leaf(view) != RP_ONNX_NONE) {
        return graph->read_steps(visit, view, layer, done);
    }
    if (!draft.kind) {
        return refuse_arrangement(visit, view, leaf);
    }
    draft.node = node;
    RP_TRY(rp_onnx_emit(visit, &draft, layer, done));
fail:
    return err;
}

rp_err rp_onnx_read_layer(const rp_onnx_visit *visit, const rp_onnx_view *view, uint32_t *layer,
                          bool *done) {
    return read_arranged(visit, view, visit->index, layer, done);
}

rp_err rp_onnx_read_input(const rp_onnx_visit *visit, uint32_t i, uint32_t *layer, bool *done) {
    const rp_onnx_value *in = rp_onnx_in(visit, i);
    *done = false;
    return in && in->state == RP_ONNX_DYNAMIC
               ? read_arranged(visit, in->view, in->node, layer, done)
               : RP_OK;
}

/* ---- other inputs ---------------------------------------------------------------------------- */

rp_err rp_onnx_read_param(const rp_onnx_visit *visit, uint32_t i, const char *what,
                          const rp_onnx_view **out) {
    const rp_onnx_value *in = rp_onnx_in(visit, i);
    *out = in && in->state == RP_ONNX_PARAM ? in->view : NULL;
    if (*out || !in || in->state == RP_ONNX_UNKNOWN) {
        return *out || in ? RP_OK : rp_onnx_refuse(visit, "it has no %s", what);
    }
    return rp_onnx_refuse(visit,
                          in->state == RP_ONNX_CONST
                              ? "its %s is a computed constant; constants were folded: "
                                "export with do_constant_folding=False"
                              : "its %s depends on the input",
                          what);
}

bool rp_onnx_is_zero(const rp_onnx_visit *visit, uint32_t i) {
    const rp_onnx_value *in = rp_onnx_in(visit, i);
    if (!in) {
        return true;
    }
    bool zero = in->state == RP_ONNX_CONST;
    for (uint64_t k = 0; zero && k < in->view->dims.count; k++) {
        zero = in->whole ? in->ints[k] == 0 : in->floats[k] == 0.0f;
    }
    return zero;
}

rp_err rp_onnx_reduced_axes(const rp_onnx_visit *visit, uint32_t rank, uint32_t *out) {
    const rp_onnx_attribute *attribute = rp_onnx_find(visit->node, "axes");
    const int64_t *axes;
    uint64_t count;
    const rp_err err = rp_onnx_const_ints(visit, 1, &axes, &count);
    axes = attribute ? attribute->ints : axes;
    count = attribute ? attribute->int_count : count;
    *out = 0;
    for (uint64_t i = 0; axes && i < count; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        *out |= 1u << (axis >= 0 && axis < rank ? (uint32_t)axis : 31); /* 31: no axis */
    }
    return err;
}

rp_err rp_onnx_refuse_operands(const rp_onnx_visit *visit, const char *reason) {
    const rp_onnx_graph *graph = visit->graph;
    for (uint32_t i = 0; i < visit->node->input_count; i++) {
        const rp_onnx_value *in = rp_onnx_in(visit, i);
        const uint32_t leaf = in && in->view ? rp_onnx_view_only_leaf(in->view) : RP_ONNX_NONE;
        if (in && in->state == RP_ONNX_DYNAMIC && leaf != RP_ONNX_NONE &&
            graph->value[leaf].layer == RP_ONNX_NONE) {
            return RP_OK;
        }
    }
    return rp_onnx_refuse(visit, "%s", reason);
}

bool rp_onnx_producer(const rp_onnx_visit *visit, uint32_t i, const char *op, rp_onnx_visit *out) {
    const rp_onnx_value *in = rp_onnx_in(visit, i);
    const rp_onnx_model *model = visit->graph->model;
    if (!in || in->state != RP_ONNX_DYNAMIC || in->view->op != RP_ONNX_LEAF) {
        return false;
    }
    const uint32_t node = visit->graph->value[in->view->leaf].node;
    if (node == RP_ONNX_NONE || strcmp(model->node[node].op, op) != 0 ||
        !rp_onnx_is_standard(&model->node[node])) {
        return false;
    }
    *out = (rp_onnx_visit){.graph = visit->graph, .node = &model->node[node], .index = node};
    return true;
}

bool rp_onnx_same_value(const rp_onnx_visit *a, uint32_t i, const rp_onnx_visit *b, uint32_t k) {
    const rp_onnx_value *x = rp_onnx_in(a, i);
    const rp_onnx_value *y = rp_onnx_in(b, k);
    return x && y && x->view && x->view == y->view;
}
