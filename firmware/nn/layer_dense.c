/* y = x W' + b over the flattened sample; W [out, in].
 *
 * dW = dy' x, db = sum of dy over the batch, dx = dy W. With a fused ReLU dy counts where y > 0.
 * Workspace: what the GEMMs need, then masked dy, then the chunks of db. */
#include "nn/layer_common.h"

#include <math.h>

enum { WEIGHT, BIAS };

typedef struct {
    uint32_t out;
    bool bias, relu;
} dense_spec;

static rp_err parse_dense(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    dense_spec *spec = layer->spec;
    rp_err err;
    *spec = (dense_spec){.bias = true};
    RP_TRY(rp_layer_read_out(keys, data, &spec->out));
    RP_TRY(rp_node_bool(keys, "bias", &spec->bias));
    return RP_OK;
fail:
    return err;
}

static rp_err plan_dense(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const dense_spec *spec = layer->spec;
    const uint32_t wide = (uint32_t)rp_shape_count(in);
    const float bound = 1.0f / sqrtf((float)wide);
    const double products = (double)wide * spec->out;
    *out = (rp_layer_plan){
        .out = rp_shape_1(spec->out),
        .param_count = spec->bias ? 2 : 1,
        .param = {[WEIGHT] = {"weight", rp_shape_2(spec->out, wide), RP_PARAM_TRAINED,
                              RP_INIT_UNIFORM, bound},
                  [BIAS] = {"bias", rp_shape_1(spec->out), RP_PARAM_TRAINED, RP_INIT_UNIFORM,
                            bound}},
        .needs_x = !layer->frozen,
        .needs_y = spec->relu,
        .flops_forward = 2 * products,
        .flops_backward = (layer->frozen ? 2 : 4) * products,
    };
    return RP_OK;
}

static void fuse_relu(rp_layer *layer) {
    dense_spec *spec = layer->spec;
    spec->relu = true;
}

/* One of the three products, C = A B. */
typedef struct {
    rp_mat c, a, b;
} product;

static rp_mat rows_of(rp_rows of, uint32_t n, uint32_t wide) {
    return rp_mat_plain(of.buffer, of.first, n, wide);
}

/* Buffers may be NULL when only sizes are computed. */
static product forward_product(const rp_layer_plan *plan_of, uint32_t n, rp_rows y, rp_rows x,
                               const rp_buffer *w) {
    const uint32_t out = plan_of->param[WEIGHT].shape.dim[0];
    const uint32_t in = plan_of->param[WEIGHT].shape.dim[1];
    return (product){rows_of(y, n, out), rows_of(x, n, in),
                     rp_mat_transposed(rp_mat_plain(w, 0, out, in))};
}

static product weight_product(const rp_layer_plan *plan_of, uint32_t n, const rp_buffer *dw,
                              rp_rows dy, rp_rows x) {
    const uint32_t out = plan_of->param[WEIGHT].shape.dim[0];
    const uint32_t in = plan_of->param[WEIGHT].shape.dim[1];
    return (product){rp_mat_plain(dw, 0, out, in), rp_mat_transposed(rows_of(dy, n, out)),
                     rows_of(x, n, in)};
}

static product input_product(const rp_layer_plan *plan_of, uint32_t n, rp_rows dx, rp_rows dy,
                             const rp_buffer *w) {
    const uint32_t out = plan_of->param[WEIGHT].shape.dim[0];
    const uint32_t in = plan_of->param[WEIGHT].shape.dim[1];
    return (product){rows_of(dx, n, in), rows_of(dy, n, out), rp_mat_plain(w, 0, out, in)};
}

/* Floats at the start of the workspace that belong to the GEMMs. */
static size_t gemm_floats(const rp_layer_plan *plan_of, uint32_t n, rp_gemm_choice choice) {
    const rp_rows none = {NULL, 0, 0};
    const product products[] = {forward_product(plan_of, n, none, none, NULL),
                                weight_product(plan_of, n, NULL, none, none),
                                input_product(plan_of, n, none, none, NULL)};
    size_t most = 0;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        const product *p = &products[i];
        size_t bytes = rp_gemm_workspace_bytes(choice, &p->c, &p->a, &p->b);
        most = bytes > most ? bytes : most;
    }
    return (most + sizeof(float) - 1) / sizeof(float);
}

static size_t workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan_of,
                              const rp_shape *in, uint32_t n, rp_gemm_choice choice) {
    (void)in;
    const dense_spec *spec = layer->spec;
    size_t floats = gemm_floats(plan_of, n, choice);
    floats += spec->relu ? (size_t)n * spec->out : 0;
    floats += spec->bias ? rp_layer_bias_floats(n, spec->out, 1) : 0;
    return floats * sizeof(float);
}

static rp_err run_product(const rp_layer_call *call, const product *p,
                          const rp_epilogue *epilogue) {
    return rp_gemm_run(call->device, &p->c, &p->a, &p->b, epilogue, call->workspace);
}

static rp_err forward_dense(const rp_layer_call *call) {
    const dense_spec *spec = call->layer->spec;
    const product p = forward_product(call->plan, call->n, rp_layer_rows(call->y, 0),
                                      rp_layer_rows(call->x[0], 0), call->param[WEIGHT]->buffer);
    return run_product(call, &p,
                       &(rp_epilogue){.bias_axis = spec->bias ? RP_BIAS_COL : RP_BIAS_NONE,
                                      .bias = spec->bias ? call->param[BIAS]->buffer : NULL,
                                      .relu = spec->relu});
}

static rp_err backward_dense(const rp_layer_call *call) {
    const dense_spec *spec = call->layer->spec;
    rp_err err;
    size_t used = gemm_floats(call->plan, call->n, rp_device_gemm(call->device));
    rp_rows dy = rp_layer_rows(call->dy, 0);
    if (spec->relu) {
        dy = (rp_rows){call->workspace, used, 0};
        RP_TRY(rp_layer_mask_positive(call, call->workspace, used));
        used += (size_t)call->n * spec->out;
    }
    if (call->want_dx && call->dx[0]) {
        const product p = input_product(call->plan, call->n, rp_layer_rows(call->dx[0], 0), dy,
                                        call->param[WEIGHT]->buffer);
        RP_TRY(run_product(call, &p, &(rp_epilogue){.accumulate = call->dx_add[0]}));
    }
    if (call->want_dw) {
        const product p = weight_product(call->plan, call->n, call->dparam[WEIGHT]->buffer, dy,
                                         rp_layer_rows(call->x[0], 0));
        RP_TRY(run_product(call, &p, &(rp_epilogue){.accumulate = call->accumulate}));
        if (spec->bias) {
            RP_TRY(
                rp_layer_bias_gradient(call, call->dparam[BIAS]->buffer, used, dy, spec->out, 1));
        }
    }
    return RP_OK;
fail:
    return err;
}

const rp_layer_kind rp_layer_dense = {
    .name = "dense",
    .keys = "out, bias",
    .source = "torch.nn.Linear",
    .spec_bytes = sizeof(dense_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_dense,
    .plan = plan_dense,
    .workspace_bytes = workspace_bytes,
    .fuse_relu = fuse_relu,
    .forward = forward_dense,
    .backward = backward_dense,
};
