/* y = x W' + b over the flattened sample; W [out, in].
 *
 * dW = dy' x, db = sum of dy over the batch, dx = dy W. With a fused ReLU dy counts where y > 0. */
#include "nn/products.h"

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

/* A sample is one row. */
static rp_affine affine_of(const rp_layer *layer, const rp_shape *in) {
    const dense_spec *spec = layer->spec;
    return (rp_affine){
        .sizes = {.rows = 1, .in = (uint32_t)rp_shape_count(in), .out = spec->out},
        .bias = spec->bias,
        .relu = spec->relu,
    };
}

static rp_err plan_dense(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const rp_affine affine = affine_of(layer, in);
    out->out = rp_shape_1(affine.sizes.out);
    rp_affine_plan(layer, &affine, out);
    return RP_OK;
}

static void fuse_relu(rp_layer *layer) {
    dense_spec *spec = layer->spec;
    spec->relu = true;
}

static size_t workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan_of,
                              const rp_shape *in, uint32_t n, rp_gemm_choice choice) {
    (void)plan_of;
    const rp_affine affine = affine_of(layer, in);
    return rp_affine_workspace_bytes(&affine, n, choice);
}

static rp_err forward_dense(const rp_layer_call *call) {
    const rp_affine affine = affine_of(call->layer, &call->in[0]);
    return rp_affine_forward(call, &affine);
}

static rp_err backward_dense(const rp_layer_call *call) {
    const rp_affine affine = affine_of(call->layer, &call->in[0]);
    return rp_affine_backward(call, &affine);
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
