/* y = a b, or a b' with `transpose`, for the matrices in the last two axes of a and b; axes before
 * them are broadcast. */
#include "nn/axes.h"

typedef struct {
    bool transpose;
} matmul_spec;

/* a [of_a matrices, rows, inner], b [of_b matrices, inner, columns], y [matrices, rows, columns] of
 * one sample. A single b multiplies the rows of all matrices of a in one product. */
typedef struct {
    uint32_t rows, inner, columns;
    uint32_t matrices;
    rp_shape axes;       /* those before the last two, of y */
    rp_shape of_a, of_b; /* the same of a and b */
} matmul_sizes;

static rp_err parse_matmul(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    matmul_spec *spec = layer->spec;
    (void)data;
    *spec = (matmul_spec){0};
    return rp_node_bool(keys, "transpose", &spec->transpose);
}

static rp_shape without_matrix(const rp_shape *in) {
    rp_shape out = *in;
    out.dims -= 2;
    return out;
}

static bool find_sizes(const matmul_spec *spec, const rp_shape *in, matmul_sizes *out) {
    const rp_shape *a = &in[0];
    const rp_shape *b = &in[1];
    if (a->dims < 2 || b->dims < 2) {
        return false;
    }
    const uint32_t inner_of_b = b->dim[b->dims - (spec->transpose ? 1 : 2)];
    *out = (matmul_sizes){
        .rows = a->dim[a->dims - 2],
        .inner = a->dim[a->dims - 1],
        .columns = b->dim[b->dims - (spec->transpose ? 2 : 1)],
        .of_a = without_matrix(a),
        .of_b = without_matrix(b),
    };
    if (out->inner != inner_of_b || !rp_axes_common(&out->of_a, &out->of_b, &out->axes)) {
        return false;
    }
    out->matrices = (uint32_t)rp_shape_count(&out->axes);
    return true;
}

static rp_err plan_matmul(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const matmul_spec *spec = layer->spec;
    matmul_sizes sizes;
    if (!find_sizes(spec, in, &sizes)) {
        char a[RP_LAYER_SHAPE_TEXT];
        char b[RP_LAYER_SHAPE_TEXT];
        return rp_fail(RP_ERR_SHAPE, "layer '%s': matmul cannot multiply %s by %s%s", layer->name,
                       rp_layer_shape_text(&in[0], a), rp_layer_shape_text(&in[1], b),
                       spec->transpose ? ", transposed" : "");
    }
    const double products = (double)sizes.matrices * sizes.rows * sizes.columns * sizes.inner;
    *out = (rp_layer_plan){
        .out = sizes.axes,
        .needs_x = true,
        .flops_forward = 2 * products,
        .flops_backward = 4 * products,
    };
    out->out.dim[out->out.dims++] = sizes.rows;
    out->out.dim[out->out.dims++] = sizes.columns;
    return RP_OK;
}

/* One b for all matrices of a: their rows follow each other. */
static matmul_sizes sizes_of(const rp_layer *layer, const rp_shape *in) {
    matmul_sizes sizes;
    const bool fits = find_sizes(layer->spec, in, &sizes);
    RP_ASSERT(fits);
    if (rp_shape_count(&sizes.of_b) == 1) {
        sizes.rows *= sizes.matrices;
        sizes.matrices = 1;
        sizes.axes = sizes.of_a = sizes.of_b = (rp_shape){0};
    }
    return sizes;
}

/* ---- products -------------------------------------------------------------------------------- */

/* C = A B. */
typedef struct {
    rp_mat c, a, b;
} product;

typedef enum { OF_Y, OF_A, OF_B } product_of;

/* The matrices that begin at these elements; buffers may be NULL. */
static product product_at(const matmul_sizes *s, bool transpose, product_of which, rp_rows y,
                          rp_rows a, rp_rows b) {
    const rp_mat of_y = rp_mat_plain(y.buffer, y.first, s->rows, s->columns);
    const rp_mat of_a = rp_mat_plain(a.buffer, a.first, s->rows, s->inner);
    const rp_mat of_b = transpose ? rp_mat_plain(b.buffer, b.first, s->columns, s->inner)
                                  : rp_mat_plain(b.buffer, b.first, s->inner, s->columns);
    const rp_mat b_flat = transpose ? rp_mat_transposed(of_b) : of_b; /* [inner, columns] */
    switch (which) {
    case OF_A:
        return (product){of_a, of_y, rp_mat_transposed(b_flat)};
    case OF_B:
        return transpose ? (product){of_b, rp_mat_transposed(of_y), of_a}
                         : (product){of_b, rp_mat_transposed(of_a), of_y};
    case OF_Y:
    default:
        return (product){of_y, of_a, b_flat};
    }
}

static size_t workspace_matmul(const rp_layer *layer, const rp_layer_plan *plan, const rp_shape *in,
                               uint32_t n, rp_gemm_choice choice) {
    const matmul_spec *spec = layer->spec;
    const matmul_sizes sizes = sizes_of(layer, in);
    const rp_rows none = {0};
    size_t most = 0;
    (void)plan;
    (void)n;
    for (product_of which = OF_Y; which <= OF_B; which++) {
        const product p = product_at(&sizes, spec->transpose, which, none, none, none);
        const size_t bytes = rp_gemm_workspace_bytes(choice, &p.c, &p.a, &p.b);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Index of the matrix of an operand with the axes `own`, for matrix `index` of y. */
static uint32_t find_matrix(const rp_shape *axes, const rp_shape *own, uint32_t index) {
    uint32_t at = 0;
    uint32_t step = 1;
    for (uint32_t i = 0; i < own->dims; i++) {
        const uint32_t size = axes->dim[axes->dims - 1 - i];
        const uint32_t own_size = own->dim[own->dims - 1 - i];
        at += own_size > 1 ? index % size * step : 0;
        index /= size;
        step *= own_size;
    }
    return at;
}

/* The matrices of sample s and matrix m of y. */
static product product_of_matrix(const rp_layer_call *call, const matmul_sizes *sizes,
                                 product_of which, uint32_t s, uint32_t m) {
    const matmul_spec *spec = call->layer->spec;
    const rp_tensor *y = which == OF_Y ? call->y : call->dy;
    const rp_tensor *a = which == OF_A ? call->dx[0] : call->x[0];
    const rp_tensor *b = which == OF_B ? call->dx[1] : call->x[1];
    const uint64_t in_y = (uint64_t)s * sizes->matrices + m;
    const uint64_t in_a =
        (uint64_t)s * rp_shape_count(&sizes->of_a) + find_matrix(&sizes->axes, &sizes->of_a, m);
    const uint64_t in_b =
        (uint64_t)s * rp_shape_count(&sizes->of_b) + find_matrix(&sizes->axes, &sizes->of_b, m);
    const uint64_t of_y = (uint64_t)sizes->rows * sizes->columns;
    const uint64_t of_a = (uint64_t)sizes->rows * sizes->inner;
    const uint64_t of_b = (uint64_t)sizes->inner * sizes->columns;
    return product_at(sizes, spec->transpose, which,
                      (rp_rows){y->buffer, y->offset + in_y * of_y, 0},
                      (rp_rows){a->buffer, a->offset + in_a * of_a, 0},
                      (rp_rows){b->buffer, b->offset + in_b * of_b, 0});
}

/* Whether no earlier matrix of y had the same matrix of the operand. */
static bool is_first_use(const matmul_sizes *sizes, const rp_shape *own, uint32_t m) {
    const bool has_all = rp_shape_count(own) == sizes->matrices;
    const uint32_t matrix = find_matrix(&sizes->axes, own, m);
    uint32_t earlier = has_all ? m : 0;
    while (earlier < m && find_matrix(&sizes->axes, own, earlier) != matrix) {
        earlier++;
    }
    return earlier == m;
}

/* All products of one kind; gradients of a broadcast operand are summed in the order of y. */
static rp_err run_products(const rp_layer_call *call, product_of which, bool add) {
    const matmul_sizes sizes = sizes_of(call->layer, call->in);
    const rp_shape *own = which == OF_A ? &sizes.of_a : which == OF_B ? &sizes.of_b : &sizes.axes;
    rp_err err = RP_OK;
    for (uint32_t s = 0; s < call->n; s++) {
        for (uint32_t m = 0; m < sizes.matrices; m++) {
            const product p = product_of_matrix(call, &sizes, which, s, m);
            const rp_epilogue epilogue = {.accumulate = add || !is_first_use(&sizes, own, m)};
            RP_TRY(rp_gemm_run(call->device, &p.c, &p.a, &p.b, &epilogue, call->workspace));
        }
    }
fail:
    return err;
}

static rp_err forward_matmul(const rp_layer_call *call) {
    return run_products(call, OF_Y, false);
}

static rp_err backward_matmul(const rp_layer_call *call) {
    rp_err err = RP_OK;
    if (call->want_dx && call->dx[0]) {
        RP_TRY(run_products(call, OF_A, call->dx_add[0]));
    }
    if (call->want_dx && call->dx[1]) {
        RP_TRY(run_products(call, OF_B, call->dx_add[1]));
    }
fail:
    return err;
}

const rp_layer_kind rp_layer_matmul = {
    .name = "matmul",
    .keys = "from, transpose",
    .source = "torch.matmul of operands with two axes or more",
    .spec_bytes = sizeof(matmul_spec),
    .inputs_min = 2,
    .inputs_max = 2,
    .parse = parse_matmul,
    .plan = plan_matmul,
    .workspace_bytes = workspace_matmul,
    .forward = forward_matmul,
    .backward = backward_matmul,
};
