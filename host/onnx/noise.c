#include "onnx/noise.h"

#include <math.h>

#include "onnx/layers.h"
#include "onnx/ops.h"
#include "onnx/rows.h"

/* Input `i` of a node is a cast of `uniform number < keep`. */
static bool find_draw(const rp_onnx_visit *node, uint32_t i, float *keep) {
    rp_onnx_visit cast;
    rp_onnx_visit less;
    rp_onnx_visit draw;
    return (rp_onnx_producer(node, i, "Cast", &cast) ||
            rp_onnx_producer(node, i, "CastLike", &cast)) &&
           rp_onnx_producer(&cast, 0, "Less", &less) && rp_onnx_const_number(&less, 1, keep) &&
           rp_onnx_producer(&less, 0, "RandomUniformLike", &draw) &&
           rp_onnx_float(draw.node, "low", 0.0f) == 0.0f &&
           rp_onnx_float(draw.node, "high", 1.0f) == 1.0f && *keep > 0.0f && *keep <= 1.0f;
}

/* Input `i` of a node is a mask divided by the chance of a one. */
static bool find_mask(const rp_onnx_visit *node, uint32_t i, float *keep) {
    rp_onnx_visit quotient;
    float divisor;
    if (!rp_onnx_producer(node, i, "Div", &quotient) || !find_draw(&quotient, 0, keep)) {
        return false;
    }
    return rp_onnx_const_number(&quotient, 1, &divisor) && fabsf(divisor - *keep) <= 1e-6f;
}

/* [N, 1, ..]: one number for each sample. */
static bool is_each_sample(const rp_onnx_dims *mask, const rp_onnx_dims *x) {
    return mask->rank == x->rank && mask->dim[0] == x->dim[0] && mask->count == (uint64_t)x->dim[0];
}

rp_err rp_onnx_match_noise(const rp_onnx_visit *visit, bool *done) {
    rp_onnx_layer draft;
    rp_onnx_rows rows;
    rp_err err = RP_OK;
    *done = false;
    for (uint32_t i = 0; i < 2; i++) {
        const rp_onnx_value *x = rp_onnx_in(visit, 1 - i);
        float keep;
        if (!x || x->state != RP_ONNX_DYNAMIC || !find_mask(visit, i, &keep)) {
            continue;
        }
        const rp_onnx_dims *mask = &rp_onnx_in(visit, i)->view->dims;
        const bool sample = is_each_sample(mask, &x->view->dims);
        if (!sample && !rp_onnx_dims_equal(mask, &x->view->dims)) {
            return rp_onnx_refuse(visit, "only elements and samples can be dropped here");
        }
        RP_TRY(rp_onnx_read_rows(visit, 1 - i, &rows, done));
        if (!*done || (sample && rows.form != RP_ONNX_ROWS_PLAIN &&
                       rows.form != RP_ONNX_ROWS_LINE && rows.form != RP_ONNX_ROWS_IMAGE)) {
            *done = false;
            return RP_OK;
        }
        RP_TRY(rp_onnx_draft(visit, sample ? "droppath" : "dropout", rows.from, &draft, "p: %.6g",
                             1.0 - (double)keep));
        return rp_onnx_emit_rows(visit, &draft, &rows, done);
    }
fail:
    return err;
}

/* Numbers that only a pattern can use. */
rp_err rp_onnx_arrange_random(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    rp_err err;
    *done = in && in->view;
    if (!*done) {
        return RP_OK;
    }
    RP_TRY(rp_onnx_refuse(visit, "random numbers that are not those of dropout cannot be drawn "
                                 "here"));
    RP_TRY(rp_onnx_give_expression(visit, 0, false, &in->view->dims));
fail:
    return err;
}
