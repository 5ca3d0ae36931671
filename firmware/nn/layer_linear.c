/* y = x W' + b on the last axis of a sample [.., in], so all n samples are one matrix of rows.
 *
 * W is stored [out, in], with `layout: in-out` [in, out]. dense is the kind that flattens the
 * sample. dW = dy' x and db = sum of dy, over all rows; dx = dy W. With a fused ReLU dy counts
 * where y > 0. */
#include "nn/products.h"

typedef struct {
    uint32_t out, in_out;
    bool bias, relu;
} linear_spec;

static rp_err parse_linear(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    static const char *const layouts[] = {"out-in", "in-out", NULL};
    linear_spec *spec = layer->spec;
    rp_err err;
    *spec = (linear_spec){.bias = true};
    RP_TRY(rp_layer_read_out(keys, data, &spec->out));
    RP_TRY(rp_node_bool(keys, "bias", &spec->bias));
    RP_TRY(rp_node_word(keys, "layout", layouts, &spec->in_out));
    return RP_OK;
fail:
    return err;
}

static rp_affine affine_of(const rp_layer *layer, const rp_shape *in) {
    const linear_spec *spec = layer->spec;
    const uint32_t wide = in->dim[in->dims - 1];
    return (rp_affine){
        .sizes = {.rows = (uint32_t)rp_shape_count(in) / wide,
                  .in = wide,
                  .out = spec->out,
                  .in_out = spec->in_out == 1},
        .bias = spec->bias,
        .relu = spec->relu,
    };
}

static rp_err plan_linear(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    if (in->dims == 0) {
        return rp_fail(RP_ERR_SHAPE, "layer '%s': linear needs samples [C] or [.., C]",
                       layer->name);
    }
    const rp_affine affine = affine_of(layer, in);
    out->out = *in;
    out->out.dim[in->dims - 1] = affine.sizes.out;
    rp_affine_plan(layer, &affine, out);
    return RP_OK;
}

static void fuse_relu(rp_layer *layer) {
    linear_spec *spec = layer->spec;
    spec->relu = true;
}

static size_t workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan_of,
                              const rp_shape *in, uint32_t n, rp_gemm_choice choice) {
    (void)plan_of;
    const rp_affine affine = affine_of(layer, in);
    return rp_affine_workspace_bytes(&affine, n, choice);
}

static rp_err forward_linear(const rp_layer_call *call) {
    const rp_affine affine = affine_of(call->layer, &call->in[0]);
    return rp_affine_forward(call, &affine);
}

static rp_err backward_linear(const rp_layer_call *call) {
    const rp_affine affine = affine_of(call->layer, &call->in[0]);
    return rp_affine_backward(call, &affine);
}

const rp_layer_kind rp_layer_linear = {
    .name = "linear",
    .keys = "out, bias, layout",
    .source = "torch.nn.Linear; layout in-out: Conv1D of GPT-2",
    .spec_bytes = sizeof(linear_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_linear,
    .plan = plan_linear,
    .workspace_bytes = workspace_bytes,
    .fuse_relu = fuse_relu,
    .forward = forward_linear,
    .backward = backward_linear,
};
