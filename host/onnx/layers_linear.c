/* Gemm, MatMul and Gather with weights. */
#include <inttypes.h>
#include <string.h>

#include "onnx/attention.h"
#include "onnx/layers.h"
#include "onnx/linear.h"
#include "onnx/ops.h"
#include "onnx/rows.h"

/* A weight as a layer stores it. */
typedef struct {
    const rp_onnx_view *view;
    bool in_out; /* stored [in, out], otherwise [out, in] */
    int64_t out;
} linear_weight;

/* The weight of x times `view`, which is [in, out]. An initialiser is stored as it is; other
 * arrangements are stored in PyTorch's order. */
static rp_err find_weight(const rp_onnx_visit *visit, const rp_onnx_view *view,
                          linear_weight *out) {
    static const int64_t swap[2] = {1, 0};
    const rp_onnx_view *turned;
    const rp_err err = rp_onnx_view_transpose(visit->graph->arena, view, swap, &turned);
    *out = (linear_weight){.out = view->dims.dim[1]};
    if (err == RP_OK) {
        out->in_out = !turned || view->op == RP_ONNX_LEAF;
        out->view = out->in_out ? view : turned;
    }
    return err;
}

/* Emits the product; output 0 has the rows as the node has them. */
static rp_err emit_product(const rp_onnx_visit *visit, const linear_weight *weight,
                           const rp_onnx_view *bias, bool *done) {
    const rp_onnx_graph *graph = visit->graph;
    rp_onnx_layer draft;
    rp_onnx_rows rows;
    rp_err err;
    RP_TRY(rp_onnx_read_rows(visit, 0, &rows, done));
    if (!*done) {
        return RP_OK;
    }
    const bool dense = graph->layer[rows.from].out.dims == 1 && !weight->in_out;
    RP_TRY(rp_onnx_draft(visit, dense ? "dense" : "linear", rows.from, &draft,
                         "out: %" PRId64 "%s%s", weight->out,
                         weight->in_out ? ", layout: in-out" : "", bias ? "" : ", bias: false"));
    rp_onnx_draft_param(&draft, "weight", weight->view);
    if (bias) {
        rp_onnx_draft_param(&draft, "bias", bias);
    }
    RP_TRY(rp_onnx_emit_rows(visit, &draft, &rows, done));
fail:
    return err;
}

rp_err rp_onnx_layer_gemm(const rp_onnx_visit *visit, bool *done) {
    static const int64_t swap[2] = {1, 0};
    const rp_onnx_node *node = visit->node;
    const rp_onnx_view *view;
    const rp_onnx_view *bias = NULL;
    linear_weight weight;
    rp_err err;
    *done = false;
    if (rp_onnx_float(node, "alpha", 1.0f) != 1.0f || rp_onnx_float(node, "beta", 1.0f) != 1.0f ||
        rp_onnx_int(node, "transA", 0) != 0) {
        return rp_onnx_refuse(visit, "alpha, beta and transA cannot be trained here");
    }
    RP_TRY(rp_onnx_read_param(visit, 1, "weight", &view));
    if (view && !rp_onnx_is_zero(visit, 2)) {
        RP_TRY(rp_onnx_read_param(visit, 2, "bias", &bias));
        view = bias ? view : NULL;
    }
    if (!view || view->dims.rank != 2 || !rp_onnx_in_is(visit, 0, RP_ONNX_DYNAMIC)) {
        return RP_OK;
    }
    if (rp_onnx_int(node, "transB", 0) != 0) {
        RP_TRY(rp_onnx_view_transpose(visit->graph->arena, view, swap, &view));
    }
    if (view) {
        RP_TRY(find_weight(visit, view, &weight));
        RP_TRY(emit_product(visit, &weight, bias, done));
    }
fail:
    return err;
}

rp_err rp_onnx_layer_matmul(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *b = rp_onnx_in(visit, 1);
    linear_weight weight;
    rp_err err;
    *done = false;
    if (rp_onnx_in_is(visit, 0, RP_ONNX_DYNAMIC) && b && b->state == RP_ONNX_PARAM &&
        b->view->dims.rank == 2) {
        RP_TRY(find_weight(visit, b->view, &weight));
        RP_TRY(emit_product(visit, &weight, NULL, done));
    } else if (b && b->state == RP_ONNX_CONST) {
        RP_TRY(rp_onnx_refuse(visit, "a product with a computed constant cannot be trained here"));
    } else {
        RP_TRY(rp_onnx_match_attention(visit, done));
    }
fail:
    return err;
}

rp_err rp_onnx_match_bias(const rp_onnx_visit *visit, uint32_t bias, bool *done) {
    const rp_onnx_value *in = rp_onnx_in(visit, bias);
    const rp_onnx_value *sum = rp_onnx_in(visit, 1 - bias);
    const rp_onnx_model *model = visit->graph->model;
    linear_weight weight;
    rp_err err;
    *done = false;
    if (!in || !sum || in->state != RP_ONNX_PARAM || sum->state != RP_ONNX_DYNAMIC ||
        sum->node == RP_ONNX_NONE || strcmp(model->node[sum->node].op, "MatMul") != 0) {
        return RP_OK;
    }
    const rp_onnx_visit product = {
        .graph = visit->graph, .node = &model->node[sum->node], .index = sum->node};
    const uint32_t leaf = rp_onnx_view_only_leaf(sum->view);
    if (!rp_onnx_in_is(&product, 1, RP_ONNX_PARAM) || leaf == RP_ONNX_NONE ||
        visit->graph->value[leaf].layer == RP_ONNX_NONE) {
        return RP_OK;
    }
    RP_TRY(find_weight(&product, rp_onnx_in(&product, 1)->view, &weight));
    if (in->view->dims.count != (uint64_t)weight.out || in->view->dims.rank == 0 ||
        in->view->dims.dim[in->view->dims.rank - 1] != weight.out) {
        return RP_OK;
    }
    /* the sum is a product of its own, with the node of the bias */
    const rp_onnx_node both = {.name = visit->node->name,
                               .op = visit->node->op,
                               .domain = "",
                               .input_count = 1,
                               .input = product.node->input,
                               .output_count = visit->node->output_count,
                               .output = visit->node->output,
                               .scopes = visit->node->scopes};
    const rp_onnx_visit joint = {.graph = visit->graph, .node = &both, .index = visit->index};
    RP_TRY(emit_product(&joint, &weight, in->view, done));
fail:
    return err;
}

rp_err rp_onnx_layer_gather(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *table = rp_onnx_in(visit, 0);
    const rp_onnx_value *ids = rp_onnx_in(visit, 1);
    rp_onnx_layer draft;
    rp_onnx_rows rows;
    rp_err err;
    *done = false;
    if (!table || table->state != RP_ONNX_PARAM || table->view->dims.rank != 2 || !ids ||
        !ids->whole || rp_onnx_int(visit->node, "axis", 0) != 0) {
        return rp_onnx_refuse(visit, "only rows of a weight that token ids choose can be trained "
                                     "here");
    }
    if (ids->view->dims.rank == RP_ONNX_RANK_MAX) {
        return RP_OK;
    }
    RP_TRY(rp_onnx_read_rows(visit, 1, &rows, done));
    if (*done) {
        rows.dims.rank++; /* the new last axis */
        RP_TRY(rp_onnx_draft(visit, "embedding", rows.from, &draft,
                             "count: %" PRId64 ", out: %" PRId64, table->view->dims.dim[0],
                             table->view->dims.dim[1]));
        rp_onnx_draft_param(&draft, "weight", table->view);
        RP_TRY(rp_onnx_emit_rows(visit, &draft, &rows, done));
    }
fail:
    return err;
}
