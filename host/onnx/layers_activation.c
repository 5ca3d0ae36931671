/* Activations of one node, Dropout, and Softmax at the end. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "onnx/activation.h"
#include "onnx/layers.h"
#include "onnx/line.h"
#include "onnx/ops.h"
#include "onnx/rows.h"

static rp_err emit(const rp_onnx_visit *visit, const char *kind, const char *key, float value,
                   float usual, bool *done) {
    rp_onnx_layer draft;
    rp_onnx_rows rows;
    char keys[64] = "";
    rp_err err;
    RP_TRY(rp_onnx_read_rows(visit, 0, &rows, done));
    if (!*done) {
        return RP_OK;
    }
    if (value != usual) {
        (void)snprintf(keys, sizeof keys, "%s: %.7g", key, (double)value);
    }
    RP_TRY(rp_onnx_draft(visit, kind, rows.from, &draft, "%s", keys));
    RP_TRY(rp_onnx_emit_rows(visit, &draft, &rows, done));
fail:
    return err;
}

rp_err rp_onnx_layer_plain(const rp_onnx_visit *visit, bool *done) {
    static const char *const kinds[][2] = {{"Relu", "relu"},           {"Tanh", "tanh"},
                                           {"Sigmoid", "sigmoid"},     {"Softplus", "softplus"},
                                           {"HardSwish", "hardswish"}, {"Mish", "mish"}};
    *done = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(visit->node->op, kinds[i][0]) == 0) {
            return emit(visit, kinds[i][1], "", 0.0f, 0.0f, done);
        }
    }
    return RP_OK;
}

rp_err rp_onnx_layer_leaky_relu(const rp_onnx_visit *visit, bool *done) {
    return emit(visit, "leaky_relu", "slope", rp_onnx_float(visit->node, "alpha", 0.01f), 0.01f,
                done);
}

rp_err rp_onnx_layer_elu(const rp_onnx_visit *visit, bool *done) {
    return emit(visit, "elu", "alpha", rp_onnx_float(visit->node, "alpha", 1.0f), 1.0f, done);
}

rp_err rp_onnx_layer_hard_sigmoid(const rp_onnx_visit *visit, bool *done) {
    const float alpha = rp_onnx_float(visit->node, "alpha", 0.2f);
    const float beta = rp_onnx_float(visit->node, "beta", 0.5f);
    *done = false;
    if (fabsf(alpha - 1.0f / 6.0f) > 1e-6f || beta != 0.5f) {
        return rp_onnx_refuse(visit,
                              "alpha %g and beta %g cannot be trained here; expected 1/6 and "
                              "0.5",
                              (double)alpha, (double)beta);
    }
    return emit(visit, "hardsigmoid", "", 0.0f, 0.0f, done);
}

rp_err rp_onnx_layer_gelu(const rp_onnx_visit *visit, bool *done) {
    const bool tanh_form = strcmp(rp_onnx_text(visit->node, "approximate", "none"), "tanh") == 0;
    rp_onnx_layer draft;
    rp_onnx_rows rows;
    rp_err err;
    RP_TRY(rp_onnx_read_rows(visit, 0, &rows, done));
    if (*done) {
        RP_TRY(rp_onnx_draft(visit, "gelu", rows.from, &draft, "%s",
                             tanh_form ? "approximate: tanh" : ""));
        RP_TRY(rp_onnx_emit_rows(visit, &draft, &rows, done));
    }
fail:
    return err;
}

/* One slope, or [C] for rows [N, C], or [C, 1, 1] for images [N, C, H, W], or [C, 1] for signals.
 */
static bool has_slopes(const rp_onnx_dims *x, const rp_onnx_dims *slope, bool line) {
    const uint32_t after = x->rank == 4 ? 2 : line ? 1 : 0;
    return slope->count == 1 || ((x->rank == 2 || x->rank == 4 || line) && slope->rank > after &&
                                 slope->dim[slope->rank - 1 - after] == x->dim[1] &&
                                 slope->count == (uint64_t)x->dim[1]);
}

rp_err rp_onnx_layer_prelu(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_view *slope;
    rp_onnx_layer draft;
    uint32_t from;
    rp_err err;
    *done = false;
    RP_TRY(rp_onnx_read_param(visit, 1, "slope", &slope));
    if (!slope) {
        return RP_OK;
    }
    const bool line = rp_onnx_is_line(visit, 0);
    if (!has_slopes(&rp_onnx_in(visit, 0)->view->dims, &slope->dims, line)) {
        return rp_onnx_refuse(visit, "its slopes are not those of channels");
    }
    RP_TRY(line ? rp_onnx_read_line(visit, 0, &from, done)
                : rp_onnx_read_input(visit, 0, &from, done));
    if (*done) {
        RP_TRY(rp_onnx_draft(visit, "prelu", from, &draft, "%s",
                             slope->dims.count == 1 ? "shared: true" : ""));
        rp_onnx_draft_param(&draft, "weight", slope);
        RP_TRY(line ? rp_onnx_emit_line(visit, &draft, done)
                    : rp_onnx_emit_output(visit, &draft, done));
    }
fail:
    return err;
}

/* The end of a formula that may be an activation. */
rp_err rp_onnx_layer_formula(const rp_onnx_visit *visit, bool *done) {
    rp_err err;
    RP_TRY(rp_onnx_match_activation(visit, done));
    if (!*done) {
        RP_TRY(rp_onnx_refuse_operands(visit, "this operator cannot be trained here"));
    }
fail:
    return err;
}

rp_err rp_onnx_layer_clip(const rp_onnx_visit *visit, bool *done) {
    rp_err err;
    RP_TRY(rp_onnx_match_activation(visit, done));
    if (!*done) {
        RP_TRY(rp_onnx_refuse(visit, "only bounds of 0 and 6 can be trained here"));
    }
fail:
    return err;
}

/* Whether it drops now is no part of the net, nor is its seed. */
rp_err rp_onnx_layer_dropout(const rp_onnx_visit *visit, bool *done) {
    float p = 0.5f;
    *done = false;
    if (rp_onnx_in(visit, 1) && !rp_onnx_const_number(visit, 1, &p)) {
        return rp_onnx_refuse(visit, "its ratio is not constant");
    }
    return emit(visit, "dropout", "p", p, 0.5f, done);
}

/* The last node of a net that classifies: the loss computes it. */
rp_err rp_onnx_layer_softmax(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_model *model = visit->graph->model;
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    const rp_onnx_node *node = visit->node;
    const int64_t axis = rp_onnx_int(node, "axis", -1);
    bool is_end = false;
    for (uint32_t i = 0; i < model->output_count && node->output_count > 0; i++) {
        is_end |= model->output[i] == node->output[0];
    }
    *done = in && is_end && (axis == -1 || axis == (int64_t)in->view->dims.rank - 1);
    if (!*done) {
        return RP_OK;
    }
    rp_onnx_give_view(visit, 0, in->state, in->whole, in->view);
    visit->graph->end = node->op;
    return rp_onnx_add_finding(visit->graph->notes, "assumed",
                               "%s at the end is left out, because `loss: cross-entropy` computes "
                               "it",
                               node->op);
}
