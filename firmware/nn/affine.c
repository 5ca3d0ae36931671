#include "nn/affine.h"

#include <math.h>

#include "nn/products.h"

enum { WEIGHT, BIAS };

static bool flattens(const rp_layer *layer) {
    const rp_affine_facts *facts = layer->kind->facts;
    return facts->flattens;
}

rp_err rp_affine_parse(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    static const char *const layouts[] = {"out-in", "in-out", NULL};
    rp_affine_spec *spec = layer->spec;
    rp_err err;
    *spec = (rp_affine_spec){.bias = true};
    RP_TRY(rp_layer_read_out(keys, data, &spec->out));
    RP_TRY(rp_node_bool(keys, "bias", &spec->bias));
    RP_TRY(flattens(layer) ? RP_OK : rp_node_word(keys, "layout", layouts, &spec->in_out));
    RP_TRY(flattens(layer) ? RP_OK : rp_lora_parse(layer, keys, &spec->lora));
fail:
    return err;
}

/* The products of n samples. */
static rp_products sizes_of(const rp_layer *layer, const rp_shape *in, uint32_t n) {
    const rp_affine_spec *spec = layer->spec;
    const uint32_t count = (uint32_t)rp_shape_count(in);
    const uint32_t wide = flattens(layer) ? count : in->dim[in->dims - 1];
    return (rp_products){
        .rows = n * (count / wide), .in = wide, .out = spec->out, .in_out = spec->in_out == 1};
}

rp_err rp_affine_plan(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const rp_affine_spec *spec = layer->spec;
    if (in->dims == 0) {
        return rp_fail(RP_ERR_SHAPE, "layer '%s': %s needs samples with at least one axis",
                       layer->name, layer->kind->name);
    }
    const rp_products sizes = sizes_of(layer, in, 1);
    const float bound = 1.0f / sqrtf((float)sizes.in);
    const double products = (double)sizes.rows * sizes.in * sizes.out;
    const rp_shape weight =
        sizes.in_out ? rp_shape_2(sizes.in, sizes.out) : rp_shape_2(sizes.out, sizes.in);
    rp_shape shape = *in;
    shape.dim[in->dims - 1] = sizes.out;
    *out = (rp_layer_plan){
        .out = flattens(layer) ? rp_shape_1(sizes.out) : shape,
        .param_count = spec->bias ? 2 : 1,
        .param = {[WEIGHT] = {"weight", weight, RP_PARAM_TRAINED, RP_INIT_UNIFORM, bound},
                  [BIAS] = {"bias", rp_shape_1(sizes.out), RP_PARAM_TRAINED, RP_INIT_UNIFORM,
                            bound}},
        .needs_x = !layer->frozen,
        .needs_y = spec->relu,
        .flops_forward = 2 * products,
        .flops_backward = (layer->frozen ? 2 : 4) * products,
    };
    return spec->lora.rank ? rp_lora_plan(layer, &spec->lora, &sizes, out) : RP_OK;
}

/* A sum with a second product is complete only after both. */
bool rp_affine_fuse_relu(rp_layer *layer) {
    rp_affine_spec *spec = layer->spec;
    spec->relu = spec->lora.rank == 0;
    return spec->relu;
}

/* What the products need at the start of the workspace. */
static size_t products_floats(const rp_affine_spec *spec, const rp_products *sizes,
                              rp_gemm_choice choice) {
    const size_t own = rp_products_floats(sizes, choice);
    const size_t other = rp_lora_products_floats(&spec->lora, sizes, choice);
    return own > other ? own : other;
}

/* What the products need, then masked dy, then the chunks of db, or what `lora` needs. */
size_t rp_affine_workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan_of,
                                 const rp_shape *in, uint32_t n, rp_gemm_choice choice) {
    (void)plan_of;
    const rp_affine_spec *spec = layer->spec;
    const rp_products sizes = sizes_of(layer, in, n);
    size_t floats = products_floats(spec, &sizes, choice);
    floats += rp_lora_floats(&spec->lora, &sizes);
    floats += spec->relu ? (size_t)sizes.rows * sizes.out : 0;
    floats += spec->bias ? rp_layer_bias_floats(sizes.rows, sizes.out, 1) : 0;
    return floats * sizeof(float);
}

rp_err rp_affine_forward(const rp_layer_call *call) {
    const rp_affine_spec *spec = call->layer->spec;
    const rp_products sizes = sizes_of(call->layer, &call->in[0], call->n);
    rp_err err;
    RP_TRY(rp_products_forward(call, &sizes, rp_layer_rows(call->y, sizes.out),
                               rp_layer_rows(call->x[0], sizes.in), call->param[WEIGHT]->buffer,
                               &(rp_epilogue){.bias_axis = spec->bias ? RP_BIAS_COL : RP_BIAS_NONE,
                                              .bias = spec->bias ? call->param[BIAS]->buffer : NULL,
                                              .relu = spec->relu}));
    if (spec->lora.rank) {
        RP_TRY(rp_lora_forward(call, &spec->lora, &sizes,
                               products_floats(spec, &sizes, rp_device_gemm(call->device))));
    }
fail:
    return err;
}

/* The gradients of W and of the bias; the workspace is free from `used` on. */
static rp_err find_dw(const rp_layer_call *call, const rp_products *sizes, rp_rows dy,
                      uint64_t used) {
    const rp_affine_spec *spec = call->layer->spec;
    rp_err err;
    RP_TRY(rp_products_weight(call, sizes, call->dparam[WEIGHT]->buffer, dy,
                              rp_layer_rows(call->x[0], sizes->in)));
    if (spec->bias) {
        RP_TRY(rp_layer_bias_gradient(call, call->dparam[BIAS]->buffer, used, dy, sizes->rows,
                                      sizes->out, 1));
    }
fail:
    return err;
}

rp_err rp_affine_backward(const rp_layer_call *call) {
    const rp_affine_spec *spec = call->layer->spec;
    const rp_products sizes = sizes_of(call->layer, &call->in[0], call->n);
    rp_err err = RP_OK;
    size_t used = products_floats(spec, &sizes, rp_device_gemm(call->device));
    rp_rows dy = rp_layer_rows(call->dy, sizes.out);
    if (spec->relu) {
        dy = (rp_rows){call->workspace, used, sizes.out};
        RP_TRY(rp_layer_mask_positive(call, call->workspace, used));
        used += (size_t)sizes.rows * sizes.out;
    }
    if (call->want_dx && call->dx[0]) {
        RP_TRY(rp_products_input(call, &sizes, rp_layer_rows(call->dx[0], sizes.in), dy,
                                 call->param[WEIGHT]->buffer, call->dx_add[0]));
    }
    if (spec->lora.rank) {
        RP_TRY(rp_lora_backward(call, &spec->lora, &sizes, used));
    } else if (call->want_dw) {
        RP_TRY(find_dw(call, &sizes, dy, used));
    }
fail:
    return err;
}
