/* Sums, products, concatenations and means. */
#include <inttypes.h>
#include <stdio.h>

#include "onnx/activation.h"
#include "onnx/layers.h"
#include "onnx/line.h"
#include "onnx/linear.h"
#include "onnx/names.h"
#include "onnx/noise.h"
#include "onnx/norm_parts.h"
#include "onnx/ops.h"
#include "onnx/rows.h"

/* Emits the layer; `lines`: its output is a signal. */
static rp_err emit(const rp_onnx_visit *visit, const rp_onnx_layer *draft, bool lines, bool *done) {
    return lines ? rp_onnx_emit_line(visit, draft, done) : rp_onnx_emit_output(visit, draft, done);
}

/* Emits a layer that reads both inputs. */
static rp_err emit_pair(const rp_onnx_visit *visit, const char *kind, const uint32_t from[2],
                        bool lines, bool *done) {
    rp_onnx_layer draft;
    rp_err err;
    RP_TRY(rp_onnx_draft(visit, kind, from[0], &draft, "%s", ""));
    draft.from_count = 2;
    draft.from[1] = from[1];
    RP_TRY(emit(visit, &draft, lines, done));
fail:
    return err;
}

/* Whether all inputs are signals that layers compute as images. */
static bool are_lines(const rp_onnx_visit *visit) {
    bool lines = visit->node->input_count > 1;
    for (uint32_t i = 0; lines && i < visit->node->input_count; i++) {
        lines = rp_onnx_is_line(visit, i);
    }
    return lines;
}

static rp_err read_operand(const rp_onnx_visit *visit, uint32_t i, bool lines, uint32_t *from,
                           bool *done) {
    return lines ? rp_onnx_read_line(visit, i, from, done)
                 : rp_onnx_read_input(visit, i, from, done);
}

/* Emits a layer that reads input `i`, with one parameter. */
static rp_err emit_with_param(const rp_onnx_visit *visit, const char *kind, const char *keys,
                              uint32_t i, const rp_onnx_view *view, bool *done) {
    rp_onnx_layer draft;
    uint32_t from;
    rp_err err;
    *done = false;
    if (rp_onnx_view_repeats(view)) { /* the layer would train each copy by itself */
        return RP_OK;
    }
    RP_TRY(rp_onnx_read_input(visit, i, &from, done));
    if (*done) {
        RP_TRY(rp_onnx_draft(visit, kind, from, &draft, "%s", keys));
        rp_onnx_draft_param(&draft, "weight", view);
        RP_TRY(rp_onnx_emit_output(visit, &draft, done));
    }
fail:
    return err;
}

/* The whole table of which `view` has the first rows; the view itself if it has all. */
static rp_err find_table(const rp_onnx_graph *graph, const rp_onnx_view *view,
                         const rp_onnx_view **out) {
    const uint32_t leaf = rp_onnx_view_only_leaf(view);
    const rp_onnx_view *whole = leaf == RP_ONNX_NONE ? NULL : graph->value[leaf].view;
    bool first = whole && whole->dims.rank == 2 && view->dims.count < whole->dims.count;
    for (uint64_t i = 0; first && i < view->dims.count; i++) {
        first = rp_onnx_view_source(view, i).index == i;
    }
    *out = first ? whole : view;
    return RP_OK;
}

/* A sequence [N, T, C] plus a weight [T, C]. */
static rp_err match_position(const rp_onnx_visit *visit, uint32_t i, bool *done) {
    const rp_onnx_value *weight = rp_onnx_in(visit, i);
    const rp_onnx_value *x = rp_onnx_in(visit, 1 - i);
    const rp_onnx_dims *dims = x && x->view ? &x->view->dims : NULL;
    const rp_onnx_view *table;
    char keys[64];
    rp_err err;
    *done = false;
    if (!dims || dims->rank != 3 || weight->view->dims.rank < 2 ||
        weight->view->dims.count != (uint64_t)(dims->dim[1] * dims->dim[2]) ||
        weight->view->dims.dim[weight->view->dims.rank - 1] != dims->dim[2]) {
        return RP_OK;
    }
    RP_TRY(find_table(visit->graph, weight->view, &table));
    (void)snprintf(keys, sizeof keys, "length: %" PRIu64,
                   table->dims.count / (uint64_t)dims->dim[2]);
    RP_TRY(emit_with_param(visit, "position", keys, 1 - i, table, done));
fail:
    return err;
}

rp_err rp_onnx_layer_add(const rp_onnx_visit *visit, bool *done) {
    rp_onnx_layer draft;
    rp_onnx_rows rows;
    uint32_t other;
    rp_err err = RP_OK;
    RP_TRY(rp_onnx_match_norm(visit, done));
    if (!*done) {
        RP_TRY(rp_onnx_match_groupnorm(visit, done));
    }
    for (uint32_t i = 0; i < 2 && !*done; i++) {
        if (rp_onnx_in_is(visit, i, RP_ONNX_PARAM)) {
            RP_TRY(rp_onnx_match_bias(visit, i, done));
            if (!*done) {
                RP_TRY(match_position(visit, i, done));
            }
        }
    }
    if (*done) {
        return RP_OK;
    }
    if (!rp_onnx_in_is(visit, 0, RP_ONNX_DYNAMIC) || !rp_onnx_in_is(visit, 1, RP_ONNX_DYNAMIC)) {
        return rp_onnx_refuse_operands(visit,
                                       "a sum with a constant or a weight of this shape cannot be "
                                       "trained here");
    }
    RP_TRY(rp_onnx_read_rows(visit, 0, &rows, done));
    if (*done) {
        RP_TRY(rp_onnx_read_rows_like(visit, 1, &rows, &other, done));
    }
    if (*done) {
        RP_TRY(rp_onnx_draft(visit, "add", rows.from, &draft, "%s", ""));
        draft.from_count = 2;
        draft.from[1] = other;
        RP_TRY(rp_onnx_emit_rows(visit, &draft, &rows, done));
    }
fail:
    return err;
}

/* ---- products -------------------------------------------------------------------------------- */

/* The channels of an image, or the last axis, times a weight. */
static rp_err match_scale(const rp_onnx_visit *visit, uint32_t i, bool *done) {
    const rp_onnx_value *weight = rp_onnx_in(visit, i);
    const rp_onnx_value *x = rp_onnx_in(visit, 1 - i);
    const rp_onnx_dims *dims = &weight->view->dims;
    *done = false;
    if (!x || x->state != RP_ONNX_DYNAMIC || x->view->dims.rank < 2 || dims->rank == 0) {
        return RP_OK;
    }
    const rp_onnx_dims *to = &x->view->dims;
    const bool image = to->rank == 4 && dims->rank >= 3 && dims->dim[dims->rank - 3] == to->dim[1];
    const bool last = to->rank != 4 && dims->dim[dims->rank - 1] == to->dim[to->rank - 1];
    const int64_t channels = image ? to->dim[1] : to->dim[to->rank - 1];
    if ((!image && !last) || dims->count != (uint64_t)channels) {
        return RP_OK;
    }
    return emit_with_param(visit, "scale", "", 1 - i, weight->view, done);
}

/* Reads a factor; [N, C, 1, 1] may be the output [C] of a layer. */
static rp_err read_gate(const rp_onnx_visit *visit, uint32_t i, uint32_t *from, bool *done) {
    const rp_onnx_view *view = rp_onnx_in(visit, i)->view;
    const rp_onnx_dims *dims = &view->dims;
    const rp_onnx_dims row = {.rank = 2, .dim = {dims->dim[0], dims->dim[1]}, .count = dims->count};
    rp_err err;
    RP_TRY(rp_onnx_read_input(visit, i, from, done));
    if (!*done && dims->rank == 4 && dims->dim[2] == 1 && dims->dim[3] == 1) {
        RP_TRY(rp_onnx_view_reshape(visit->graph->arena, view, &row, &view));
        if (view) {
            RP_TRY(rp_onnx_read_layer(visit, view, from, done));
        }
    }
fail:
    return err;
}

/* A script export does not say whether an initialiser with one number is a parameter. */
static rp_err note_number(const rp_onnx_visit *visit, uint32_t i) {
    const char *name = rp_onnx_weight_name(visit->graph, rp_onnx_in(visit, i));
    return !name
               ? RP_OK
               : rp_onnx_add_finding(visit->graph->notes, "assumed",
                                     "%s is the number 1 and left out; --names trains it if it is "
                                     "a parameter",
                                     name);
}

/* A product with 1 is its second factor. */
static rp_err give_unchanged(const rp_onnx_visit *visit, bool *done) {
    *done = false;
    for (uint32_t i = 0; i < 2; i++) {
        const rp_onnx_value *x = rp_onnx_in(visit, 1 - i);
        float number;
        if (rp_onnx_const_number(visit, i, &number) && number == 1.0f &&
            x->state == RP_ONNX_DYNAMIC &&
            rp_onnx_in(visit, i)->view->dims.rank <= x->view->dims.rank) {
            rp_onnx_give_view(visit, 0, RP_ONNX_DYNAMIC, false, x->view);
            *done = true;
            return note_number(visit, i);
        }
    }
    return RP_OK;
}

rp_err rp_onnx_layer_mul(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *a = rp_onnx_in(visit, 0);
    const rp_onnx_value *b = rp_onnx_in(visit, 1);
    uint32_t from[2];
    rp_err err;
    RP_TRY(give_unchanged(visit, done));
    if (!*done) {
        RP_TRY(rp_onnx_match_noise(visit, done));
    }
    if (!*done) {
        RP_TRY(rp_onnx_match_norm(visit, done));
    }
    if (!*done) {
        RP_TRY(rp_onnx_match_activation(visit, done));
    }
    for (uint32_t i = 0; i < 2 && !*done; i++) {
        if (rp_onnx_in_is(visit, i, RP_ONNX_PARAM)) {
            RP_TRY(match_scale(visit, i, done));
        }
    }
    if (*done) {
        return RP_OK;
    }
    if (!a || !b || a->state != RP_ONNX_DYNAMIC || b->state != RP_ONNX_DYNAMIC) {
        return rp_onnx_refuse(visit,
                              "a product with a constant or a weight of this shape cannot be "
                              "trained here");
    }
    if (a->view->dims.rank != b->view->dims.rank) {
        return rp_onnx_refuse(visit,
                              "a product of tensors with different numbers of axes cannot be "
                              "trained here");
    }
    /* the larger one comes first; the smaller one is its gate */
    const uint32_t big = b->view->dims.count > a->view->dims.count;
    const bool lines = are_lines(visit);
    RP_TRY(read_operand(visit, big, lines, &from[0], done));
    if (*done) {
        RP_TRY(lines ? rp_onnx_read_line(visit, 1 - big, &from[1], done)
                     : read_gate(visit, 1 - big, &from[1], done));
    }
    if (*done) {
        RP_TRY(emit_pair(visit, "mul", from, lines, done));
    }
fail:
    return err;
}

/* ---- concatenations and means ---------------------------------------------------------------- */

/* A weight [C] as a row before each sequence [N, T, C], such as a class token. */
static rp_err match_prepend(const rp_onnx_visit *visit, int64_t axis, bool *done) {
    const rp_onnx_graph *graph = visit->graph;
    const rp_onnx_value *row = rp_onnx_in(visit, 0);
    const rp_onnx_dims *dims = &row->view->dims;
    const uint32_t leaf = rp_onnx_view_only_leaf(row->view);
    *done = false;
    if (visit->node->input_count != 2 || row->state != RP_ONNX_PARAM || axis != 1 ||
        dims->rank != 3 || dims->dim[0] != graph->batch || dims->dim[1] != 1 ||
        leaf == RP_ONNX_NONE || graph->value[leaf].view->dims.count != (uint64_t)dims->dim[2] ||
        !rp_onnx_in_is(visit, 1, RP_ONNX_DYNAMIC)) {
        return RP_OK;
    }
    return emit_with_param(visit, "prepend", "", 1, graph->value[leaf].view, done);
}

/* Parts of a value that are together the whole of it, such as the last states of both directions of
 * an LSTM, are that value. Costs budget. */
static rp_err give_joined(const rp_onnx_visit *visit, int64_t axis, bool *done) {
    rp_onnx_graph *graph = visit->graph;
    const rp_onnx_view *part[RP_ONNX_INPUTS_MAX];
    const rp_onnx_view *view;
    rp_err err;
    *done = false;
    for (uint32_t i = 0; i < visit->node->input_count; i++) {
        if (!rp_onnx_in_is(visit, i, RP_ONNX_DYNAMIC)) {
            return RP_OK;
        }
        part[i] = rp_onnx_in(visit, i)->view;
    }
    RP_TRY(
        rp_onnx_view_concat(graph->arena, part, visit->node->input_count, (uint32_t)axis, &view));
    const uint64_t cost = view ? view->dims.count * (view->depth + 1) : 0;
    if (!view || view->dims.count == 0 || cost > graph->budget) {
        return RP_OK;
    }
    const uint32_t leaf = rp_onnx_view_source(view, 0).leaf;
    const rp_onnx_view *whole = graph->value[leaf].view;
    if (graph->value[leaf].state != RP_ONNX_DYNAMIC || whole->dims.count != view->dims.count) {
        return RP_OK;
    }
    graph->budget -= cost;
    if (rp_onnx_view_is_whole(view, view->dims.count)) {
        RP_TRY(rp_onnx_view_reshape(graph->arena, whole, &view->dims, &view));
        *done = view != NULL;
    }
    if (*done) {
        rp_onnx_give_view(visit, 0, RP_ONNX_DYNAMIC, false, view);
    }
fail:
    return err;
}

/* A layer has few inputs: more are a chain. */
rp_err rp_onnx_layer_concat(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    int64_t axis = rp_onnx_int(visit->node, "axis", 0);
    rp_onnx_layer draft = {0};
    uint32_t layer = RP_ONNX_NONE;
    char keys[32] = "";
    rp_err err = RP_OK;
    *done = false;
    if (!in || !in->view) {
        return RP_OK;
    }
    axis += axis < 0 ? in->view->dims.rank : 0;
    if (axis < 1 || axis >= in->view->dims.rank) {
        return rp_onnx_refuse(visit, "a concatenation along the batch cannot be trained here");
    }
    if (axis > 1) {
        (void)snprintf(keys, sizeof keys, "axis: %" PRId64, axis - 1);
    }
    const bool lines = axis == 1 && are_lines(visit);
    RP_TRY(match_prepend(visit, axis, done));
    if (!*done) {
        RP_TRY(give_joined(visit, axis, done));
    }
    if (*done) {
        return RP_OK;
    }
    for (uint32_t i = 0; i < visit->node->input_count; i++) {
        if (rp_onnx_in(visit, i) && !rp_onnx_in_is(visit, i, RP_ONNX_DYNAMIC)) {
            return rp_onnx_refuse_operands(visit,
                                           "a concatenation with a constant or a weight cannot be "
                                           "trained here");
        }
        RP_TRY(read_operand(visit, i, lines, &layer, done));
        if (!*done) {
            return RP_OK;
        }
        if (draft.from_count == RP_LAYER_INPUTS_MAX) {
            uint32_t chain;
            RP_TRY(rp_onnx_emit(visit, &draft, &chain, done));
            if (!*done) {
                return RP_OK;
            }
            draft.from_count = 1;
            draft.from[0] = chain;
        }
        if (draft.from_count == 0) {
            RP_TRY(rp_onnx_draft(visit, "concat", layer, &draft, "%s", keys));
        } else {
            draft.from[draft.from_count++] = layer;
        }
    }
    if (draft.from_count == 1) { /* of one input only */
        return rp_onnx_give_layer(visit, 0, layer);
    }
    RP_TRY(emit(visit, &draft, lines, done));
fail:
    return err;
}

/* The mean of an image's or a signal's pixels, or of a sequence's rows, whose time may come first.
 */
rp_err rp_onnx_layer_mean(const rp_onnx_visit *visit, bool *done) {
    enum { PIXELS = 1u << 2 | 1u << 3, ROWS = 1u << 1, TIME_FIRST = 1u, POINTS = 1u << 2 };
    static const int64_t batch_first[] = {1, 0, 2};
    rp_onnx_graph *graph = visit->graph;
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    const rp_onnx_view *view;
    rp_onnx_layer draft;
    rp_onnx_dims dims = {0};
    uint32_t from;
    uint32_t layer;
    uint32_t axes = 0;
    rp_err err;
    *done = false;
    if (!in || in->state != RP_ONNX_DYNAMIC) {
        return RP_OK;
    }
    RP_TRY(rp_onnx_reduced_axes(visit, in->view->dims.rank, &axes));
    const bool image = in->view->dims.rank == 4 && axes == PIXELS;
    const bool turned = in->view->dims.rank == 3 && axes == TIME_FIRST;
    const bool line = axes == POINTS && rp_onnx_is_line(visit, 0);
    if (!image && !turned && !line && (in->view->dims.rank != 3 || axes != ROWS)) {
        return rp_onnx_refuse_operands(visit,
                                       "only the mean of an image's pixels or of a sequence's rows "
                                       "can be trained here");
    }
    if (turned) {
        RP_TRY(rp_onnx_view_transpose(graph->arena, in->view, batch_first, &view));
        if (view) {
            RP_TRY(rp_onnx_read_layer(visit, view, &from, done));
        }
    } else {
        RP_TRY(read_operand(visit, 0, line, &from, done));
    }
    if (!*done) {
        return RP_OK;
    }
    RP_TRY(
        rp_onnx_draft(visit, image || line ? "globalavgpool" : "seqpool", from, &draft, "%s", ""));
    RP_TRY(rp_onnx_emit(visit, &draft, &layer, done));
    if (!*done) {
        return RP_OK;
    }
    RP_TRY(rp_onnx_add_value(graph, layer, &view));
    const bool keep = rp_onnx_int(visit->node, "keepdims", 1) != 0;
    for (uint32_t i = 0; i < in->view->dims.rank; i++) {
        if (!(axes >> i & 1) || keep) {
            dims.dim[dims.rank++] = axes >> i & 1 ? 1 : in->view->dims.dim[i];
        }
    }
    if (view && rp_onnx_dims_of(dims.rank, dims.dim, &dims)) {
        RP_TRY(rp_onnx_view_reshape(graph->arena, view, &dims, &view));
    }
    *done = view != NULL;
    if (*done) {
        rp_onnx_give_view(visit, 0, RP_ONNX_DYNAMIC, false, view);
    }
fail:
    return err;
}
