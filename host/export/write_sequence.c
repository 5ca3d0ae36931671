/* LSTM, GRU, and one row of a sequence. */
#include <stdio.h>

#include "export/layer.h"

enum { GATES_MAX = 4 };

/* A recurrent operator. order[i] is PyTorch's gate that is ONNX's gate i. */
typedef struct {
    const char *op;
    uint32_t gates;
    uint8_t order[GATES_MAX];
} recurrent;

static const recurrent lstm = {"LSTM", 4, {0, 3, 1, 2}}; /* i f g o -> i o f c */
static const recurrent gru = {"GRU", 3, {1, 0, 2}};      /* r z n -> z r h */

/* ---- weights --------------------------------------------------------------------------------- */

/* The tensor with its gates in ONNX's order. */
static const char *order_gates(rp_export_layer *l, const recurrent *kind, uint32_t hidden,
                               const char *suffix, bool reverse) {
    const char *part[GATES_MAX];
    char name[40];
    (void)snprintf(name, sizeof name, "%s%s", suffix, reverse ? "_reverse" : "");
    const char *all = rp_export_param(l, name);
    for (uint32_t i = 0; i < kind->gates; i++) {
        const int64_t first = (int64_t)kind->order[i] * hidden;
        part[i] = rp_export_slice(l, all, 0, first, first + hidden);
    }
    const char *y = rp_export_op(l, "Concat", kind->gates, part);
    rp_export_int(l, "axis", 0);
    return y;
}

/* One weight of each direction, [directions, ..]. */
static const char *stack(rp_export_layer *l, uint32_t directions, const char *const part[2]) {
    static const int64_t front[] = {0};
    const char *row[2];
    for (uint32_t d = 0; d < directions; d++) {
        row[d] = rp_export_unsqueeze(l, part[d], 1, front);
    }
    if (directions == 1) {
        return row[0];
    }
    const char *y = rp_export_op(l, "Concat", directions, row);
    rp_export_int(l, "axis", 0);
    return y;
}

static const char *write_weight(rp_export_layer *l, const recurrent *kind, uint32_t hidden,
                                uint32_t directions, const char *suffix) {
    const char *part[2];
    for (uint32_t d = 0; d < directions; d++) {
        part[d] = order_gates(l, kind, hidden, suffix, d == 1);
    }
    return stack(l, directions, part);
}

/* Both biases side by side. */
static const char *write_bias(rp_export_layer *l, const recurrent *kind, uint32_t hidden,
                              uint32_t directions) {
    const char *part[2];
    for (uint32_t d = 0; d < directions; d++) {
        const char *ih = order_gates(l, kind, hidden, "bias_ih_l0", d == 1);
        const char *hh = order_gates(l, kind, hidden, "bias_hh_l0", d == 1);
        part[d] = RP_EXPORT_OP(l, "Concat", ih, hh);
        rp_export_int(l, "axis", 0);
    }
    return stack(l, directions, part);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* [1, T]: a table of first, first + step, ... */
static const char *write_counts(rp_export_layer *l, uint32_t tokens, float first, float step) {
    const int64_t dim[] = {1, tokens};
    float *counts = NULL;
    RP_EXPORT_NEW(l->graph, tokens, &counts);
    for (uint32_t t = 0; counts && t < tokens; t++) {
        counts[t] = first + step * (float)t;
    }
    return rp_export_table(l, 2, dim, counts);
}

/* The largest count [N, 1] of a token that is no padding; 0: all are padding. */
static const char *find_token(rp_export_layer *l, const char *real, const char *counts) {
    static const int64_t axis[] = {1};
    const char *counted = RP_EXPORT_OP(l, "Mul", real, counts);
    return rp_export_reduce(l, "ReduceMax", counted, 1, axis, true);
}

/* Tokens of each sample without the padding at its end, [N] INT32. */
static const char *write_lengths(rp_export_layer *l, int32_t padding) {
    static const int64_t axis[] = {1};
    const char *real = rp_export_real_tokens(l, l->x[1], padding);
    const char *counts = write_counts(l, l->in[0].dim[0], 1.0f, 1.0f);
    const char *last = find_token(l, real, counts);
    const char *row = rp_export_squeeze(l, last, 1, axis);
    const char *y = RP_EXPORT_OP(l, "Cast", row);
    rp_export_int(l, "to", RP_ONNX_INT32);
    return y;
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* Y [T, directions, N, H] or Y_h [directions, N, H] as rows of a batch. */
static const char *arrange_output(rp_export_layer *l, bool last, uint32_t directions,
                                  uint32_t hidden) {
    static const int64_t time_second[] = {2, 0, 1, 3};
    static const int64_t batch_first[] = {1, 0, 2};
    const int64_t wide = (int64_t)directions * hidden;
    const int64_t rows[] = {0, l->in[0].dim[0], wide};
    const int64_t row[] = {0, wide};
    const char *y = rp_export_output(l, last ? 1 : 0);
    y = last ? rp_export_transpose(l, y, 3, batch_first)
             : rp_export_transpose(l, y, 4, time_second);
    return rp_export_reshape(l, y, last ? 2 : 3, last ? row : rows);
}

static const char *write_recurrent(rp_export_layer *l, const recurrent *kind) {
    static const char *const outputs[] = {"all", "last", NULL};
    static const int64_t time_first[] = {1, 0, 2};
    const uint32_t hidden = rp_export_key_u32(l, "hidden", 0);
    const uint32_t directions = rp_export_key_bool(l, "bidirectional", false) ? 2 : 1;
    const bool reverse = rp_export_key_bool(l, "reverse", false);
    const bool last = rp_export_key_word(l, "output", outputs) == 1;
    const bool lengths = rp_export_key_bool(l, "lengths", false);
    const int32_t padding = rp_export_key_i32(l, "padding", 0);
    const char *x = rp_export_transpose(l, l->x[0], 3, time_first);
    const char *w = write_weight(l, kind, hidden, directions, "weight_ih_l0");
    const char *r = write_weight(l, kind, hidden, directions, "weight_hh_l0");
    const char *b = write_bias(l, kind, hidden, directions);
    if (lengths) {
        const char *tokens = write_lengths(l, padding);
        (void)RP_EXPORT_OP(l, kind->op, x, w, r, b, tokens);
    } else {
        (void)RP_EXPORT_OP(l, kind->op, x, w, r, b);
    }
    rp_export_int(l, "hidden_size", hidden);
    rp_export_word(l, "direction",
                   directions == 2 ? "bidirectional"
                   : reverse       ? "reverse"
                                   : "forward");
    if (kind == &gru) {
        rp_export_int(l, "linear_before_reset", 1); /* PyTorch's function */
    }
    rp_export_outputs(l, 2);
    return arrange_output(l, last, directions, hidden);
}

const char *rp_export_write_lstm(rp_export_layer *l) {
    return write_recurrent(l, &lstm);
}

const char *rp_export_write_gru(rp_export_layer *l) {
    return write_recurrent(l, &gru);
}

/* ---- one row --------------------------------------------------------------------------------- */

enum { MEAN, MAX, LAST, FIRST };

static const int64_t rows_axis[] = {1};

static const char *pool_all(rp_export_layer *l, uint32_t mode) {
    if (mode == MEAN || mode == MAX) {
        return rp_export_reduce(l, mode == MEAN ? "ReduceMean" : "ReduceMax", l->x[0], 1, rows_axis,
                                false);
    }
    const char *index = rp_export_id(l, mode == LAST ? (int64_t)l->in[0].dim[0] - 1 : 0);
    const char *y = RP_EXPORT_OP(l, "Gather", l->x[0], index);
    rp_export_int(l, "axis", 1);
    return y;
}

/* The sum of the rows, each times its weight [N, T]. */
static const char *add_rows(rp_export_layer *l, const char *weights) {
    static const int64_t last_axis[] = {2};
    const char *columns = rp_export_unsqueeze(l, weights, 1, last_axis);
    const char *weighted = RP_EXPORT_OP(l, "Mul", l->x[0], columns);
    return rp_export_reduce(l, "ReduceSum", weighted, 1, rows_axis, false);
}

/* The sum over at least one row. */
static const char *mean_of_tokens(rp_export_layer *l, const char *real) {
    const char *count = rp_export_reduce(l, "ReduceSum", real, 1, rows_axis, true);
    const char *one = rp_export_number(l, 1.0);
    const char *divisor = RP_EXPORT_OP(l, "Max", count, one);
    const char *sum = add_rows(l, real);
    return RP_EXPORT_OP(l, "Div", sum, divisor);
}

/* The largest of the real rows; 0 without any, as -infinity times nothing would be no number. */
static const char *largest_of_tokens(rp_export_layer *l, const char *real) {
    static const int64_t last_axis[] = {2};
    const char *zero = rp_export_number(l, 0.0);
    const char *is_real = RP_EXPORT_OP(l, "Greater", real, zero);
    const char *columns = rp_export_unsqueeze(l, is_real, 1, last_axis);
    const char *least = rp_export_number(l, -3.0e38);
    const char *rows = RP_EXPORT_OP(l, "Where", columns, l->x[0], least);
    const char *most = rp_export_reduce(l, "ReduceMax", rows, 1, rows_axis, false);
    const char *any = rp_export_reduce(l, "ReduceMax", real, 1, rows_axis, true);
    const char *has_any = RP_EXPORT_OP(l, "Greater", any, zero);
    return RP_EXPORT_OP(l, "Where", has_any, most, zero);
}

/* The row with the largest count among the real ones. */
static const char *pick_token(rp_export_layer *l, const char *real, bool last) {
    const uint32_t tokens = l->in[0].dim[0];
    const char *counts =
        last ? write_counts(l, tokens, 1.0f, 1.0f) : write_counts(l, tokens, (float)tokens, -1.0f);
    const char *found = find_token(l, real, counts);
    const char *same = RP_EXPORT_OP(l, "Equal", counts, found);
    const char *weights = RP_EXPORT_OP(l, "Cast", same);
    rp_export_int(l, "to", RP_ONNX_FLOAT);
    return add_rows(l, weights);
}

const char *rp_export_write_seqpool(rp_export_layer *l) {
    static const char *const modes[] = {"mean", "max", "last", "first", NULL};
    const uint32_t mode = rp_export_key_word(l, "mode", modes);
    const int32_t padding = rp_export_key_i32(l, "padding", 0);
    if (l->input_count < 2) {
        return pool_all(l, mode);
    }
    const char *real = rp_export_real_tokens(l, l->x[1], padding);
    return mode == MEAN  ? mean_of_tokens(l, real)
           : mode == MAX ? largest_of_tokens(l, real)
                         : pick_token(l, real, mode == LAST);
}
