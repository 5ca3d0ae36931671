/* Operands of elementary layers. An arrangement is not compared as a map here: each step of it is a
 * layer. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "onnx/constants.h"
#include "onnx/elementary.h"
#include "onnx/layers.h"
#include "onnx/names.h"
#include "onnx/signature.h"
#include "onnx/symbols.h"
#include "onnx/tensor.h"

/* The largest `value` of a constant. */
#define VALUE_MAX 1e29f /* a model file may state values up to 1e30 */

rp_err rp_onnx_element_list(rp_arena *arena, const char *key, const int64_t *list, uint64_t count,
                            const char **out) {
    const size_t room = strlen(key) + 8 + count * 22;
    char *text;
    const rp_err err = RP_ARENA_NEW(arena, room, &text);
    if (err != RP_OK) {
        return err;
    }
    size_t used = (size_t)snprintf(text, room, "%s: [", key);
    for (uint64_t i = 0; i < count; i++) {
        used +=
            (size_t)snprintf(text + used, room - used, "%s%" PRId64, i > 0 ? ", " : "", list[i]);
    }
    (void)snprintf(text + used, room - used, "]");
    *out = text;
    return RP_OK;
}

/* Emits a layer that reads `from` and has the keys, which may be long. */
static rp_err emit_keys(const rp_onnx_visit *visit, const char *kind, uint32_t from,
                        const char *keys, uint32_t *layer, bool *done) {
    rp_onnx_layer draft;
    rp_err err;
    RP_TRY(rp_onnx_draft(visit, kind, from, &draft, "%s", ""));
    draft.keys = keys;
    RP_TRY(rp_onnx_emit(visit, &draft, layer, done));
fail:
    return err;
}

rp_err rp_onnx_element_reshape(const rp_onnx_visit *visit, uint32_t from, uint32_t rank,
                               const int64_t *dim, uint32_t *layer, bool *done) {
    static const int64_t one = 1;
    const rp_shape *out = &visit->graph->layer[from].out;
    const char *keys;
    rp_err err;
    dim = rank > 0 ? dim : &one;
    rank = rank > 0 ? rank : 1;
    bool same = out->dims == rank;
    for (uint32_t i = 0; same && i < rank; i++) {
        same = out->dim[i] == dim[i];
    }
    *layer = from;
    *done = same;
    if (same) {
        return RP_OK;
    }
    RP_TRY(rp_onnx_element_list(visit->graph->arena, "shape", dim, rank, &keys));
    RP_TRY(emit_keys(visit, "reshape", from, keys, layer, done));
fail:
    return err;
}

/* ---- steps of an arrangement ----------------------------------------------------------------- */

static rp_err refuse_batch(const rp_onnx_visit *visit, bool *done) {
    *done = false;
    return rp_onnx_refuse(visit, "it moves, divides or joins samples of the batch");
}

static rp_err turn(const rp_onnx_visit *visit, const rp_onnx_view *view, uint32_t skip,
                   uint32_t from, uint32_t *layer, bool *done) {
    int64_t perm[RP_ONNX_RANK_MAX];
    const char *keys;
    rp_err err;
    for (uint32_t i = 0; i < view->dims.rank; i++) {
        perm[i] = (int64_t)view->perm[i] - skip;
        if ((perm[i] < 0) != (i < skip)) {
            return refuse_batch(visit, done);
        }
    }
    RP_TRY(rp_onnx_element_list(visit->graph->arena, "perm", perm + skip, view->dims.rank - skip,
                                &keys));
    RP_TRY(emit_keys(visit, "transpose", from, keys, layer, done));
fail:
    return err;
}

/* Takes a part of one axis: a slice, or a gather if the step is not 1. */
static rp_err take_part(const rp_onnx_visit *visit, uint32_t axis, int64_t start, int64_t step,
                        int64_t count, uint32_t *layer, bool *done) {
    rp_arena *arena = visit->graph->arena;
    const char *list;
    int64_t *index;
    char *keys;
    rp_err err;
    if (step != 1 && count > RP_ONNX_INDICES_MAX) {
        *done = false;
        return rp_onnx_refuse(visit, "it takes too many elements with a step");
    }
    if (step == 1 || count == 1) {
        RP_TRY(rp_arena_printf(arena, &keys, "axis: %u, start: %" PRId64 ", end: %" PRId64, axis,
                               start, start + count));
        return emit_keys(visit, "slice", *layer, keys, layer, done);
    }
    RP_TRY(RP_ARENA_NEW(arena, (size_t)count, &index));
    for (int64_t i = 0; i < count; i++) {
        index[i] = start + i * step;
    }
    RP_TRY(rp_onnx_element_list(arena, "indices", index, (uint64_t)count, &list));
    RP_TRY(rp_arena_printf(arena, &keys, "axis: %u, %s", axis, list));
    RP_TRY(emit_keys(visit, "gather", *layer, keys, layer, done));
fail:
    return err;
}

/* One layer for each axis that is not whole. */
static rp_err take_parts(const rp_onnx_visit *visit, const rp_onnx_view *view, uint32_t skip,
                         uint32_t from, uint32_t *layer, bool *done) {
    const rp_onnx_dims *in = &view->in[0]->dims;
    rp_err err = RP_OK;
    *layer = from;
    *done = true;
    for (uint32_t i = 0; i < in->rank && *done; i++) {
        const int64_t count = view->dims.dim[i];
        const bool whole =
            view->start[i] == 0 && count == in->dim[i] && (view->step[i] == 1 || count == 1);
        if (!whole && i < skip) {
            return refuse_batch(visit, done);
        }
        if (!whole) {
            RP_TRY(take_part(visit, i - skip, view->start[i], view->step[i], count, layer, done));
        }
    }
fail:
    return err;
}

static rp_err expand(const rp_onnx_visit *visit, const rp_onnx_view *view, uint32_t skip,
                     uint32_t from, uint32_t *layer, bool *done) {
    const rp_onnx_dims *in = &view->in[0]->dims;
    const char *keys;
    rp_err err;
    if (skip > 0 && (in->rank != view->dims.rank || in->dim[0] != view->dims.dim[0])) {
        return refuse_batch(visit, done);
    }
    RP_TRY(rp_onnx_element_list(visit->graph->arena, "shape", view->dims.dim + skip,
                                view->dims.rank - skip, &keys));
    RP_TRY(emit_keys(visit, "expand", from, keys, layer, done));
fail:
    return err;
}

/* ---- weights and constants ------------------------------------------------------------------- */

/* Whether all elements are one number; whether there is an infinity or a NaN among them. */
typedef struct {
    bool uniform, infinite, nan;
    float first;
} numbers;

static float number_at(const rp_onnx_graph *graph, const rp_onnx_value *value,
                       const rp_onnx_view *view, uint64_t i) {
    const rp_onnx_model *model = graph->model;
    if (value->state == RP_ONNX_PARAM) {
        const rp_onnx_source source = rp_onnx_view_source(view, i);
        return rp_onnx_float_at(&model->tensor[model->tensor_of[source.leaf]], source.index);
    }
    return value->whole ? (float)rp_onnx_int_of(graph, view, i) : rp_onnx_float_of(graph, view, i);
}

/* Looking at all elements of a constant costs budget. */
static bool can_look(rp_onnx_graph *graph, const rp_onnx_view *view) {
    const uint64_t cost = view->dims.count * (view->depth + 1);
    const bool can = view->dims.count <= RP_ONNX_CONST_MAX && cost <= graph->budget;
    graph->budget -= can ? cost : 0;
    return can;
}

static numbers look_at(const rp_onnx_graph *graph, const rp_onnx_value *value,
                       const rp_onnx_view *view) {
    numbers out = {.uniform = true, .first = number_at(graph, value, view, 0)};
    for (uint64_t i = 0; i < view->dims.count; i++) {
        const float number = number_at(graph, value, view, i);
        out.uniform = out.uniform && number == out.first;
        out.infinite |= isinf(number) != 0;
        out.nan |= isnan(number) != 0;
    }
    return out;
}

/* A layer that has the same tensor as its only parameter. */
static uint32_t find_still(const rp_onnx_graph *graph, const rp_onnx_layer *draft) {
    for (uint32_t i = graph->model->input_count; i < graph->layer_count; i++) {
        const rp_onnx_layer *other = &graph->layer[i];
        if (strcmp(other->kind, draft->kind) == 0 && strcmp(other->keys, draft->keys) == 0 &&
            other->param[0].view == draft->param[0].view) {
            return i;
        }
    }
    return RP_ONNX_NONE;
}

static rp_err emit_still(const rp_onnx_visit *visit, const char *kind, const char *keys,
                         const rp_onnx_view *view, uint32_t *layer, bool *done) {
    rp_onnx_layer draft;
    rp_err err;
    RP_TRY(rp_onnx_draft(visit, kind, 0, &draft, "%s", ""));
    draft.keys = keys;
    draft.from_count = 0;
    rp_onnx_draft_param(&draft, "weight", view);
    draft.param[0].constant = strcmp(kind, "constant") == 0;
    *layer = find_still(visit->graph, &draft);
    *done = *layer != RP_ONNX_NONE;
    if (!*done) {
        RP_TRY(rp_onnx_emit(visit, &draft, layer, done));
    }
fail:
    return err;
}

static rp_err emit_constant(const rp_onnx_visit *visit, const rp_onnx_value *value,
                            const rp_onnx_view *view, const char *shape, uint32_t *layer,
                            bool *done) {
    if (!can_look(visit->graph, view)) {
        *done = false;
        return rp_onnx_refuse(visit, "its constants are too large");
    }
    const numbers all = look_at(visit->graph, value, view);
    const bool stated = all.uniform && fabsf(all.first) <= VALUE_MAX;
    char *keys;
    rp_err err;
    *done = false;
    if (all.nan) {
        return rp_onnx_refuse(visit, "one of its constants is not a number");
    }
    if (all.infinite) {
        RP_TRY(rp_onnx_add_finding(visit->graph->notes, "assumed",
                                   "infinite constants of %s are the largest float32",
                                   visit->node->name));
    }
    if (stated) {
        RP_TRY(rp_arena_printf(visit->graph->arena, &keys, "%s, value: %.9g", shape,
                               (double)all.first));
    } else {
        RP_TRY(rp_arena_string(visit->graph->arena, shape, &keys));
    }
    RP_TRY(emit_still(visit, "constant", keys, view, layer, done));
fail:
    return err;
}

/* Whether an initialiser is a weight: its name is in the given list or, without one, it is that of
 * a module and not of a buffer. One number is rather a constant, such as a mask's. */
static bool is_trained(const rp_onnx_graph *graph, const char *name, bool one_number) {
    if (graph->names) {
        return rp_onnx_symbols_find(graph->names, name) != UINT32_MAX;
    }
    return !rp_onnx_name_is_made_up(name) && !rp_onnx_is_listed(graph->model, "BUFFER", name) &&
           (!one_number || rp_onnx_is_listed(graph->model, "PARAMETER", name));
}

/* A script export lists buffers like weights. With --no-fuse every weight would have this note. */
static rp_err note_trained(const rp_onnx_visit *visit, const char *name) {
    const rp_onnx_graph *graph = visit->graph;
    if (graph->names || graph->model->signature || graph->elements != RP_ONNX_ELEMENTS_LAST) {
        return RP_OK;
    }
    return rp_onnx_add_finding(graph->notes, "assumed",
                               "%s is trained: the file does not say whether it is a parameter or "
                               "a buffer (--freeze keeps it as it is)",
                               name);
}

/* A number that a script export lists like a weight. */
static rp_err note_constant(const rp_onnx_visit *visit, const rp_onnx_value *value) {
    const rp_onnx_graph *graph = visit->graph;
    const char *name = rp_onnx_weight_name(graph, value);
    if (!name || graph->names || graph->model->signature) {
        return RP_OK;
    }
    return rp_onnx_add_finding(graph->notes, "assumed",
                               "%s is one number and a constant; --names trains it if it is a "
                               "parameter",
                               name);
}

/* Elements of a constant, or of an initialiser, whose name is that of a module if it is trained. */
static rp_err read_still(const rp_onnx_visit *visit, const rp_onnx_value *value,
                         const rp_onnx_view *view, uint32_t skip, uint32_t *layer, bool *done) {
    static const int64_t one = 1;
    const rp_onnx_model *model = visit->graph->model;
    const bool scalar = view->dims.rank == skip;
    const char *shape;
    rp_err err;
    *done = false;
    if (view->dims.count == 0) {
        return rp_onnx_refuse(visit, "one of its constants is empty");
    }
    RP_TRY(rp_onnx_element_list(visit->graph->arena, "shape", scalar ? &one : view->dims.dim + skip,
                                scalar ? 1 : view->dims.rank - skip, &shape));
    const uint32_t leaf = rp_onnx_view_only_leaf(view);
    const uint32_t tensor =
        value->state == RP_ONNX_PARAM && leaf != RP_ONNX_NONE ? model->tensor_of[leaf] : UINT32_MAX;
    if (tensor != UINT32_MAX &&
        is_trained(visit->graph, model->tensor[tensor].name, view->dims.count == 1)) {
        RP_TRY(note_trained(visit, model->tensor[tensor].name));
        return emit_still(visit, "parameter", shape, view, layer, done);
    }
    RP_TRY(note_constant(visit, value));
    RP_TRY(emit_constant(visit, value, view, shape, layer, done));
fail:
    return err;
}

/* ---- a view ---------------------------------------------------------------------------------- */

static rp_err read_leaf(const rp_onnx_visit *visit, const rp_onnx_view *view, uint32_t skip,
                        uint32_t *layer, bool *done) {
    const rp_onnx_value *value = &visit->graph->value[view->leaf];
    *done = false;
    if (value->state != RP_ONNX_DYNAMIC) {
        return read_still(visit, value, view, skip, layer, done);
    }
    if (value->layer == RP_ONNX_NONE) {
        return RP_OK; /* the node that gives it has the reason */
    }
    if (skip != 1 || view->dims.rank == 0 || view->dims.dim[0] != visit->graph->batch) {
        return refuse_batch(visit, done);
    }
    *layer = value->layer;
    *done = true;
    return RP_OK;
}

rp_err rp_onnx_element_view(const rp_onnx_visit *visit, const rp_onnx_value *value,
                            const rp_onnx_view *view, uint32_t skip, uint32_t *layer, bool *done) {
    const bool dynamic = value->state == RP_ONNX_DYNAMIC;
    uint32_t from;
    rp_err err;
    if (view->op == RP_ONNX_LEAF) {
        return read_leaf(visit, view, skip, layer, done);
    }
    *done = false;
    if (view->op == RP_ONNX_CONCAT) {
        return dynamic ? rp_onnx_refuse(visit, "it reads a concatenation that no layer computes")
                       : read_still(visit, value, view, skip, layer, done);
    }
    if (dynamic && (view->dims.rank == 0 || view->dims.dim[0] != visit->graph->batch)) {
        return refuse_batch(visit, done);
    }
    /* A first axis of 1 that a weight has for all samples is dropped by a reshape. */
    const uint32_t inner = dynamic ? 1 : 0;
    RP_TRY(rp_onnx_element_view(visit, value, view->in[0], inner, &from, done));
    if (!*done) {
        return RP_OK;
    }
    *layer = from;
    switch (view->op) {
    case RP_ONNX_TRANSPOSE:
        RP_TRY(turn(visit, view, inner, from, layer, done));
        break;
    case RP_ONNX_SLICE:
        RP_TRY(take_parts(visit, view, inner, from, layer, done));
        break;
    case RP_ONNX_EXPAND:
        RP_TRY(expand(visit, view, inner, from, layer, done));
        break;
    case RP_ONNX_LEAF:
    case RP_ONNX_CONCAT:
    case RP_ONNX_RESHAPE:
        break;
    }
    if (*done) {
        RP_TRY(rp_onnx_element_reshape(visit, *layer, view->dims.rank - skip, view->dims.dim + skip,
                                       layer, done));
    }
fail:
    return err;
}

rp_err rp_onnx_element_steps(const rp_onnx_visit *visit, const rp_onnx_view *view, uint32_t *layer,
                             bool *done) {
    const rp_onnx_value *value = &visit->graph->value[rp_onnx_view_only_leaf(view)];
    return rp_onnx_element_view(visit, value, view, 1, layer, done);
}

/* Whether a constant with a row for each sample has the same row for all. */
static bool is_repeated(rp_onnx_graph *graph, const rp_onnx_value *value,
                        const rp_onnx_view *view) {
    const rp_onnx_dims *dims = &view->dims;
    const uint64_t row = dims->count / (uint64_t)graph->batch;
    bool same = dims->dim[0] == graph->batch && can_look(graph, view);
    for (uint64_t i = row; same && i < dims->count; i++) {
        same = number_at(graph, value, view, i) == number_at(graph, value, view, i % row);
    }
    return same;
}

/* What all samples share of a value with a row for each of them. NULL: the rows differ, or are a
 * weight that is not just repeated. */
static rp_err find_shared(const rp_onnx_visit *visit, const rp_onnx_value *in,
                          const rp_onnx_view *view, const rp_onnx_view **out) {
    const rp_onnx_view *before = view->op == RP_ONNX_EXPAND ? view->in[0] : NULL;
    rp_onnx_dims dims = view->dims;
    *out = NULL;
    if (!is_repeated(visit->graph, in, view)) {
        return RP_OK;
    }
    if (in->state == RP_ONNX_CONST) {
        return rp_onnx_view_slice(visit->graph->arena, view, 0, 0, 1, 1, out);
    }
    if (!before || before->dims.rank != dims.rank || before->dims.dim[0] != 1) {
        return RP_OK;
    }
    dims.dim[0] = 1;
    return rp_onnx_dims_of(dims.rank, dims.dim, &dims)
               ? rp_onnx_view_expand(visit->graph->arena, before, &dims, out)
               : RP_OK;
}

/* Emits a layer that is named after the one that it reads. */
static rp_err emit_after(const rp_onnx_visit *visit, const char *kind, const char *keys,
                         uint32_t *layer, bool *done) {
    rp_onnx_layer draft;
    rp_err err;
    RP_TRY(rp_onnx_draft(visit, kind, *layer, &draft, "%s", keys));
    draft.named_after = true;
    RP_TRY(rp_onnx_emit(visit, &draft, layer, done));
fail:
    return err;
}

/* The layers of a block; `view`: that has it. */
static rp_err read_block(const rp_onnx_visit *visit, const rp_onnx_value *value,
                         const rp_onnx_view *view, const rp_onnx_block *block, uint32_t skip,
                         uint32_t *layer, bool *done) {
    rp_arena *arena = visit->graph->arena;
    const uint32_t rank = view->dims.rank - skip;
    int64_t shape[RP_ONNX_RANK_MAX];
    const char *list;
    char *keys;
    rp_err err;
    RP_TRY(rp_onnx_element_view(visit, value, block->whole, 0, layer, done));
    if (*done && block->count < block->whole->dims.count) {
        RP_TRY(rp_arena_printf(arena, &keys, "axis: 0, start: %" PRIu64 ", end: %" PRIu64,
                               block->start / block->row,
                               (block->start + block->count) / block->row));
        RP_TRY(emit_after(visit, "slice", keys, layer, done));
    }
    for (uint32_t i = 0; i < rank; i++) {
        shape[i] = i + skip < block->axis ? 1 : view->dims.dim[i + skip];
    }
    if (*done) {
        RP_TRY(rp_onnx_element_reshape(visit, *layer, rank, shape, layer, done));
    }
    if (*done && block->count < view->dims.count) {
        RP_TRY(rp_onnx_element_list(arena, "shape", view->dims.dim + skip, rank, &list));
        RP_TRY(emit_after(visit, "expand", list, layer, done));
    }
fail:
    return err;
}

rp_err rp_onnx_element_shared(const rp_onnx_visit *visit, const rp_onnx_value *in,
                              const rp_onnx_view *view, uint32_t rank, uint32_t *layer,
                              bool *done) {
    const uint32_t skip = view->dims.rank == rank ? 1 : 0;
    rp_onnx_block block;
    rp_err err = RP_OK;
    *done = false;
    if (skip > 0 && view->dims.dim[0] != 1) {
        RP_TRY(find_shared(visit, in, view, &view));
    }
    if (!view) {
        return rp_onnx_refuse(visit, "it has a constant that differs between samples");
    }
    if (in->state == RP_ONNX_CONST) {
        return read_still(visit, in, view, skip, layer, done);
    }
    if (rp_onnx_find_block(visit->graph, view, &block) && block.axis >= skip &&
        view->dims.rank > skip) {
        return read_block(visit, in, view, &block, skip, layer, done);
    }
    RP_TRY(rp_onnx_element_view(visit, in, view, skip, layer, done));
fail:
    return err;
}

rp_err rp_onnx_element_operand(const rp_onnx_visit *visit, uint32_t i, uint32_t rank,
                               uint32_t *layer, bool *done) {
    const rp_onnx_value *in = rp_onnx_in(visit, i);
    *done = false;
    if (!in || !in->view) {
        return RP_OK;
    }
    const rp_onnx_dims *dims = &in->view->dims;
    if (in->state == RP_ONNX_DYNAMIC) {
        return dims->rank == rank
                   ? rp_onnx_element_view(visit, in, in->view, 1, layer, done)
                   : rp_onnx_refuse(visit, "its operands have different numbers of axes, so that "
                                           "the batch of one meets another axis");
    }
    return rp_onnx_element_shared(visit, in, in->view, rank, layer, done);
}
