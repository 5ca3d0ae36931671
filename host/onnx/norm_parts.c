#include "onnx/norm_parts.h"

#include <stdio.h>
#include <string.h>

#include "onnx/layers.h"
#include "onnx/rows.h"

/* What the nodes compute. */
typedef struct {
    const rp_onnx_view *x, *weight, *bias;
    float eps;
    bool centred; /* the mean is subtracted */
} norm;

static bool is_op(const rp_onnx_visit *visit, const char *op) {
    return strcmp(visit->node->op, op) == 0;
}

/* Whether the node is a mean over the last axis that keeps the axis. */
static rp_err is_row_mean(const rp_onnx_visit *mean, bool *yes) {
    const rp_onnx_value *in = rp_onnx_in(mean, 0);
    uint32_t axes;
    *yes = false;
    if (!in || !in->view || in->view->dims.rank == 0) {
        return RP_OK;
    }
    const rp_err err = rp_onnx_reduced_axes(mean, in->view->dims.rank, &axes);
    *yes = axes == 1u << (in->view->dims.rank - 1) && rp_onnx_int(mean->node, "keepdims", 1) != 0;
    return err;
}

/* Whether input `i` of a node is the mean of the rows of the value `of`, input `k` of `other`. */
static rp_err is_mean_of(const rp_onnx_visit *node, uint32_t i, const rp_onnx_visit *other,
                         uint32_t k, bool *yes) {
    rp_onnx_visit mean;
    *yes = rp_onnx_producer(node, i, "ReduceMean", &mean) && rp_onnx_same_value(&mean, 0, other, k);
    return *yes ? is_row_mean(&mean, yes) : RP_OK;
}

/* The square of a value: Pow(d, 2) or Mul(d, d). */
static bool find_square(const rp_onnx_visit *node, uint32_t i, rp_onnx_visit *square) {
    float exponent;
    if (rp_onnx_producer(node, i, "Pow", square)) {
        return rp_onnx_const_number(square, 1, &exponent) && exponent == 2.0f;
    }
    return rp_onnx_producer(node, i, "Mul", square) && rp_onnx_same_value(square, 0, square, 1);
}

/* sqrt(mean(d d) + eps), whose inverse is a factor of d. `square` is the node that squares d. */
static rp_err find_deviation(const rp_onnx_visit *node, uint32_t i, rp_onnx_visit *square,
                             norm *out, bool *yes) {
    rp_onnx_visit root;
    rp_onnx_visit sum;
    rp_onnx_visit mean;
    *yes = false;
    if (!rp_onnx_producer(node, i, "Sqrt", &root) || !rp_onnx_producer(&root, 0, "Add", &sum)) {
        return RP_OK;
    }
    const bool second = rp_onnx_const_number(&sum, 1, &out->eps);
    if ((!second && !rp_onnx_const_number(&sum, 0, &out->eps)) ||
        !rp_onnx_producer(&sum, !second, "ReduceMean", &mean) || !find_square(&mean, 0, square)) {
        return RP_OK;
    }
    return is_row_mean(&mean, yes);
}

/* The node whose input *i is divided: Div(d, s), or Mul(d, 1 / s) in either order. */
static rp_err find_quotient(const rp_onnx_visit *node, uint32_t input, rp_onnx_visit *quotient,
                            rp_onnx_visit *square, norm *out, bool *yes) {
    rp_onnx_visit inverse;
    rp_err err = RP_OK;
    *yes = false;
    if (rp_onnx_producer(node, input, "Div", quotient)) {
        RP_TRY(find_deviation(quotient, 1, square, out, yes));
        *yes = *yes && rp_onnx_same_value(quotient, 0, square, 0);
        return RP_OK;
    }
    if (!rp_onnx_producer(node, input, "Mul", quotient)) {
        return RP_OK;
    }
    for (uint32_t i = 0; i < 2 && !*yes; i++) {
        float one = 0.0f;
        if (rp_onnx_producer(quotient, i, "Reciprocal", &inverse)) {
            RP_TRY(find_deviation(&inverse, 0, square, out, yes));
        } else if (rp_onnx_producer(quotient, i, "Div", &inverse) &&
                   rp_onnx_const_number(&inverse, 0, &one) && one == 1.0f) {
            RP_TRY(find_deviation(&inverse, 1, square, out, yes));
        }
        *yes = *yes && rp_onnx_same_value(quotient, 1 - i, square, 0);
    }
fail:
    return err;
}

/* The normalised rows that are input `i` of a node. */
static rp_err find_normed(const rp_onnx_visit *node, uint32_t i, norm *out, bool *yes) {
    rp_onnx_visit quotient;
    rp_onnx_visit square;
    rp_onnx_visit difference;
    rp_err err;
    RP_TRY(find_quotient(node, i, &quotient, &square, out, yes));
    if (!*yes) {
        return RP_OK;
    }
    out->x = rp_onnx_in(&square, 0)->view;
    if (rp_onnx_producer(&square, 0, "Sub", &difference)) {
        RP_TRY(is_mean_of(&difference, 1, &difference, 0, &out->centred));
        out->x = out->centred ? rp_onnx_in(&difference, 0)->view : out->x;
    }
fail:
    return err;
}

/* A weight [C] for rows of C. */
static bool is_row_param(const rp_onnx_visit *visit, uint32_t i, const rp_onnx_view *x) {
    const rp_onnx_value *in = rp_onnx_in(visit, i);
    const int64_t size = x->dims.rank > 0 ? x->dims.dim[x->dims.rank - 1] : 0;
    return in && in->state == RP_ONNX_PARAM && in->view->dims.rank > 0 &&
           in->view->dims.count == (uint64_t)size &&
           in->view->dims.dim[in->view->dims.rank - 1] == size;
}

/* The normalised rows times a weight. */
static rp_err find_scaled(const rp_onnx_visit *product, norm *out, bool *yes) {
    rp_err err = RP_OK;
    *yes = false;
    for (uint32_t i = 0; i < 2 && !*yes; i++) {
        if (rp_onnx_in_is(product, i, RP_ONNX_PARAM)) {
            RP_TRY(find_normed(product, 1 - i, out, yes));
            *yes = *yes && is_row_param(product, i, out->x);
            out->weight = *yes ? rp_onnx_in(product, i)->view : NULL;
        }
    }
fail:
    return err;
}

static rp_err emit(const rp_onnx_visit *visit, const norm *found, bool *done) {
    const bool usual = found->eps == (found->centred ? 1e-5f : 1e-6f);
    rp_onnx_layer draft;
    rp_onnx_rows rows;
    char eps[32] = "";
    rp_err err;
    RP_TRY(rp_onnx_read_view_rows(visit, found->x, &rows, done));
    if (!*done) {
        return RP_OK;
    }
    if (!usual) {
        (void)snprintf(eps, sizeof eps, ", eps: %.7g", (double)found->eps);
    }
    RP_TRY(rp_onnx_draft(visit, found->centred ? "layernorm" : "rmsnorm", rows.from, &draft,
                         "dims: 1%s", eps));
    rp_onnx_draft_param(&draft, "weight", found->weight);
    if (found->centred) {
        rp_onnx_draft_param(&draft, "bias", found->bias);
    }
    RP_TRY(rp_onnx_emit_rows(visit, &draft, &rows, done));
fail:
    return err;
}

rp_err rp_onnx_match_norm(const rp_onnx_visit *visit, bool *done) {
    rp_onnx_visit product = *visit;
    norm found = {0};
    rp_err err = RP_OK;
    *done = false;
    if (is_op(visit, "Mul")) {
        RP_TRY(find_scaled(visit, &found, done));
        *done = *done && !found.centred; /* a sum with a bias follows */
    } else {
        for (uint32_t i = 0; i < 2 && !*done; i++) {
            if (rp_onnx_in_is(visit, i, RP_ONNX_PARAM) &&
                rp_onnx_producer(visit, 1 - i, "Mul", &product)) {
                RP_TRY(find_scaled(&product, &found, done));
                *done = *done && found.centred && is_row_param(visit, i, found.x);
                found.bias = *done ? rp_onnx_in(visit, i)->view : NULL;
            }
        }
    }
    if (*done) {
        RP_TRY(emit(visit, &found, done));
    }
fail:
    return err;
}
