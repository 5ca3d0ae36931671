/* Group normalisation that is written as several nodes. */
#include <stdio.h>
#include <string.h>

#include "onnx/layers.h"
#include "onnx/line.h"
#include "onnx/norm_parts.h"
#include "onnx/ops.h"

/* A normalisation of groups without a weight of its own. */
typedef struct {
    const rp_onnx_view *x; /* as the sum has it */
    int64_t groups;
    float eps;
} groups;

/* Whether all elements of input `i` are this number. */
static rp_err is_all(const rp_onnx_visit *visit, uint32_t i, float number, bool *yes) {
    const float *floats;
    uint64_t count;
    const rp_err err = rp_onnx_const_floats(visit, i, &floats, &count);
    *yes = floats != NULL;
    for (uint64_t k = 0; k < count && *yes; k++) {
        *yes = floats[k] == number;
    }
    return err;
}

/* Input `i` of a node is the output of a normalisation with weights of 1 and biases of 0, perhaps
 * reshaped: the channels of a group are one channel of an instance normalisation. */
static rp_err find_groups(const rp_onnx_visit *node, uint32_t i, groups *out, bool *yes) {
    const rp_onnx_model *model = node->graph->model;
    const rp_onnx_value *in = rp_onnx_in(node, i);
    bool zero;
    rp_err err = RP_OK;
    *yes = false;
    if (!in || in->state != RP_ONNX_DYNAMIC ||
        (in->view->op != RP_ONNX_LEAF &&
         (in->view->op != RP_ONNX_RESHAPE || in->view->in[0]->op != RP_ONNX_LEAF))) {
        return RP_OK;
    }
    const uint32_t index = node->graph->value[rp_onnx_view_only_leaf(in->view)].node;
    if (index == RP_ONNX_NONE || !rp_onnx_is_standard(&model->node[index])) {
        return RP_OK;
    }
    const rp_onnx_visit norm = {.graph = node->graph, .node = &model->node[index], .index = index};
    const rp_onnx_value *x = rp_onnx_in(&norm, 0);
    const bool instance = strcmp(norm.node->op, "InstanceNormalization") == 0;
    const bool grouped = strcmp(norm.node->op, "GroupNormalization") == 0 && model->opset < 21;
    if ((!instance && !grouped) || !x || x->state != RP_ONNX_DYNAMIC || x->view->dims.rank < 3 ||
        x->view->dims.dim[0] != node->graph->batch ||
        in->view->dims.dim[0] != x->view->dims.dim[0]) {
        return RP_OK;
    }
    RP_TRY(is_all(&norm, 1, 1.0f, yes));
    RP_TRY(is_all(&norm, 2, 0.0f, &zero));
    *yes = *yes && zero;
    out->eps = rp_onnx_float(norm.node, "epsilon", 1e-5f);
    out->groups = instance ? x->view->dims.dim[1] : rp_onnx_int(norm.node, "num_groups", 1);
    RP_TRY(rp_onnx_view_reshape(node->graph->arena, x->view, &in->view->dims, &out->x));
    *yes = *yes && out->x;
fail:
    return err;
}

/* A weight [C, 1, 1] or [1, C, 1, 1] for images of C channels; [C, 1] for signals. */
static bool is_channel_param(const rp_onnx_visit *visit, uint32_t i, const rp_onnx_dims *x) {
    const rp_onnx_value *in = rp_onnx_in(visit, i);
    if (!in || in->state != RP_ONNX_PARAM || x->rank < 3) {
        return false;
    }
    const rp_onnx_dims *dims = &in->view->dims;
    const uint32_t after = x->rank - 2;
    return dims->rank > after && dims->dim[dims->rank - 1 - after] == x->dim[1] &&
           dims->count == (uint64_t)x->dim[1];
}

/* A weight [C]. */
static bool is_row(const rp_onnx_visit *visit, uint32_t i, const rp_onnx_dims *x) {
    const rp_onnx_value *in = rp_onnx_in(visit, i);
    return in && in->state == RP_ONNX_PARAM && in->view->dims.rank == 1 &&
           in->view->dims.dim[0] == x->dim[1];
}

static rp_err emit(const rp_onnx_visit *visit, const groups *found, const rp_onnx_view *weight,
                   const rp_onnx_view *bias, bool *done) {
    rp_onnx_layer draft;
    uint32_t from = rp_onnx_line_layer(visit->graph, found->x);
    const bool line = from != RP_ONNX_NONE;
    char eps[32] = "";
    rp_err err = RP_OK;
    *done = line;
    if (!line) {
        RP_TRY(rp_onnx_read_layer(visit, found->x, &from, done));
    }
    if (!*done) {
        return RP_OK;
    }
    if (found->eps != 1e-5f) {
        (void)snprintf(eps, sizeof eps, ", eps: %.7g", (double)found->eps);
    }
    RP_TRY(rp_onnx_draft(visit, "groupnorm", from, &draft, "groups: %lld%s",
                         (long long)found->groups, eps));
    rp_onnx_draft_param(&draft, "weight", weight);
    rp_onnx_draft_param(&draft, "bias", bias);
    RP_TRY(line ? rp_onnx_emit_line(visit, &draft, done)
                : rp_onnx_emit_output(visit, &draft, done));
fail:
    return err;
}

rp_err rp_onnx_match_groupnorm(const rp_onnx_visit *visit, bool *done) {
    rp_onnx_visit product;
    groups found = {0};
    rp_err err = RP_OK;
    *done = false;
    for (uint32_t i = 0; i < 2; i++) {
        if (!rp_onnx_in_is(visit, i, RP_ONNX_PARAM) ||
            !rp_onnx_producer(visit, 1 - i, "Mul", &product)) {
            continue;
        }
        for (uint32_t k = 0; k < 2; k++) {
            if (!rp_onnx_in_is(&product, k, RP_ONNX_PARAM)) {
                continue;
            }
            RP_TRY(find_groups(&product, 1 - k, &found, done));
            if (*done && is_channel_param(visit, i, &found.x->dims) &&
                is_channel_param(&product, k, &found.x->dims)) {
                return emit(visit, &found, rp_onnx_in(&product, k)->view,
                            rp_onnx_in(visit, i)->view, done);
            }
            *done = false;
        }
    }
fail:
    return err;
}

/* An instance normalisation is a group normalisation whose groups are channels. */
rp_err rp_onnx_layer_instancenorm(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    groups found = {.eps = rp_onnx_float(visit->node, "epsilon", 1e-5f)};
    *done = false;
    if (!in || in->state != RP_ONNX_DYNAMIC) {
        return RP_OK;
    }
    found.x = in->view;
    found.groups = in->view->dims.rank > 1 ? in->view->dims.dim[1] : 1;
    if ((in->view->dims.rank != 4 && !rp_onnx_is_line(visit, 0)) ||
        !is_row(visit, 1, &in->view->dims) || !is_row(visit, 2, &in->view->dims)) {
        return rp_onnx_refuse_operands(visit, "only images and signals with a weight and a bias "
                                              "that are trained can be normalised here");
    }
    return emit(visit, &found, rp_onnx_in(visit, 1)->view, rp_onnx_in(visit, 2)->view, done);
}
