#include "nn/products.h"

#include <math.h>

enum { WEIGHT, BIAS };

/* One of the three products, C = A B. */
typedef struct {
    rp_mat c, a, b;
} product;

static rp_mat rows_of(rp_rows of, uint32_t rows, uint32_t wide) {
    rp_mat mat = rp_mat_plain(of.buffer, of.first, rows, wide);
    mat.row_stride = of.stride;
    return mat;
}

/* W [out, in]. */
static rp_mat weight_of(const rp_products *sizes, const rp_buffer *w) {
    return sizes->in_out ? rp_mat_transposed(rp_mat_plain(w, 0, sizes->in, sizes->out))
                         : rp_mat_plain(w, 0, sizes->out, sizes->in);
}

/* Buffers may be NULL when only sizes are computed. */
static product forward_product(const rp_products *sizes, rp_rows y, rp_rows x, const rp_buffer *w) {
    return (product){rows_of(y, sizes->rows, sizes->out), rows_of(x, sizes->rows, sizes->in),
                     rp_mat_transposed(weight_of(sizes, w))};
}

static product input_product(const rp_products *sizes, rp_rows dx, rp_rows dy, const rp_buffer *w) {
    return (product){rows_of(dx, sizes->rows, sizes->in), rows_of(dy, sizes->rows, sizes->out),
                     weight_of(sizes, w)};
}

static product weight_product(const rp_products *sizes, const rp_buffer *dw, rp_rows dy,
                              rp_rows x) {
    const rp_mat of_dy = rows_of(dy, sizes->rows, sizes->out);
    const rp_mat of_x = rows_of(x, sizes->rows, sizes->in);
    return sizes->in_out ? (product){rp_mat_plain(dw, 0, sizes->in, sizes->out),
                                     rp_mat_transposed(of_x), of_dy}
                         : (product){rp_mat_plain(dw, 0, sizes->out, sizes->in),
                                     rp_mat_transposed(of_dy), of_x};
}

size_t rp_products_floats(const rp_products *sizes, rp_gemm_choice choice) {
    const rp_rows x = {NULL, 0, sizes->in};
    const rp_rows y = {NULL, 0, sizes->out};
    const product products[] = {forward_product(sizes, y, x, NULL),
                                input_product(sizes, x, y, NULL),
                                weight_product(sizes, NULL, y, x)};
    size_t most = 0;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        const product *p = &products[i];
        size_t bytes = rp_gemm_workspace_bytes(choice, &p->c, &p->a, &p->b);
        most = bytes > most ? bytes : most;
    }
    return (most + sizeof(float) - 1) / sizeof(float);
}

static rp_err run_product(const rp_layer_call *call, const product *p,
                          const rp_epilogue *epilogue) {
    return rp_gemm_run(call->device, &p->c, &p->a, &p->b, epilogue, call->workspace);
}

rp_err rp_products_forward(const rp_layer_call *call, const rp_products *sizes, rp_rows y,
                           rp_rows x, const rp_buffer *w, const rp_epilogue *epilogue) {
    const product p = forward_product(sizes, y, x, w);
    return run_product(call, &p, epilogue);
}

rp_err rp_products_input(const rp_layer_call *call, const rp_products *sizes, rp_rows dx,
                         rp_rows dy, const rp_buffer *w, bool add) {
    const product p = input_product(sizes, dx, dy, w);
    return run_product(call, &p, &(rp_epilogue){.accumulate = add});
}

rp_err rp_products_weight(const rp_layer_call *call, const rp_products *sizes, const rp_buffer *dw,
                          rp_rows dy, rp_rows x) {
    const product p = weight_product(sizes, dw, dy, x);
    return run_product(call, &p, &(rp_epilogue){.accumulate = call->accumulate});
}

/* ---- a layer that is such a product --------------------------------------------------------- */

void rp_affine_plan(const rp_layer *layer, const rp_affine *affine, rp_layer_plan *out) {
    const rp_products *sizes = &affine->sizes;
    const float bound = 1.0f / sqrtf((float)sizes->in);
    const double products = (double)sizes->rows * sizes->in * sizes->out;
    const rp_shape weight =
        sizes->in_out ? rp_shape_2(sizes->in, sizes->out) : rp_shape_2(sizes->out, sizes->in);
    *out = (rp_layer_plan){
        .out = out->out,
        .param_count = affine->bias ? 2 : 1,
        .param = {[WEIGHT] = {"weight", weight, RP_PARAM_TRAINED, RP_INIT_UNIFORM, bound},
                  [BIAS] = {"bias", rp_shape_1(sizes->out), RP_PARAM_TRAINED, RP_INIT_UNIFORM,
                            bound}},
        .needs_x = !layer->frozen,
        .needs_y = affine->relu,
        .flops_forward = 2 * products,
        .flops_backward = (layer->frozen ? 2 : 4) * products,
    };
}

static rp_products sizes_of(const rp_affine *affine, uint32_t n) {
    rp_products sizes = affine->sizes;
    sizes.rows *= n;
    return sizes;
}

/* What the products need, then masked dy, then the chunks of db. */
size_t rp_affine_workspace_bytes(const rp_affine *affine, uint32_t n, rp_gemm_choice choice) {
    const rp_products sizes = sizes_of(affine, n);
    size_t floats = rp_products_floats(&sizes, choice);
    floats += affine->relu ? (size_t)sizes.rows * sizes.out : 0;
    floats += affine->bias ? rp_layer_bias_floats(sizes.rows, sizes.out, 1) : 0;
    return floats * sizeof(float);
}

rp_err rp_affine_forward(const rp_layer_call *call, const rp_affine *affine) {
    const rp_products sizes = sizes_of(affine, call->n);
    return rp_products_forward(
        call, &sizes, rp_layer_rows(call->y, sizes.out), rp_layer_rows(call->x[0], sizes.in),
        call->param[WEIGHT]->buffer,
        &(rp_epilogue){.bias_axis = affine->bias ? RP_BIAS_COL : RP_BIAS_NONE,
                       .bias = affine->bias ? call->param[BIAS]->buffer : NULL,
                       .relu = affine->relu});
}

rp_err rp_affine_backward(const rp_layer_call *call, const rp_affine *affine) {
    const rp_products sizes = sizes_of(affine, call->n);
    rp_err err;
    size_t used = rp_products_floats(&sizes, rp_device_gemm(call->device));
    rp_rows dy = rp_layer_rows(call->dy, sizes.out);
    if (affine->relu) {
        dy = (rp_rows){call->workspace, used, sizes.out};
        RP_TRY(rp_layer_mask_positive(call, call->workspace, used));
        used += (size_t)sizes.rows * sizes.out;
    }
    if (call->want_dx && call->dx[0]) {
        RP_TRY(rp_products_input(call, &sizes, rp_layer_rows(call->dx[0], sizes.in), dy,
                                 call->param[WEIGHT]->buffer, call->dx_add[0]));
    }
    if (call->want_dw) {
        RP_TRY(rp_products_weight(call, &sizes, call->dparam[WEIGHT]->buffer, dy,
                                  rp_layer_rows(call->x[0], sizes.in)));
        if (affine->bias) {
            RP_TRY(rp_layer_bias_gradient(call, call->dparam[BIAS]->buffer, used, dy, sizes.rows,
                                          sizes.out, 1));
        }
    }
    return RP_OK;
fail:
    return err;
}
