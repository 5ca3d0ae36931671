#include "nn/lora.h"

#include <math.h>

#include "nn/dropout.h"

enum { RANK_MAX = 1024 };

rp_err rp_lora_parse(rp_layer *layer, rp_node *keys, rp_lora *out) {
    rp_node *node = rp_node_find(keys, "lora");
    float alpha = 0;
    rp_err err = RP_OK;
    *out = (rp_lora){0};
    if (!node) {
        return RP_OK;
    }
    if (!rp_node_is_map(node)) {
        return rp_node_fail(node, "expected a map like {rank: 8, alpha: 16}");
    }
    RP_TRY(rp_node_need(node, "rank"));
    RP_TRY(rp_node_u32(node, "rank", 1, RANK_MAX, &out->rank));
    alpha = 2.0f * (float)out->rank;
    RP_TRY(rp_node_f32(node, "alpha", 1e-6, 1e6, &alpha));
    RP_TRY(rp_node_f64(node, "dropout", 0.0, 1.0, &out->dropout));
    RP_TRY(rp_node_done(node));
    out->scale = alpha / (float)out->rank;
    layer->frozen = false; /* `train: false` and train.freeze are about W */
fail:
    return err;
}

/* h = x A' */
static rp_products sizes_of_a(const rp_lora *lora, const rp_products *sizes) {
    return (rp_products){.rows = sizes->rows, .in = sizes->in, .out = lora->rank};
}

/* y += h B' */
static rp_products sizes_of_b(const rp_lora *lora, const rp_products *sizes) {
    return (rp_products){.rows = sizes->rows, .in = lora->rank, .out = sizes->out};
}

rp_err rp_lora_plan(const rp_layer *layer, const rp_lora *lora, const rp_products *sizes,
                    rp_layer_plan *plan) {
    const uint32_t least = sizes->in < sizes->out ? sizes->in : sizes->out;
    const double products = (double)sizes->rows * lora->rank * ((double)sizes->in + sizes->out);
    if (lora->rank > least) {
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': lora.rank is %u, expected at most %u, the smaller size of the "
                       "weight",
                       layer->name, lora->rank, least);
    }
    for (uint32_t p = 0; p < plan->param_count; p++) {
        plan->param[p].role = RP_PARAM_FROZEN;
    }
    plan->param[plan->param_count++] =
        (rp_param){"lora_A.weight", rp_shape_2(lora->rank, sizes->in), RP_PARAM_TRAINED,
                   RP_INIT_UNIFORM, 1.0f / sqrtf((float)sizes->in)};
    plan->param[plan->param_count++] = (rp_param){
        "lora_B.weight", rp_shape_2(sizes->out, lora->rank), RP_PARAM_TRAINED, RP_INIT_ZERO, 0};
    plan->saved_count = 1;
    plan->saved[0].sample_bytes = (size_t)sizes->rows * lora->rank * sizeof(float);
    plan->needs_x = true;
    plan->draws = lora->dropout > 0;
    plan->flops_forward += 2 * products;
    plan->flops_backward = plan->flops_backward / 2 + 4 * products; /* no dW */
    return RP_OK;
}

size_t rp_lora_products_floats(const rp_lora *lora, const rp_products *sizes,
                               rp_gemm_choice choice) {
    const rp_products a = sizes_of_a(lora, sizes);
    const rp_products b = sizes_of_b(lora, sizes);
    if (lora->rank == 0) {
        return 0;
    }
    const size_t of_a = rp_products_floats(&a, choice);
    const size_t of_b = rp_products_floats(&b, choice);
    return of_a > of_b ? of_a : of_b;
}

/* h or its gradient, then, with dropout, x or the part of dx that passes through A. */
size_t rp_lora_floats(const rp_lora *lora, const rp_products *sizes) {
    const size_t wide = lora->rank + (lora->dropout > 0 ? sizes->in : 0);
    return lora->rank == 0 ? 0 : sizes->rows * wide;
}

static rp_err scale_rows(const rp_layer_call *call, rp_rows rows, size_t count, float factor) {
    rp_launch launch;
    rp_err err;
    RP_TRY(rp_layer_begin(call, "copy", "scale_all", NULL, &launch));
    rp_arg_buffer(&launch, rows.buffer);
    rp_arg_u64(&launch, rows.first);
    rp_arg_u32(&launch, (uint32_t)count);
    rp_arg_f32(&launch, factor);
    RP_TRY(rp_layer_run_wide(&launch, count));
fail:
    return err;
}

static bool drops(const rp_layer_call *call, const rp_lora *lora) {
    return lora->dropout > 0 && call->training;
}

/* x as A sees it: with dropout a masked copy in the workspace after the rows of h. */
static rp_err see_x(const rp_layer_call *call, const rp_lora *lora, const rp_products *sizes,
                    uint64_t first, rp_rows *out) {
    *out = rp_layer_rows(call->x[0], sizes->in);
    if (!drops(call, lora)) {
        return RP_OK;
    }
    *out = (rp_rows){call->workspace, first + (uint64_t)sizes->rows * lora->rank, sizes->in};
    return rp_dropout_mask(call, *out, rp_layer_rows(call->x[0], sizes->in), lora->dropout, false);
}

/* Where the forward of these samples keeps h. */
static rp_rows kept_rows(const rp_layer_call *call, const rp_lora *lora, const rp_products *sizes,
                         uint64_t first) {
    const uint64_t before = (uint64_t)call->saved_first * (sizes->rows / call->n) * lora->rank;
    return call->saved[0] ? (rp_rows){call->saved[0], before, lora->rank}
                          : (rp_rows){call->workspace, first, lora->rank};
}

rp_err rp_lora_forward(const rp_layer_call *call, const rp_lora *lora, const rp_products *sizes,
                       uint64_t first) {
    const uint32_t a = call->plan->param_count - 2;
    const rp_products of_a = sizes_of_a(lora, sizes);
    const rp_products of_b = sizes_of_b(lora, sizes);
    const rp_rows h = kept_rows(call, lora, sizes, first);
    rp_rows x;
    rp_err err;
    RP_TRY(see_x(call, lora, sizes, first, &x));
    RP_TRY(rp_products_forward(call, &of_a, h, x, call->param[a]->buffer, &(rp_epilogue){0}));
    RP_TRY(scale_rows(call, h, (size_t)sizes->rows * lora->rank, lora->scale));
    RP_TRY(rp_products_forward(call, &of_b, rp_layer_rows(call->y, sizes->out), h,
                               call->param[a + 1]->buffer, &(rp_epilogue){.accumulate = true}));
fail:
    return err;
}

/* dx += what passes through A, by the mask of the forward. */
static rp_err add_dx(const rp_layer_call *call, const rp_lora *lora, const rp_products *sizes,
                     uint64_t first, rp_rows dh) {
    const rp_products of_a = sizes_of_a(lora, sizes);
    const rp_buffer *a = call->param[call->plan->param_count - 2]->buffer;
    const rp_rows dx = rp_layer_rows(call->dx[0], sizes->in);
    const rp_rows part = {call->workspace, first + (uint64_t)sizes->rows * lora->rank, sizes->in};
    rp_err err;
    if (!drops(call, lora)) {
        return rp_products_input(call, &of_a, dx, dh, a, true);
    }
    RP_TRY(rp_products_input(call, &of_a, part, dh, a, false));
    RP_TRY(rp_dropout_mask(call, dx, part, lora->dropout, true));
fail:
    return err;
}

rp_err rp_lora_backward(const rp_layer_call *call, const rp_lora *lora, const rp_products *sizes,
                        uint64_t first) {
    const uint32_t a = call->plan->param_count - 2;
    const rp_products of_a = sizes_of_a(lora, sizes);
    const rp_products of_b = sizes_of_b(lora, sizes);
    const rp_rows dy = rp_layer_rows(call->dy, sizes->out);
    const rp_rows dh = {call->workspace, first, lora->rank};
    rp_rows x;
    rp_err err;
    RP_TRY(rp_products_input(call, &of_b, dh, dy, call->param[a + 1]->buffer, false));
    RP_TRY(scale_rows(call, dh, (size_t)sizes->rows * lora->rank, lora->scale));
    if (call->want_dx && call->dx[0]) {
        RP_TRY(add_dx(call, lora, sizes, first, dh));
    }
    if (call->want_dw) {
        RP_TRY(see_x(call, lora, sizes, first, &x));
        RP_TRY(rp_products_weight(call, &of_a, call->dparam[a]->buffer, dh, x));
        RP_TRY(rp_products_weight(call, &of_b, call->dparam[a + 1]->buffer, dy,
                                  kept_rows(call, lora, sizes, first)));
    }
fail:
    return err;
}
