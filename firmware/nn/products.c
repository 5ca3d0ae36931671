#include "nn/products.h"

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
