#include "onnx/attention.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "onnx/layers.h"
#include "onnx/mask.h"
#include "onnx/ops.h"
#include "onnx/rotary.h"

static const int64_t swap_heads[] = {0, 2, 1, 3};

/* What a layer of attention computes. q, k and v are [N, heads, T, D]. */
typedef struct {
    const rp_onnx_view *q, *k, *v;
    double scale;
    float dropout;
    rp_onnx_mask mask;
    rp_onnx_rotary rotary;
} pattern;

/* ---- the layer ------------------------------------------------------------------------------- */

/* Reads [N, heads, T, D] as the rows [N, T, heads D] of a layer. */
static rp_err read_heads(const rp_onnx_visit *visit, const rp_onnx_view *view, uint32_t *from,
                         bool *done) {
    rp_arena *arena = visit->graph->arena;
    rp_err err;
    *done = false;
    RP_TRY(rp_onnx_view_transpose(arena, view, swap_heads, &view));
    if (view) {
        const int64_t *dim = view->dims.dim;
        const rp_onnx_dims rows = {
            .rank = 3, .dim = {dim[0], dim[1], dim[2] * dim[3]}, .count = view->dims.count};
        RP_TRY(rp_onnx_view_reshape(arena, view, &rows, &view));
    }
    if (view) {
        RP_TRY(rp_onnx_read_layer(visit, view, from, done));
    }
fail:
    return err;
}

/* The layer of which q, k and v are the parts, side by side and in this order; RP_ONNX_NONE: no
 * layer is. */
static uint32_t find_packed(const rp_onnx_graph *graph, const uint32_t from[3]) {
    const uint32_t packed = graph->layer[from[0]].from[0];
    uint32_t width = 0;
    for (uint32_t i = 0; i < 3; i++) {
        const rp_onnx_layer *layer = &graph->layer[from[i]];
        char keys[80];
        if (!layer->kind || strcmp(layer->kind, "slice") != 0 || layer->from[0] != packed) {
            return RP_ONNX_NONE;
        }
        (void)snprintf(keys, sizeof keys, "axis: 1, start: %u, end: %u", width,
                       width + layer->out.dim[1]);
        if (strcmp(layer->keys, keys) != 0) {
            return RP_ONNX_NONE;
        }
        width += layer->out.dim[1];
    }
    return graph->layer[packed].out.dim[1] == width ? packed : RP_ONNX_NONE;
}

/* The keys that differ from their usual values. */
static void write_keys(const pattern *p, char *text, size_t room) {
    const double usual = 1.0 / sqrt((double)p->q->dims.dim[3]);
    size_t used = (size_t)snprintf(text, room, "heads: %" PRId64, p->q->dims.dim[1]);
    if (p->k->dims.dim[1] != p->q->dims.dim[1]) {
        used +=
            (size_t)snprintf(text + used, room - used, ", kv_heads: %" PRId64, p->k->dims.dim[1]);
    }
    if (p->mask.causal) {
        used += (size_t)snprintf(text + used, room - used, ", causal: true");
    }
    if (fabs(p->scale - usual) > 1e-6 * usual) {
        used += (size_t)snprintf(text + used, room - used, ", scale: %.7g", p->scale);
    }
    if (p->dropout > 0.0f) {
        used += (size_t)snprintf(text + used, room - used, ", dropout: %.7g", (double)p->dropout);
    }
    if (p->mask.ids != RP_ONNX_NONE) {
        used += (size_t)snprintf(text + used, room - used, ", padding: %" PRId32, p->mask.padding);
    }
    if (p->rotary.base > 0.0) {
        (void)snprintf(text + used, room - used, ", rotary: {base: %.6g}", p->rotary.base);
    }
}

/* Emits the layer; *out is its output as [N, heads, T, D]. */
static rp_err emit_attention(const rp_onnx_visit *visit, const pattern *p, const rp_onnx_view **out,
                             bool *done) {
    rp_onnx_graph *graph = visit->graph;
    const rp_onnx_view *const parts[3] = {p->q, p->k, p->v};
    uint32_t from[3] = {0};
    uint32_t layer;
    char keys[240];
    rp_onnx_layer draft;
    rp_err err = RP_OK;
    *out = NULL;
    *done = true;
    for (uint32_t i = 0; i < 3 && *done; i++) {
        RP_TRY(read_heads(visit, parts[i], &from[i], done));
    }
    if (!*done) {
        return RP_OK;
    }
    const uint32_t packed = find_packed(graph, from);
    write_keys(p, keys, sizeof keys);
    RP_TRY(rp_onnx_draft(visit, "attention", packed == RP_ONNX_NONE ? from[0] : packed, &draft,
                         "%s", keys));
    if (packed == RP_ONNX_NONE) {
        draft.from_count = 3;
        draft.from[1] = from[1];
        draft.from[2] = from[2];
    }
    if (p->mask.ids != RP_ONNX_NONE) {
        draft.from[draft.from_count++] = p->mask.ids;
    }
    RP_TRY(rp_onnx_emit(visit, &draft, &layer, done));
    if (!*done) {
        return RP_OK;
    }
    const int64_t heads = p->q->dims.dim[1];
    const rp_shape *shape = &graph->layer[layer].out;
    const rp_onnx_dims split = {.rank = 4,
                                .dim = {graph->batch, shape->dim[0], heads, shape->dim[1] / heads},
                                .count = (uint64_t)graph->batch * rp_shape_count(shape)};
    RP_TRY(rp_onnx_add_value(graph, layer, out));
    if (*out) {
        RP_TRY(rp_onnx_view_reshape(graph->arena, *out, &split, out));
    }
    if (*out) {
        RP_TRY(rp_onnx_view_transpose(graph->arena, *out, swap_heads, out));
    }
    *done = *out != NULL;
fail:
    return err;
}

/* ---- the operator ---------------------------------------------------------------------------- */

/* [N, heads, T, D] of input `i`, which may be [N, T, heads D]; NULL: neither. */
static rp_err find_heads(const rp_onnx_visit *visit, uint32_t i, int64_t heads,
                         const rp_onnx_view **out) {
    rp_arena *arena = visit->graph->arena;
    const rp_onnx_value *in = rp_onnx_in(visit, i);
    const rp_onnx_dims *dims = in && in->view ? &in->view->dims : NULL;
    rp_err err = RP_OK;
    *out = NULL;
    if (!dims || in->state != RP_ONNX_DYNAMIC) {
        return RP_OK;
    }
    if (dims->rank == 4) {
        *out = in->view;
    } else if (dims->rank == 3 && heads > 0 && dims->dim[2] % heads == 0) {
        const rp_onnx_dims split = {
            .rank = 4,
            .dim = {dims->dim[0], dims->dim[1], heads, dims->dim[2] / heads},
            .count = dims->count};
        RP_TRY(rp_onnx_view_reshape(arena, in->view, &split, out));
        if (*out) {
            RP_TRY(rp_onnx_view_transpose(arena, *out, swap_heads, out));
        }
    }
fail:
    return err;
}

static rp_onnx_mask_kind mask_kind_of(const rp_onnx_value *mask) {
    return mask && mask->whole ? RP_ONNX_MASK_TRUE_SEES : RP_ONNX_MASK_ADDED;
}

rp_err rp_onnx_layer_attention(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_node *node = visit->node;
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    const int64_t heads = rp_onnx_int(node, "q_num_heads", 0);
    pattern p = {.mask = {.causal = rp_onnx_int(node, "is_causal", 0) != 0, .ids = RP_ONNX_NONE}};
    const rp_onnx_view *view;
    rp_err err;
    *done = false;
    if (rp_onnx_float(node, "softcap", 0.0f) != 0.0f || rp_onnx_in(visit, 4) ||
        rp_onnx_in(visit, 5)) {
        return rp_onnx_refuse(visit, "softcap, past keys and past values cannot be trained here");
    }
    RP_TRY(rp_onnx_join_mask(visit, 3, mask_kind_of(rp_onnx_in(visit, 3)), &p.mask, done));
    if (!*done) {
        return rp_onnx_refuse(visit, "only masks that are causal or hide ids can be trained here");
    }
    *done = false;
    RP_TRY(find_heads(visit, 0, heads, &p.q));
    RP_TRY(find_heads(visit, 1, rp_onnx_int(node, "kv_num_heads", heads), &p.k));
    RP_TRY(find_heads(visit, 2, rp_onnx_int(node, "kv_num_heads", heads), &p.v));
    if (!p.q || !p.k || !p.v) {
        return RP_OK;
    }
    if (rp_onnx_int(node, "is_causal", 0) != 0 && p.q->dims.dim[2] != p.k->dims.dim[2]) {
        return rp_onnx_refuse(visit, "a causal mask between sequences of two lengths cannot be "
                                     "trained here");
    }
    p.scale = (double)rp_onnx_float(node, "scale", 0.0f);
    p.scale = p.scale != 0.0 ? p.scale : 1.0 / sqrt((double)p.q->dims.dim[3]);
    RP_TRY(emit_attention(visit, &p, &view, done));
    if (*done && in->view->dims.rank == 3) {
        const rp_onnx_dims rows = {
            .rank = 3,
            .dim = {view->dims.dim[0], view->dims.dim[2], view->dims.dim[1] * view->dims.dim[3]},
            .count = view->dims.count};
        RP_TRY(rp_onnx_view_transpose(visit->graph->arena, view, swap_heads, &view));
        RP_TRY(rp_onnx_view_reshape(visit->graph->arena, view, &rows, &view));
    }
    *done = *done && view;
    if (*done) {
        rp_onnx_give_view(visit, 0, RP_ONNX_DYNAMIC, false, view);
    }
fail:
    return err;
}

/* ---- the pattern ----------------------------------------------------------------------------- */

/* Takes factors off input `i` of a node: the node before it is a product or quotient with a number.
 * *node becomes the node and *i the input that has the rest. */
static void take_factors(rp_onnx_visit *node, uint32_t *i, double *scale) {
    rp_onnx_visit factor;
    float number;
    for (uint32_t steps = 0; steps < 4; steps++) {
        const bool product = rp_onnx_producer(node, *i, "Mul", &factor);
        if (!product && !rp_onnx_producer(node, *i, "Div", &factor)) {
            return;
        }
        const bool second = rp_onnx_const_number(&factor, 1, &number);
        if (!second && !(product && rp_onnx_const_number(&factor, 0, &number))) {
            return;
        }
        *scale *= product ? (double)number : 1.0 / (double)number;
        *i = second ? 0 : 1;
        *node = factor;
    }
}

/* Where(IsNaN(p), 0, p): p of rows without keys, which a layer of attention has as 0 anyway. */
static bool replaces_nan(const rp_onnx_visit *where) {
    rp_onnx_visit test;
    return rp_onnx_producer(where, 0, "IsNaN", &test) && rp_onnx_in(where, 1) &&
           rp_onnx_is_zero(where, 1) && rp_onnx_same_value(&test, 0, where, 2);
}

/* From the last product back to the softmax: dropout, and what replaces NaN of rows without keys.
 */
static bool find_softmax(const rp_onnx_visit *visit, rp_onnx_visit *softmax, float *dropout) {
    rp_onnx_visit at = *visit;
    rp_onnx_visit other;
    uint32_t i = 0;
    for (uint32_t steps = 0; steps < 4; steps++) {
        if (rp_onnx_producer(&at, i, "Softmax", softmax)) {
            return true;
        }
        if (rp_onnx_producer(&at, i, "Dropout", &other)) {
            *dropout = 0.5f;
            (void)rp_onnx_const_number(&other, 1, dropout);
            i = 0;
        } else if (rp_onnx_producer(&at, i, "Where", &other) && replaces_nan(&other)) {
            i = 2;
        } else {
            return false;
        }
        at = other;
    }
    return false;
}

/* Whether input `i` of a node is a product times factors, or a mask of one. */
static bool leads_to_scores(const rp_onnx_visit *node, uint32_t i) {
    rp_onnx_visit at = *node;
    rp_onnx_visit found;
    double ignored = 1.0;
    take_factors(&at, &i, &ignored);
    return rp_onnx_producer(&at, i, "MatMul", &found) || rp_onnx_producer(&at, i, "Add", &found) ||
           rp_onnx_producer(&at, i, "Where", &found);
}

/* Takes a mask off input *i of a node. *node becomes the node that has the mask, and *i its input
 * that has the scores; *taken is false if there is no mask, or an unknown one. */
static rp_err take_mask(rp_onnx_visit *node, uint32_t *i, rp_onnx_mask *mask, bool *taken) {
    rp_onnx_visit at;
    *taken = false;
    if (rp_onnx_producer(node, *i, "Add", &at)) {
        for (uint32_t k = 0; k < 2 && !*taken; k++) {
            if (leads_to_scores(&at, k)) {
                const rp_err err = rp_onnx_join_mask(&at, 1 - k, RP_ONNX_MASK_ADDED, mask, taken);
                if (err != RP_OK) {
                    return err;
                }
                *i = *taken ? k : *i;
            }
        }
    } else if (rp_onnx_producer(node, *i, "Where", &at)) {
        const bool first = leads_to_scores(&at, 1);
        float hidden;
        if (rp_onnx_const_number(&at, first ? 2 : 1, &hidden) && hidden <= -1e4f) {
            const rp_err err = rp_onnx_join_mask(
                &at, 0, first ? RP_ONNX_MASK_TRUE_SEES : RP_ONNX_MASK_TRUE_HIDES, mask, taken);
            if (err != RP_OK) {
                return err;
            }
            *i = *taken ? (first ? 1 : 2) : *i;
        }
    }
    *node = *taken ? at : *node;
    return RP_OK;
}

/* From the softmax back to the first product; masks are between them. */
static rp_err find_scores(const rp_onnx_visit *softmax, rp_onnx_visit *scores, pattern *p,
                          bool *done) {
    rp_onnx_visit at = *softmax;
    uint32_t i = 0;
    const int64_t axis = rp_onnx_int(softmax->node, "axis", -1);
    const rp_onnx_value *in = rp_onnx_in(softmax, 0);
    bool taken = true;
    rp_err err = RP_OK;
    *done = false;
    if (!in || !in->view || (axis != -1 && axis != (int64_t)in->view->dims.rank - 1)) {
        return RP_OK;
    }
    for (uint32_t masks = 0; masks < 4 && taken; masks++) {
        take_factors(&at, &i, &p->scale);
        RP_TRY(take_mask(&at, &i, &p->mask, &taken));
    }
    *done = rp_onnx_producer(&at, i, "MatMul", scores);
fail:
    return err;
}

/* [N, heads, T, D] of an input of a product, which may be [N heads, T, D]; NULL: neither. */
static rp_err find_operand(const rp_onnx_visit *scores, uint32_t input, double *scale,
                           const rp_onnx_view **out) {
    rp_onnx_visit at = *scores;
    uint32_t i = input;
    take_factors(&at, &i, scale);
    const rp_onnx_value *in = rp_onnx_in(&at, i);
    const rp_onnx_dims *dims = in && in->view ? &in->view->dims : NULL;
    *out = NULL;
    if (!dims || in->state != RP_ONNX_DYNAMIC || dims->rank < 3 || dims->rank > 4) {
        return RP_OK;
    }
    const int64_t n = scores->graph->batch;
    if (dims->rank == 3 && dims->dim[0] % n != 0) {
        return RP_OK;
    }
    const rp_onnx_dims split = {
        .rank = 4, .dim = {n, dims->dim[0] / n, dims->dim[1], dims->dim[2]}, .count = dims->count};
    return rp_onnx_view_reshape(scores->graph->arena, in->view, dims->rank == 4 ? dims : &split,
                                out);
}

/* Whether each head of a view [N, heads, T, D] is repeated so often. Costs budget. */
static bool is_repeated(rp_onnx_graph *graph, const rp_onnx_view *view, int64_t times) {
    const uint64_t head = (uint64_t)(view->dims.dim[2] * view->dims.dim[3]);
    const uint64_t group = head * (uint64_t)times;
    const uint64_t cost = view->depth + 1;
    bool same = true;
    for (uint64_t i = 0; i < view->dims.count && same; i++) {
        const rp_onnx_source own = rp_onnx_view_source(view, i);
        const rp_onnx_source first = rp_onnx_view_source(view, i / group * group + i % head);
        same = own.leaf == first.leaf && own.index == first.index && cost <= graph->budget;
        graph->budget -= same ? cost : 0;
    }
    return same;
}

/* Heads of keys or values without repetitions, which several heads of the queries share. */
static rp_err drop_repeated(rp_onnx_graph *graph, const rp_onnx_view **view) {
    const int64_t heads = (*view)->dims.dim[1];
    for (int64_t times = heads; times > 1; times--) {
        if (heads % times == 0 && is_repeated(graph, *view, times)) {
            return rp_onnx_view_slice(graph->arena, *view, 1, 0, times, heads / times, view);
        }
    }
    return RP_OK;
}

/* Queries and keys without rotary embedding, which must be the same for both. */
static rp_err take_rotary(const rp_onnx_visit *visit, pattern *p, bool *done) {
    rp_onnx_rotary of_keys;
    rp_err err;
    RP_TRY(rp_onnx_find_rotary(visit, p->q, &p->rotary, &p->q));
    RP_TRY(rp_onnx_find_rotary(visit, p->k, &of_keys, &p->k));
    *done = of_keys.base == p->rotary.base;
fail:
    return err;
}

rp_err rp_onnx_match_attention(const rp_onnx_visit *visit, bool *done) {
    static const int64_t turn[] = {0, 1, 3, 2};
    rp_arena *arena = visit->graph->arena;
    pattern p = {.scale = 1.0, .mask = {.ids = RP_ONNX_NONE}};
    double unscaled = 1.0;
    rp_onnx_visit softmax;
    rp_onnx_visit scores;
    const rp_onnx_view *view;
    rp_err err;
    *done = find_softmax(visit, &softmax, &p.dropout);
    if (*done) {
        RP_TRY(find_scores(&softmax, &scores, &p, done));
    }
    if (!*done) {
        return rp_onnx_refuse_operands(
            visit, "a product of two values that is no part of attention cannot "
                   "be trained here");
    }
    RP_TRY(find_operand(&scores, 0, &p.scale, &p.q));
    RP_TRY(find_operand(&scores, 1, &p.scale, &p.k));
    RP_TRY(find_operand(visit, 1, &unscaled, &p.v));
    if (p.k) {
        RP_TRY(rp_onnx_view_transpose(arena, p.k, turn, &p.k));
    }
    *done = false;
    if (!p.q || !p.k || !p.v || unscaled != 1.0) {
        return RP_OK;
    }
    RP_TRY(drop_repeated(visit->graph, &p.k));
    RP_TRY(drop_repeated(visit->graph, &p.v));
    RP_TRY(take_rotary(visit, &p, done));
    if (!*done) {
        return rp_onnx_refuse(visit, "only queries and keys with one rotary embedding can be "
                                     "trained here");
    }
    RP_TRY(emit_attention(visit, &p, &view, done));
    if (*done && rp_onnx_in(visit, 1)->view->dims.rank == 3) {
        const int64_t *dim = view->dims.dim;
        const rp_onnx_dims joined = {
            .rank = 3, .dim = {dim[0] * dim[1], dim[2], dim[3]}, .count = view->dims.count};
        RP_TRY(rp_onnx_view_reshape(arena, view, &joined, &view));
    }
    *done = *done && view;
    if (*done) {
        rp_onnx_give_view(visit, 0, RP_ONNX_DYNAMIC, false, view);
    }
fail:
    return err;
}
