/* Normalisation. */
#include <stdio.h>

#include "onnx/layers.h"
#include "onnx/line.h"
#include "onnx/ops.h"
#include "onnx/rows.h"

/* ", eps: 1e-06" unless it is the usual value. */
static const char *eps_text(float eps, float usual, const char *before, char text[32]) {
    text[0] = '\0';
    if (eps != usual) {
        (void)snprintf(text, 32, "%seps: %.7g", before, (double)eps);
    }
    return text;
}

/* Whether each channel has one element. */
static bool is_row(const rp_onnx_view *view) {
    return view->dims.rank == 1;
}

/* Whether the node trains or evaluates is no part of the net: PyTorch's exporters state what the
 * export happened in. */
rp_err rp_onnx_layer_batchnorm(const rp_onnx_visit *visit, bool *done) {
    static const char *const names[] = {"weight", "bias", "running_mean", "running_var"};
    const float momentum = 1.0f - rp_onnx_float(visit->node, "momentum", 0.9f);
    const rp_onnx_view *param[4];
    rp_onnx_layer draft;
    uint32_t from;
    char eps[32];
    char rate[32] = "";
    rp_err err;
    *done = false;
    for (uint32_t i = 0; i < 4; i++) {
        RP_TRY(rp_onnx_read_param(visit, i + 1, names[i], &param[i]));
        if (!param[i] || !is_row(param[i])) {
            return RP_OK;
        }
    }
    const bool line = rp_onnx_is_line(visit, 0);
    RP_TRY(line ? rp_onnx_read_line(visit, 0, &from, done)
                : rp_onnx_read_input(visit, 0, &from, done));
    if (!*done) {
        return RP_OK;
    }
    (void)eps_text(rp_onnx_float(visit->node, "epsilon", 1e-5f), 1e-5f, "", eps);
    if (momentum < 0.0999995f || momentum > 0.1000005f) { /* the difference has five good digits */
        (void)snprintf(rate, sizeof rate, "%smomentum: %.5g", eps[0] ? ", " : "", (double)momentum);
    }
    RP_TRY(rp_onnx_draft(visit, "batchnorm", from, &draft, "%s%s", eps, rate));
    for (uint32_t i = 0; i < 4; i++) {
        rp_onnx_draft_param(&draft, names[i], param[i]);
    }
    RP_TRY(line ? rp_onnx_emit_line(visit, &draft, done)
                : rp_onnx_emit_output(visit, &draft, done));
fail:
    return err;
}

/* Reads rows for a norm over the last axes: two of a signal are not two of an image. */
static rp_err read_rows(const rp_onnx_visit *visit, uint32_t axes, rp_onnx_rows *rows, bool *done) {
    rp_err err;
    RP_TRY(rp_onnx_read_rows(visit, 0, rows, done));
    if (*done && rows->form == RP_ONNX_ROWS_LINE && axes > 1) {
        rows->form = RP_ONNX_ROWS_PLAIN;
        RP_TRY(rp_onnx_read_input(visit, 0, &rows->from, done));
    }
fail:
    return err;
}

/* Emits a kind with a weight and, if `has_bias`, a bias. `axes` is 0 if channels are normalised. */
static rp_err emit_norm(const rp_onnx_visit *visit, const char *kind, const char *keys,
                        uint32_t axes, bool has_bias, bool *done) {
    const rp_onnx_view *weight;
    const rp_onnx_view *bias = NULL;
    rp_onnx_layer draft;
    rp_onnx_rows rows;
    rp_err err;
    *done = false;
    RP_TRY(rp_onnx_read_param(visit, 1, "weight", &weight));
    if (weight && has_bias) {
        RP_TRY(rp_onnx_read_param(visit, 2, "bias", &bias));
    }
    if (!weight || (has_bias && !bias)) {
        return RP_OK;
    }
    RP_TRY(read_rows(visit, axes, &rows, done));
    if (!*done) {
        return RP_OK;
    }
    RP_TRY(rp_onnx_draft(visit, kind, rows.from, &draft, "%s", keys));
    rp_onnx_draft_param(&draft, "weight", weight);
    if (bias) {
        rp_onnx_draft_param(&draft, "bias", bias);
    }
    RP_TRY(rp_onnx_emit_rows(visit, &draft, &rows, done));
fail:
    return err;
}

/* How many last axes are normalised; 0: the batch is among them, or the shape is unknown. */
static uint32_t count_axes(const rp_onnx_visit *visit) {
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    const int64_t rank = in && in->view ? in->view->dims.rank : 0;
    int64_t axis = rp_onnx_int(visit->node, "axis", -1);
    axis += axis < 0 ? rank : 0;
    return axis >= 1 && axis < rank ? (uint32_t)(rank - axis) : 0;
}

/* A norm over the last axes, whose kind has this eps by default. */
static rp_err emit_last_axes(const rp_onnx_visit *visit, const char *kind, float usual_eps,
                             bool has_bias, bool *done) {
    const uint32_t axes = count_axes(visit);
    char eps[32];
    char keys[80];
    *done = false;
    if (axes == 0) {
        return RP_OK;
    }
    (void)snprintf(keys, sizeof keys, "dims: %u%s", axes,
                   eps_text(rp_onnx_float(visit->node, "epsilon", 1e-5f), usual_eps, ", ", eps));
    return emit_norm(visit, kind, keys, axes, has_bias, done);
}

rp_err rp_onnx_layer_layernorm(const rp_onnx_visit *visit, bool *done) {
    return emit_last_axes(visit, "layernorm", 1e-5f, true, done);
}

rp_err rp_onnx_layer_rmsnorm(const rp_onnx_visit *visit, bool *done) {
    return emit_last_axes(visit, "rmsnorm", 1e-6f, false, done);
}

/* From opset 21 on weight and bias have an element for each channel. */
rp_err rp_onnx_layer_groupnorm(const rp_onnx_visit *visit, bool *done) {
    char eps[32];
    char keys[80];
    *done = false;
    if (visit->graph->model->opset < 21) {
        return rp_onnx_refuse(visit, "below opset 21 its weight is one of groups, which cannot be "
                                     "trained here; export with opset 21 or later");
    }
    (void)snprintf(keys, sizeof keys, "groups: %lld%s",
                   (long long)rp_onnx_int(visit->node, "num_groups", 1),
                   eps_text(rp_onnx_float(visit->node, "epsilon", 1e-5f), 1e-5f, ", ", eps));
    return emit_norm(visit, "groupnorm", keys, 0, true, done);
}
