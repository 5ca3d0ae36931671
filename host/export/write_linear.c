/* Products with weights, and tables of weights. */
#include <math.h>

#include "export/layer.h"
#include "export/merge.h"

static const int64_t turn[] = {1, 0};

/* y = x W' + bias of rows [N, C]: one Gemm. */
static const char *write_gemm(rp_export_layer *l, const char *x, bool in_out) {
    const char *w = rp_export_param(l, "weight");
    const bool has_bias = rp_export_has(l, "bias");
    const char *bias = has_bias ? rp_export_param(l, "bias") : "";
    const char *y = has_bias ? RP_EXPORT_OP(l, "Gemm", x, w, bias) : RP_EXPORT_OP(l, "Gemm", x, w);
    rp_export_int(l, "transB", !in_out);
    return y;
}

/* y = x W' of the last axis; `w` is stored [out, in]. */
static const char *multiply(rp_export_layer *l, const char *x, const char *w) {
    const char *turned = rp_export_transpose(l, w, 2, turn);
    return RP_EXPORT_OP(l, "MatMul", x, turned);
}

const char *rp_export_write_dense(rp_export_layer *l) {
    const char *x = l->x[0];
    rp_export_ignore(l, "out");
    rp_export_ignore(l, "bias");
    if (l->in[0].dims > 1) {
        x = RP_EXPORT_OP(l, "Flatten", x);
        rp_export_int(l, "axis", 1);
    }
    return write_gemm(l, x, false);
}

/* y + scale (x A') B' */
static const char *add_correction(rp_export_layer *l, const char *y, rp_node *lora) {
    double scale = 1.0;
    double p = 0.0;
    rp_err err;
    RP_TRY(rp_export_lora_scale(lora, &scale));
    RP_TRY(rp_node_f64(lora, "dropout", 0.0, 1.0, &p));
    RP_TRY(rp_node_done(lora));
    const char *x = rp_export_dropout(l, l->x[0], p);
    const char *low = multiply(l, x, rp_export_param(l, "lora_A.weight"));
    const char *high = multiply(l, low, rp_export_param(l, "lora_B.weight"));
    const char *factor = rp_export_number(l, scale);
    const char *scaled = RP_EXPORT_OP(l, "Mul", high, factor);
    return RP_EXPORT_OP(l, "Add", y, scaled);
fail:
    l->graph->err = l->graph->err == RP_OK ? err : l->graph->err;
    return "";
}

const char *rp_export_write_linear(rp_export_layer *l) {
    static const char *const layouts[] = {"out-in", "in-out", NULL};
    const bool in_out = rp_export_key_word(l, "layout", layouts) == 1;
    rp_node *lora = rp_node_find(l->keys, "lora");
    const char *y;
    rp_export_ignore(l, "out");
    rp_export_ignore(l, "bias");
    if (l->in[0].dims == 1) {
        y = write_gemm(l, l->x[0], in_out);
    } else {
        const char *w = rp_export_param(l, "weight");
        y = in_out ? RP_EXPORT_OP(l, "MatMul", l->x[0], w) : multiply(l, l->x[0], w);
        if (rp_export_has(l, "bias")) {
            const char *bias = rp_export_param(l, "bias");
            y = RP_EXPORT_OP(l, "Add", y, bias);
        }
    }
    return rp_export_has(l, "lora_A.weight") ? add_correction(l, y, lora) : y;
}

const char *rp_export_write_embedding(rp_export_layer *l) {
    rp_export_ignore(l, "count");
    rp_export_ignore(l, "out");
    rp_export_ignore(l, "padding"); /* its row does not change in training */
    rp_export_ignore(l, "std");
    const char *table = rp_export_param(l, "weight");
    return RP_EXPORT_OP(l, "Gather", table, l->x[0]);
}

const char *rp_export_write_position(rp_export_layer *l) {
    const uint32_t length = rp_export_key_u32(l, "length", 0);
    const uint32_t tokens = l->in[0].dim[0];
    const char *table = rp_export_param(l, "weight");
    rp_export_ignore(l, "std");
    if (tokens < length) {
        table = rp_export_slice(l, table, 0, 0, tokens);
    }
    return RP_EXPORT_OP(l, "Add", l->x[0], table);
}

const char *rp_export_write_sinusoid(rp_export_layer *l) {
    const int64_t dim[] = {l->in[0].dim[0], l->in[0].dim[1]};
    float *waves = NULL;
    RP_EXPORT_NEW(l->graph, (size_t)(dim[0] * dim[1]), &waves);
    for (int64_t i = 0; waves && i < dim[0] * dim[1]; i++) {
        const int64_t column = i % dim[1];
        const double rate = pow(10000.0, -(double)(column / 2 * 2) / (double)dim[1]);
        const double angle = (double)(i / dim[1]) * rate;
        waves[i] = (float)(column % 2 == 0 ? sin(angle) : cos(angle));
    }
    const char *table = rp_export_table(l, 2, dim, waves);
    return RP_EXPORT_OP(l, "Add", l->x[0], table);
}

const char *rp_export_write_prepend(rp_export_layer *l) {
    const int64_t one_row[] = {1, l->in[0].dim[1]};
    const char *row = rp_export_param(l, "weight");
    rp_export_ignore(l, "std");
    const char *batch = rp_export_batch(l, l->x[0]);
    const char *rest = rp_export_whole(l, 2, one_row);
    const char *shape = RP_EXPORT_OP(l, "Concat", batch, rest);
    rp_export_int(l, "axis", 0);
    const char *rows = RP_EXPORT_OP(l, "Expand", row, shape);
    const char *y = RP_EXPORT_OP(l, "Concat", rows, l->x[0]);
    rp_export_int(l, "axis", 1);
    return y;
}

const char *rp_export_write_scale(rp_export_layer *l) {
    const char *weight = rp_export_param(l, "weight");
    rp_export_ignore(l, "init");
    return RP_EXPORT_OP(l, "Mul", l->x[0], weight);
}
