/* LSTM and GRU. Initialisers that were sliced into ONNX's order of gates are PyTorch's again. */
#include <inttypes.h>
#include <string.h>

#include "onnx/layers.h"
#include "onnx/ops.h"

enum { GATES_MAX = 4, DIRECTIONS_MAX = 2 };

/* A recurrent operator. order[i] is the place in ONNX of PyTorch's gate i. */
typedef struct {
    const char *kind;
    uint32_t gates;
    uint8_t order[GATES_MAX];
} recurrent;

static const recurrent lstm = {"lstm", 4, {0, 2, 3, 1}}; /* i o f c -> i f g o */
static const recurrent gru = {"gru", 3, {1, 0, 2}};      /* z r h -> r z n */

/* What a node has. */
typedef struct {
    const recurrent *kind;
    int64_t hidden;
    uint32_t directions;
    bool reverse;
    const rp_onnx_view *x;                        /* [N, T, I] */
    const rp_onnx_view *param[DIRECTIONS_MAX][4]; /* weight_ih, weight_hh, bias_ih, bias_hh */
} cell;

/* ---- parameters ------------------------------------------------------------------------------ */

/* Rows [start, start + gates hidden) of direction `d`, with the gates in PyTorch's order. */
static rp_err find_gates(const rp_onnx_visit *visit, const cell *c, const rp_onnx_view *view,
                         uint32_t d, int64_t start, const rp_onnx_view **out) {
    rp_arena *arena = visit->graph->arena;
    const rp_onnx_view *part[GATES_MAX];
    rp_onnx_dims dims = {.rank = view->dims.rank - 1};
    rp_err err;
    *out = NULL;
    RP_TRY(rp_onnx_view_slice(arena, view, 0, d, 1, 1, &view));
    if (!view) {
        return RP_OK;
    }
    memcpy(dims.dim, view->dims.dim + 1, dims.rank * sizeof *dims.dim);
    dims.count = view->dims.count;
    RP_TRY(rp_onnx_view_reshape(arena, view, &dims, &view));
    for (uint32_t g = 0; view && g < c->kind->gates; g++) {
        RP_TRY(rp_onnx_view_slice(arena, view, 0, start + c->kind->order[g] * c->hidden, 1,
                                  c->hidden, &part[g]));
        if (!part[g]) {
            return RP_OK;
        }
    }
    if (view) {
        RP_TRY(rp_onnx_view_concat(arena, part, c->kind->gates, 0, out));
    }
fail:
    return err;
}

static rp_err read_params(const rp_onnx_visit *visit, cell *c, bool *done) {
    static const char *const what[] = {"W", "R", "B"};
    const int64_t rows = (int64_t)c->kind->gates * c->hidden;
    const rp_onnx_view *in[3];
    rp_err err = RP_OK;
    *done = false;
    for (uint32_t i = 0; i < 3; i++) {
        RP_TRY(rp_onnx_read_param(visit, i + 1, what[i], &in[i]));
        if (!in[i] || in[i]->dims.rank != (i == 2 ? 2 : 3) || in[i]->dims.dim[0] != c->directions ||
            in[i]->dims.dim[1] != (i == 2 ? 2 * rows : rows)) {
            return RP_OK;
        }
    }
    *done = true;
    for (uint32_t d = 0; *done && d < c->directions; d++) {
        RP_TRY(find_gates(visit, c, in[0], d, 0, &c->param[d][0]));
        RP_TRY(find_gates(visit, c, in[1], d, 0, &c->param[d][1]));
        RP_TRY(find_gates(visit, c, in[2], d, 0, &c->param[d][2]));
        RP_TRY(find_gates(visit, c, in[2], d, rows, &c->param[d][3]));
        *done = c->param[d][0] && c->param[d][1] && c->param[d][2] && c->param[d][3];
    }
fail:
    return err;
}

/* ---- the node -------------------------------------------------------------------------------- */

/* Refuses what the layers do not have; *done is false then. */
static rp_err read_cell(const rp_onnx_visit *visit, const recurrent *kind, cell *c, bool *done) {
    const rp_onnx_node *node = visit->node;
    const char *direction = rp_onnx_text(node, "direction", "forward");
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    const bool is_lstm = kind == &lstm;
    *done = false;
    *c = (cell){.kind = kind,
                .hidden = rp_onnx_int(node, "hidden_size", 0),
                .directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1,
                .reverse = strcmp(direction, "reverse") == 0};
    if (c->hidden < 1 || c->hidden > 65536) {
        return rp_onnx_refuse(visit, "hidden_size is missing or too large");
    }
    if (!is_lstm && rp_onnx_int(node, "linear_before_reset", 0) == 0) {
        return rp_onnx_refuse(visit, "linear_before_reset = 0 is another function than PyTorch's "
                                     "and cannot be trained here");
    }
    if (rp_onnx_find(node, "activations") || rp_onnx_find(node, "clip") ||
        rp_onnx_int(node, "input_forget", 0) != 0 || rp_onnx_in(visit, 4) || rp_onnx_in(visit, 7)) {
        return rp_onnx_refuse(visit, "activations, clip, input_forget, sequence_lens and peepholes "
                                     "cannot be trained here");
    }
    if (!rp_onnx_is_zero(visit, 5) || (is_lstm && !rp_onnx_is_zero(visit, 6))) {
        return rp_onnx_refuse(visit, "an initial state that is not zero cannot be trained here");
    }
    if (!in || in->state != RP_ONNX_DYNAMIC || in->view->dims.rank != 3) {
        return RP_OK;
    }
    static const int64_t batch_first[] = {1, 0, 2};
    const bool turned = rp_onnx_int(node, "layout", 0) == 0;
    const rp_err err =
        turned ? rp_onnx_view_transpose(visit->graph->arena, in->view, batch_first, &c->x) : RP_OK;
    c->x = turned ? c->x : in->view;
    *done = c->x != NULL;
    return err;
}

/* Emits the layer with all outputs, or with the last one of each direction. */
static rp_err emit_cell(const rp_onnx_visit *visit, const cell *c, uint32_t from, bool last,
                        uint32_t *layer, bool *done) {
    static const char *const suffix[DIRECTIONS_MAX][4] = {
        {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"},
        {"weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse",
         "bias_hh_l0_reverse"}};
    rp_onnx_layer draft;
    rp_err err;
    RP_TRY(rp_onnx_draft(visit, c->kind->kind, from, &draft, "hidden: %" PRId64 "%s%s", c->hidden,
                         c->directions == 2 ? ", bidirectional: true"
                         : c->reverse       ? ", reverse: true"
                                            : "",
                         last ? ", output: last" : ""));
    for (uint32_t d = 0; d < c->directions; d++) {
        for (uint32_t i = 0; i < 4; i++) {
            rp_onnx_draft_param(&draft, suffix[d][i], c->param[d][i]);
        }
    }
    RP_TRY(rp_onnx_emit(visit, &draft, layer, done));
fail:
    return err;
}

/* Makes output `i` of the node an arrangement of a layer's output: split into `dims`, then
 * transposed. */
static rp_err give_split(const rp_onnx_visit *visit, uint32_t i, uint32_t layer,
                         const rp_onnx_dims *dims, const int64_t *perm) {
    rp_arena *arena = visit->graph->arena;
    const rp_onnx_view *view;
    rp_err err;
    RP_TRY(rp_onnx_add_value(visit->graph, layer, &view));
    if (view) {
        RP_TRY(rp_onnx_view_reshape(arena, view, dims, &view));
    }
    if (view) {
        RP_TRY(rp_onnx_view_transpose(arena, view, perm, &view));
    }
    if (view) {
        rp_onnx_give_view(visit, i, RP_ONNX_DYNAMIC, false, view);
    }
fail:
    return err;
}

/* Y [T, D, N, H] and Y_h [D, N, H]; batch first with `layout`. */
static rp_err give_outputs(const rp_onnx_visit *visit, const cell *c, uint32_t all, uint32_t last) {
    static const int64_t time_first[] = {1, 2, 0, 3};
    static const int64_t batch_first[] = {0, 1, 2, 3};
    static const int64_t direction_first[] = {1, 0, 2};
    const bool turned = rp_onnx_int(visit->node, "layout", 0) == 0;
    const int64_t n = c->x->dims.dim[0];
    const int64_t t = c->x->dims.dim[1];
    rp_onnx_dims steps;
    rp_onnx_dims ends;
    rp_err err = RP_OK;
    if (rp_onnx_dims_of(4, (const int64_t[]){n, t, c->directions, c->hidden}, &steps)) {
        RP_TRY(give_split(visit, 0, all, &steps, turned ? time_first : batch_first));
    }
    if (rp_onnx_dims_of(3, (const int64_t[]){n, c->directions, c->hidden}, &ends)) {
        RP_TRY(give_split(visit, 1, last, &ends, turned ? direction_first : batch_first));
    }
fail:
    return err;
}

static rp_err find_layer(const rp_onnx_visit *visit, const recurrent *kind, bool *done) {
    cell c;
    uint32_t from;
    uint32_t all;
    uint32_t last;
    rp_err err;
    RP_TRY(read_cell(visit, kind, &c, done));
    if (*done) {
        RP_TRY(read_params(visit, &c, done));
    }
    if (*done) {
        RP_TRY(rp_onnx_read_layer(visit, c.x, &from, done));
    }
    if (*done) {
        RP_TRY(emit_cell(visit, &c, from, false, &all, done));
    }
    if (*done) {
        RP_TRY(emit_cell(visit, &c, from, true, &last, done));
    }
    if (*done) {
        RP_TRY(give_outputs(visit, &c, all, last));
    }
fail:
    return err;
}

rp_err rp_onnx_layer_lstm(const rp_onnx_visit *visit, bool *done) {
    return find_layer(visit, &lstm, done);
}

rp_err rp_onnx_layer_gru(const rp_onnx_visit *visit, bool *done) {
    return find_layer(visit, &gru, done);
}
