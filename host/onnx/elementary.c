/* The table of elementary operators: one node is one layer. */
#include "onnx/elementary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "onnx/layers.h"
#include "onnx/line.h"
#include "onnx/ops.h"

typedef struct element element;
struct element {
    const char *op, *kind;
    rp_err (*emit)(const rp_onnx_visit *visit, const element *e, bool *done);
};

/* Emits the layer of the node; output 0 has the axes `dims`, or those of the layer if `rank` is 0.
 */
static rp_err finish(const rp_onnx_visit *visit, rp_onnx_layer *draft, uint32_t rank,
                     const int64_t *dim, bool *done) {
    rp_onnx_graph *graph = visit->graph;
    const rp_onnx_view *view;
    rp_onnx_dims dims;
    uint32_t layer;
    rp_err err;
    draft->elementary = true;
    RP_TRY(rp_onnx_emit(visit, draft, &layer, done));
    if (!*done) {
        return RP_OK;
    }
    if (rank == 0 || rank == graph->layer[layer].out.dims + 1) {
        return rp_onnx_give_layer(visit, 0, layer);
    }
    RP_TRY(rp_onnx_add_value(graph, layer, &view));
    if (view && rp_onnx_dims_of(rank, dim, &dims)) {
        RP_TRY(rp_onnx_view_reshape(graph->arena, view, &dims, &view));
    }
    *done = view != NULL;
    if (*done) {
        rp_onnx_give_view(visit, 0, RP_ONNX_DYNAMIC, false, view);
    }
fail:
    return err;
}

/* Reads the only operand, and emits a layer with these keys. */
static rp_err emit_one(const rp_onnx_visit *visit, const char *kind, const char *keys, bool *done) {
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    rp_onnx_layer draft;
    uint32_t from;
    rp_err err;
    RP_TRY(rp_onnx_element_operand(visit, 0, in->view->dims.rank, &from, done));
    if (*done) {
        RP_TRY(rp_onnx_draft(visit, kind, from, &draft, "%s", keys));
        RP_TRY(finish(visit, &draft, 0, NULL, done));
    }
fail:
    return err;
}

/* ---- functions of elements ------------------------------------------------------------------- */

static rp_err emit_unary(const rp_onnx_visit *visit, const element *e, bool *done) {
    return emit_one(visit, e->kind, "", done);
}

static uint32_t find_rank(const rp_onnx_visit *visit) {
    uint32_t rank = 0;
    for (uint32_t i = 0; i < visit->node->input_count; i++) {
        const rp_onnx_value *in = rp_onnx_in(visit, i);
        rank = in && in->view && in->view->dims.rank > rank ? in->view->dims.rank : rank;
    }
    return rank;
}

/* The kind mul would take the operand [W] for a gate of the channels of [C, H, W]. */
static bool is_row_of_image(const rp_onnx_visit *visit, const char *kind, uint32_t rank,
                            uint32_t layer) {
    return strcmp(kind, "mul") == 0 && rank == 4 && visit->graph->layer[layer].out.dims == 1;
}

/* All operands are broadcast to one shape. */
static rp_err read_all(const rp_onnx_visit *visit, const char *kind, rp_onnx_layer *draft,
                       bool *done) {
    const uint32_t rank = find_rank(visit);
    rp_err err;
    RP_TRY(rp_onnx_draft(visit, kind, 0, draft, "%s", ""));
    draft->from_count = visit->node->input_count;
    for (uint32_t i = 0; i < draft->from_count; i++) {
        RP_TRY(rp_onnx_element_operand(visit, i, rank, &draft->from[i], done));
        if (*done && is_row_of_image(visit, kind, rank, draft->from[i])) {
            const int64_t row[2] = {1, visit->graph->layer[draft->from[i]].out.dim[0]};
            RP_TRY(rp_onnx_element_reshape(visit, draft->from[i], 2, row, &draft->from[i], done));
        }
        if (!*done) {
            return RP_OK;
        }
    }
fail:
    return err;
}

static rp_err emit_map(const rp_onnx_visit *visit, const element *e, bool *done) {
    rp_onnx_layer draft;
    rp_err err;
    RP_TRY(read_all(visit, e->kind, &draft, done));
    if (*done) {
        RP_TRY(finish(visit, &draft, 0, NULL, done));
    }
fail:
    return err;
}

/* a <= b is (a < b) or (a = b). */
static rp_err emit_or_equal(const rp_onnx_visit *visit, const element *e, bool *done) {
    rp_onnx_layer draft;
    rp_onnx_layer either;
    uint32_t unlike;
    uint32_t equal;
    rp_err err;
    RP_TRY(read_all(visit, e->kind, &draft, done));
    if (!*done) {
        return RP_OK;
    }
    RP_TRY(rp_onnx_emit(visit, &draft, &unlike, done));
    if (!*done) {
        return RP_OK;
    }
    draft.kind = "equal";
    RP_TRY(rp_onnx_emit(visit, &draft, &equal, done));
    if (*done) {
        RP_TRY(rp_onnx_draft(visit, "or", unlike, &either, "%s", ""));
        either.from_count = 2;
        either.from[1] = equal;
        RP_TRY(finish(visit, &either, 0, NULL, done));
    }
fail:
    return err;
}

static rp_err emit_pow(const rp_onnx_visit *visit, const element *e, bool *done) {
    float exponent;
    char keys[48];
    *done = false;
    if (!rp_onnx_const_number(visit, 1, &exponent)) {
        return rp_onnx_refuse(visit, "its exponent is not one constant number");
    }
    (void)snprintf(keys, sizeof keys, "exponent: %.9g", (double)exponent);
    return emit_one(visit, e->kind, keys, done);
}

/* Bounds are inputs, each of which may be absent. */
static rp_err emit_clip(const rp_onnx_visit *visit, const element *e, bool *done) {
    static const char *const names[] = {"", "min", "max"};
    char keys[96] = "";
    *done = false;
    for (uint32_t i = 1; i <= 2; i++) {
        const size_t used = strlen(keys);
        float bound;
        if (!rp_onnx_in(visit, i)) {
            continue;
        }
        if (!rp_onnx_const_number(visit, i, &bound)) {
            return rp_onnx_refuse(visit, "its bounds are not constant numbers");
        }
        (void)snprintf(keys + used, sizeof keys - used, "%s%s: %.9g", used > 0 ? ", " : "",
                       names[i], (double)bound);
    }
    return emit_one(visit, e->kind, keys, done);
}

/* ---- axes ------------------------------------------------------------------------------------ */

static bool is_output(const rp_onnx_visit *visit) {
    const rp_onnx_model *model = visit->graph->model;
    return model->output_count > 0 && visit->node->output_count > 0 &&
           model->output[0] == visit->node->output[0];
}

/* The softmax that gives the output is computed by the loss. */
static rp_err emit_softmax(const rp_onnx_visit *visit, const element *e, bool *done) {
    const uint32_t rank = rp_onnx_in(visit, 0)->view->dims.rank;
    int64_t axis = rp_onnx_int(visit->node, "axis", -1);
    char keys[32];
    axis += axis < 0 ? rank : 0;
    *done = false;
    if (is_output(visit) && axis == (int64_t)rank - 1) {
        return RP_OK;
    }
    if (axis < 1 || axis >= rank) {
        return rp_onnx_refuse(visit, "it compares samples of the batch");
    }
    (void)snprintf(keys, sizeof keys, "axis: %" PRId64, axis - 1);
    return emit_one(visit, e->kind, axis + 1 == rank ? "" : keys, done);
}

/* Bit i: axis i is reduced. Axes are an attribute or an input; without them it is all, or none. */
static rp_err find_axes(const rp_onnx_visit *visit, uint32_t rank, uint32_t *bits, bool *known) {
    const rp_onnx_attribute *attribute = rp_onnx_find(visit->node, "axes");
    const int64_t *axes;
    uint64_t count;
    const rp_err err = rp_onnx_const_ints(visit, 1, &axes, &count);
    axes = attribute ? attribute->ints : axes;
    count = attribute ? attribute->int_count : count;
    *known = axes || !rp_onnx_in(visit, 1);
    *bits = 0;
    if (count == 0 && !rp_onnx_int(visit->node, "noop_with_empty_axes", 0)) {
        *bits = (1u << rank) - 1;
    }
    for (uint64_t i = 0; axes && i < count; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        *known = *known && axis >= 0 && axis < rank;
        *bits |= *known ? 1u << axis : 0;
    }
    return err;
}

/* Reduces both axes of the image of height 1 that a signal is. */
static rp_err emit_reduced_line(const rp_onnx_visit *visit, const element *e, bool keep,
                                bool *done) {
    const int64_t *in = rp_onnx_in(visit, 0)->view->dims.dim;
    const int64_t dim[3] = {in[0], in[1], 1};
    rp_onnx_layer draft;
    uint32_t from;
    rp_err err;
    RP_TRY(rp_onnx_read_line(visit, 0, &from, done));
    if (*done) {
        RP_TRY(rp_onnx_draft(visit, e->kind, from, &draft, "axes: [1, 2]%s",
                             keep ? ", keep: true" : ""));
        RP_TRY(finish(visit, &draft, keep ? 3 : 2, dim, done));
    }
fail:
    return err;
}

static rp_err emit_reduce(const rp_onnx_visit *visit, const element *e, bool *done) {
    const rp_onnx_dims *in = &rp_onnx_in(visit, 0)->view->dims;
    const bool keep = rp_onnx_int(visit->node, "keepdims", 1) != 0;
    rp_onnx_layer draft;
    char keys[64] = "axes: [";
    int64_t dim[RP_ONNX_RANK_MAX];
    uint32_t rank = 0;
    uint32_t from;
    uint32_t bits;
    bool known;
    rp_err err;
    *done = false;
    RP_TRY(find_axes(visit, in->rank, &bits, &known));
    if (!known || (bits & 1) || bits == 0) {
        return rp_onnx_refuse(visit, bits & 1 ? "it sums over the batch" : "its axes are unknown");
    }
    if (bits == 1u << 2 && rp_onnx_is_line(visit, 0)) {
        return emit_reduced_line(visit, e, keep, done);
    }
    for (uint32_t i = 0; i < in->rank; i++) {
        const bool reduced = bits >> i & 1;
        const size_t used = strlen(keys);
        if (reduced) {
            (void)snprintf(keys + used, sizeof keys - used, "%s%u",
                           keys[used - 1] == '[' ? "" : ", ", i - 1);
        }
        if (!reduced || keep) {
            dim[rank++] = reduced ? 1 : in->dim[i];
        }
    }
    (void)snprintf(keys + strlen(keys), sizeof keys - strlen(keys), "]%s",
                   keep ? ", keep: true" : "");
    RP_TRY(rp_onnx_element_operand(visit, 0, in->rank, &from, done));
    if (*done) {
        RP_TRY(rp_onnx_draft(visit, e->kind, from, &draft, "%s", keys));
        RP_TRY(finish(visit, &draft, rank, dim, done));
    }
fail:
    return err;
}

/* ---- products -------------------------------------------------------------------------------- */

/* The last two axes of b are those of the matrix before it was transposed. */
static bool is_turned(const rp_onnx_view *view) {
    const uint32_t rank = view->dims.rank;
    bool turned = view->op == RP_ONNX_TRANSPOSE && rank >= 2 && view->perm[rank - 1] == rank - 2 &&
                  view->perm[rank - 2] == rank - 1;
    for (uint32_t i = 0; turned && i + 2 < rank; i++) {
        turned = view->perm[i] == i;
    }
    return turned;
}

/* A matrix that all samples share, or one for each sample. */
static rp_err read_matrix(const rp_onnx_visit *visit, uint32_t i, const rp_onnx_view *view,
                          uint32_t rank, uint32_t *layer, bool *done) {
    const rp_onnx_value *in = rp_onnx_in(visit, i);
    *done = false;
    if (in->state != RP_ONNX_DYNAMIC) {
        return rank > 2 ? rp_onnx_element_shared(visit, in, view, rank, layer, done)
                        : rp_onnx_element_view(visit, in, view, 0, layer, done);
    }
    if (view->dims.rank != rank) {
        return rp_onnx_refuse(visit, "its operands have different numbers of axes, so that the "
                                     "batch of one meets another axis");
    }
    return rp_onnx_element_view(visit, in, view, 1, layer, done);
}

/* Rows [N, C] are matrices [1, C] of a sample. */
static rp_err emit_matmul(const rp_onnx_visit *visit, const element *e, bool *done) {
    const rp_onnx_dims *a = &rp_onnx_in(visit, 0)->view->dims;
    const rp_onnx_view *of_b = rp_onnx_in(visit, 1)->view;
    const uint32_t rank = a->rank > of_b->dims.rank ? a->rank : of_b->dims.rank;
    const bool turned = is_turned(of_b);
    const bool rows = rank == 2;
    const int64_t row[2] = {1, a->rank > 0 ? a->dim[a->rank - 1] : 1};
    const int64_t result[2] = {visit->graph->batch, of_b->dims.dim[1]};
    rp_onnx_layer draft;
    uint32_t from[2];
    rp_err err;
    *done = false;
    if (a->rank < 2 || of_b->dims.rank < 2 ||
        (rows &&
         (!rp_onnx_in_is(visit, 0, RP_ONNX_DYNAMIC) || rp_onnx_in_is(visit, 1, RP_ONNX_DYNAMIC)))) {
        return rp_onnx_refuse(visit, "it multiplies over the batch, or a vector");
    }
    RP_TRY(read_matrix(visit, 0, rp_onnx_in(visit, 0)->view, rank, &from[0], done));
    if (*done && rows) {
        RP_TRY(rp_onnx_element_reshape(visit, from[0], 2, row, &from[0], done));
    }
    if (*done) {
        RP_TRY(read_matrix(visit, 1, turned ? of_b->in[0] : of_b, rank, &from[1], done));
    }
    if (*done) {
        RP_TRY(
            rp_onnx_draft(visit, e->kind, from[0], &draft, "%s", turned ? "transpose: true" : ""));
        draft.from_count = 2;
        draft.from[1] = from[1];
        RP_TRY(finish(visit, &draft, rows ? 2 : 0, result, done));
    }
fail:
    return err;
}

/* ---- arrangements ---------------------------------------------------------------------------- */

/* More operands than a layer has are a chain. */
static rp_err emit_concat(const rp_onnx_visit *visit, const element *e, bool *done) {
    const uint32_t rank = find_rank(visit);
    int64_t axis = rp_onnx_int(visit->node, "axis", 0);
    rp_onnx_layer draft = {0};
    char keys[32];
    rp_err err;
    axis += axis < 0 ? rank : 0;
    *done = false;
    if (axis < 1 || axis >= rank) {
        return rp_onnx_refuse(visit, "it joins batches");
    }
    (void)snprintf(keys, sizeof keys, "axis: %" PRId64, axis - 1);
    RP_TRY(rp_onnx_draft(visit, e->kind, 0, &draft, "%s", axis > 1 ? keys : ""));
    draft.from_count = 0;
    for (uint32_t i = 0; i < visit->node->input_count; i++) {
        if (draft.from_count == RP_LAYER_INPUTS_MAX) {
            RP_TRY(rp_onnx_emit(visit, &draft, &draft.from[0], done));
            if (!*done) {
                return RP_OK;
            }
            draft.from_count = 1;
        }
        RP_TRY(rp_onnx_element_operand(visit, i, rank, &draft.from[draft.from_count++], done));
        if (!*done) {
            return RP_OK;
        }
    }
    RP_TRY(finish(visit, &draft, 0, NULL, done));
fail:
    return err;
}

static rp_err emit_pad(const rp_onnx_visit *visit, const element *e, bool *done) {
    const uint32_t rank = rp_onnx_in(visit, 0)->view->dims.rank;
    const char *mode = rp_onnx_text(visit->node, "mode", "constant");
    const int64_t *pads;
    uint64_t count;
    float value = 0.0f;
    char keys[300] = "pads: [";
    rp_err err;
    *done = false;
    RP_TRY(rp_onnx_const_ints(visit, 1, &pads, &count));
    const bool has_value = rp_onnx_in(visit, 2) != NULL;
    if (strcmp(mode, "constant") != 0 || rp_onnx_in(visit, 3) || !pads || count != 2 * rank ||
        (has_value && !rp_onnx_const_number(visit, 2, &value))) {
        return rp_onnx_refuse(visit, "only a constant number of constant pads on all axes can be "
                                     "trained here");
    }
    for (uint32_t i = 0; i < count; i++) {
        const size_t used = strlen(keys);
        if (pads[i] < 0 || (i % rank == 0 && pads[i] > 0)) {
            return rp_onnx_refuse(visit, "it pads the batch, or cuts");
        }
        if (i % rank > 0) {
            (void)snprintf(keys + used, sizeof keys - used, "%s%" PRId64, i > 1 ? ", " : "",
                           pads[i]);
        }
    }
    (void)snprintf(keys + strlen(keys), sizeof keys - strlen(keys),
                   value != 0.0f ? "], value: %.9g" : "]", (double)value);
    RP_TRY(emit_one(visit, e->kind, keys, done));
fail:
    return err;
}

/* Constant indices, in any order, of an axis of a dynamic value. */
static rp_err emit_gather(const rp_onnx_visit *visit, const element *e, bool *done) {
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    const rp_onnx_value *index = rp_onnx_in(visit, 1);
    int64_t axis = rp_onnx_int(visit->node, "axis", 0);
    rp_onnx_layer draft;
    const int64_t *list;
    int64_t *at;
    uint64_t count;
    const char *indices;
    char *keys;
    uint32_t from;
    rp_err err;
    *done = false;
    RP_TRY(rp_onnx_const_ints(visit, 1, &list, &count));
    axis += axis < 0 ? in->view->dims.rank : 0;
    if (in->state != RP_ONNX_DYNAMIC || !list || count == 0 || index->view->dims.rank != 1 ||
        axis < 1 || axis >= in->view->dims.rank) {
        return RP_OK;
    }
    if (count > RP_ONNX_INDICES_MAX) {
        return rp_onnx_refuse(visit, "it takes too many elements by their indices");
    }
    RP_TRY(RP_ARENA_NEW(visit->graph->arena, count, &at));
    for (uint64_t i = 0; i < count; i++) {
        at[i] = list[i] < 0 ? list[i] + in->view->dims.dim[axis] : list[i];
    }
    RP_TRY(rp_onnx_element_list(visit->graph->arena, "indices", at, count, &indices));
    RP_TRY(rp_arena_printf(visit->graph->arena, &keys, "axis: %" PRId64 ", %s", axis - 1, indices));
    RP_TRY(rp_onnx_element_operand(visit, 0, in->view->dims.rank, &from, done));
    if (*done) {
        RP_TRY(rp_onnx_draft(visit, e->kind, from, &draft, "%s", ""));
        draft.keys = keys;
        RP_TRY(finish(visit, &draft, 0, NULL, done));
    }
fail:
    return err;
}

/* Masks are numbers here, so a cast of one changes nothing. */
static rp_err emit_cast(const rp_onnx_visit *visit, const element *e, bool *done) {
    static const char *const masks[] = {"equal", "less", "greater", "and", "or", "not", "isnan"};
    const rp_onnx_graph *graph = visit->graph;
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    const uint32_t leaf = rp_onnx_view_only_leaf(in->view);
    const uint32_t layer = in->state == RP_ONNX_DYNAMIC && leaf != RP_ONNX_NONE
                               ? graph->value[leaf].layer
                               : RP_ONNX_NONE;
    const char *kind = layer != RP_ONNX_NONE ? graph->layer[layer].kind : NULL;
    (void)e;
    *done = false;
    for (size_t i = 0; kind && i < sizeof masks / sizeof *masks; i++) {
        *done = *done || strcmp(kind, masks[i]) == 0;
    }
    if (*done) {
        rp_onnx_give_view(visit, 0, RP_ONNX_DYNAMIC, false, in->view);
    }
    return RP_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const element elements[] = {
    {"Add", "add", emit_map},
    {"Sub", "sub", emit_map},
    {"Mul", "mul", emit_map},
    {"Div", "div", emit_map},
    {"Min", "min", emit_map},
    {"Max", "max", emit_map},
    {"Where", "where", emit_map},
    {"Equal", "equal", emit_map},
    {"Less", "less", emit_map},
    {"Greater", "greater", emit_map},
    {"LessOrEqual", "less", emit_or_equal},
    {"GreaterOrEqual", "greater", emit_or_equal},
    {"And", "and", emit_map},
    {"Or", "or", emit_map},
    {"Not", "not", emit_unary},
    {"IsNaN", "isnan", emit_unary},
    {"Neg", "neg", emit_unary},
    {"Abs", "abs", emit_unary},
    {"Exp", "exp", emit_unary},
    {"Log", "log", emit_unary},
    {"Sqrt", "sqrt", emit_unary},
    {"Reciprocal", "reciprocal", emit_unary},
    {"Erf", "erf", emit_unary},
    {"Pow", "pow", emit_pow},
    {"Clip", "clip", emit_clip},
    {"Softmax", "softmax", emit_softmax},
    {"LogSoftmax", "logsoftmax", emit_softmax},
    {"ReduceMean", "mean", emit_reduce},
    {"ReduceSum", "sum", emit_reduce},
    {"ReduceMax", "max-over", emit_reduce},
    {"MatMul", "matmul", emit_matmul},
    {"Concat", "concat", emit_concat},
    {"Pad", "pad", emit_pad},
    {"Gather", "gather", emit_gather},
    {"Cast", "", emit_cast},
};

static const element *find_element(const char *op) {
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        if (strcmp(op, elements[i].op) == 0) {
            return &elements[i];
        }
    }
    return NULL;
}

bool rp_onnx_has_element(const char *op) {
    return find_element(op) != NULL;
}

rp_err rp_onnx_element(const rp_onnx_visit *visit, bool *done) {
    const element *e = find_element(visit->node->op);
    *done = false;
    for (uint32_t i = 0; i < visit->node->input_count; i++) {
        const rp_onnx_value *in = rp_onnx_in(visit, i);
        if (in && !in->view) {
            return RP_OK;
        }
    }
    return e ? e->emit(visit, e, done) : RP_OK;
}
