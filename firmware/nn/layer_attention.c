/* Scaled dot-product attention of several heads, without parameters: for each head
 *   y = softmax(scale q k' + mask) v
 *
 * Inputs are one packed tensor [T, (heads + 2 kv_heads) D] of q | k | v, or q [T, heads D], k [S,
 * kv_heads D] and v [S, kv_heads Dv]; the token ids [S] may follow, whose `padding` id masks keys.
 * Query t sees the keys s <= t + S - T if `causal`. Head h reads kv head h kv_heads / heads. The
 * output of a query that sees no key is 0, and it has no gradient. Rotary positions are 0, 1, ...
 * for keys and S - T, S - T + 1, ... for queries.
 *
 * Dropout masks single weights by the stream "dropout/<layer>"; kernels/attention.cl numbers its
 * words by sample, head, query and key. */
#include "nn/attention.h"
#include "nn/layer_common.h"

enum { HEADS_MAX = 4096 };

enum { Q = RP_ATTENTION_Q, K = RP_ATTENTION_K, V = RP_ATTENTION_V, PARTS = RP_ATTENTION_PARTS };

/* ---- the model file ------------------------------------------------------------------------- */

static rp_err parse_rotary(rp_node *keys, rp_attention_spec *spec) {
    rp_err err;
    rp_node *rotary = rp_node_find(keys, "rotary");
    if (!rotary) {
        return RP_OK;
    }
    spec->rotary = true;
    spec->base = 10000.0f;
    RP_TRY(rp_node_f32(rotary, "base", 1.0, 1e9, &spec->base));
    RP_TRY(rp_node_bool(rotary, "interleaved", &spec->interleaved));
    RP_TRY(rp_node_done(rotary));
    return RP_OK;
fail:
    return err;
}

static rp_err parse_attention(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)data;
    rp_attention_spec *spec = layer->spec;
    rp_err err;
    *spec = (rp_attention_spec){0};
    RP_TRY(rp_node_need(keys, "heads"));
    RP_TRY(rp_node_u32(keys, "heads", 1, HEADS_MAX, &spec->heads));
    spec->kv_heads = spec->heads;
    RP_TRY(rp_node_u32(keys, "kv_heads", 1, HEADS_MAX, &spec->kv_heads));
    if (spec->heads % spec->kv_heads != 0) {
        return rp_node_fail(keys, "kv_heads: %u does not divide heads: %u", spec->kv_heads,
                            spec->heads);
    }
    RP_TRY(rp_node_bool(keys, "causal", &spec->causal));
    RP_TRY(rp_node_f32(keys, "scale", 0.0, 1e6, &spec->scale));
    RP_TRY(rp_node_f64(keys, "dropout", 0.0, 1.0, &spec->dropout));
    spec->has_padding = rp_node_find(keys, "padding") != NULL;
    RP_TRY(rp_node_i32(keys, "padding", &spec->padding));
    RP_TRY(parse_rotary(keys, spec));
    return RP_OK;
fail:
    return err;
}

/* ---- shapes --------------------------------------------------------------------------------- */

static rp_err need_dims(const rp_layer *layer, const rp_shape *in, uint32_t input) {
    char text[RP_LAYER_SHAPE_TEXT];
    return in->dims == 2 ? RP_OK
                         : rp_fail(RP_ERR_SHAPE,
                                   "layer '%s': attention needs sequences [T, C], its input %u "
                                   "is %s",
                                   layer->name, input + 1, rp_layer_shape_text(in, text));
}

static rp_err split_row(const rp_layer *layer, uint32_t columns, uint32_t heads, uint32_t input,
                        uint32_t *size) {
    if (columns % heads != 0) {
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': the %u columns of input %u are not a multiple of %u heads",
                       layer->name, columns, input + 1, heads);
    }
    *size = columns / heads;
    return RP_OK;
}

/* One tensor q | k | v. */
static rp_err find_packed(const rp_layer *layer, const rp_shape *in, rp_attention_inputs *out) {
    const rp_attention_spec *spec = layer->spec;
    const uint32_t heads = spec->heads + 2 * spec->kv_heads;
    uint32_t size = 0;
    uint32_t first = 0;
    rp_err err;
    RP_TRY(need_dims(layer, &in[0], 0));
    RP_TRY(split_row(layer, in[0].dim[1], heads, 0, &size));
    for (uint32_t i = 0; i < PARTS; i++) {
        const uint32_t of = i == Q ? spec->heads : spec->kv_heads;
        out->part[i] = (rp_attention_rows){.tokens = in[0].dim[0],
                                           .heads = of,
                                           .size = size,
                                           .first = first,
                                           .row_stride = in[0].dim[1]};
        first += of * size;
    }
    return RP_OK;
fail:
    return err;
}

static rp_err find_separate(const rp_layer *layer, const rp_shape *in, rp_attention_inputs *out) {
    const rp_attention_spec *spec = layer->spec;
    rp_err err;
    for (uint32_t i = 0; i < PARTS; i++) {
        rp_attention_rows *part = &out->part[i];
        RP_TRY(need_dims(layer, &in[i], i));
        *part = (rp_attention_rows){.input = i,
                                    .tokens = in[i].dim[0],
                                    .heads = i == Q ? spec->heads : spec->kv_heads,
                                    .row_stride = in[i].dim[1]};
        RP_TRY(split_row(layer, in[i].dim[1], part->heads, i, &part->size));
    }
    if (out->part[Q].size != out->part[K].size) {
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': a head of q has %u columns (%u of %u heads), one of k %u (%u "
                       "of %u heads)",
                       layer->name, out->part[Q].size, in[Q].dim[1], spec->heads, out->part[K].size,
                       in[K].dim[1], spec->kv_heads);
    }
    if (in[K].dim[0] != in[V].dim[0]) {
        return rp_fail(RP_ERR_SHAPE, "layer '%s': k has %u tokens, v has %u", layer->name,
                       in[K].dim[0], in[V].dim[0]);
    }
    return RP_OK;
fail:
    return err;
}

static rp_err check_ids(const rp_layer *layer, const rp_shape *in, const rp_attention_inputs *of) {
    const rp_attention_spec *spec = layer->spec;
    const uint32_t keys = of->part[K].tokens;
    char text[RP_LAYER_SHAPE_TEXT];
    if (of->has_ids != spec->has_padding) {
        return rp_fail(RP_ERR_SHAPE,
                       of->has_ids
                           ? "layer '%s': attention with token ids as its last input needs "
                             "`padding`, the id that masks a key"
                           : "layer '%s': `padding` needs the token ids as the last input of "
                             "attention",
                       layer->name);
    }
    if (of->has_ids && (in->dims != 1 || in->dim[0] != keys)) {
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': attention needs one token id for each of %u keys, its last "
                       "input is %s",
                       layer->name, keys, rp_layer_shape_text(in, text));
    }
    return RP_OK;
}

static rp_err find_inputs(const rp_layer *layer, const rp_shape *in, rp_attention_inputs *out) {
    const rp_attention_spec *spec = layer->spec;
    const uint32_t count = layer->input_count;
    rp_err err;
    *out = (rp_attention_inputs){.has_ids = count % 2 == 0, .ids_input = count - 1};
    RP_TRY((count <= 2 ? find_packed : find_separate)(layer, in, out));
    RP_TRY(check_ids(layer, &in[count - 1], out));
    if (spec->rotary && out->part[Q].size % 2 != 0) {
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': rotary positions need an even number of columns of a head, "
                       "found %u",
                       layer->name, out->part[Q].size);
    }
    out->y = (rp_attention_rows){.tokens = out->part[Q].tokens,
                                 .heads = spec->heads,
                                 .size = out->part[V].size,
                                 .row_stride = spec->heads * out->part[V].size};
    return RP_OK;
fail:
    return err;
}

static rp_err plan_attention(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const rp_attention_spec *spec = layer->spec;
    rp_attention_inputs of;
    rp_err err = find_inputs(layer, in, &of);
    if (err != RP_OK) {
        return err;
    }
    const double pairs =
        (double)of.part[Q].tokens * of.part[K].tokens * spec->heads * (spec->causal ? 0.5 : 1.0);
    *out = (rp_layer_plan){
        .out = rp_shape_2(of.y.tokens, of.y.row_stride),
        .saved_count = 1,
        .saved = {{.sample_bytes = rp_attention_level_floats(&of) * sizeof(float)}},
        .needs_x = true,
        .needs_y = true,
        .draws = !layer->frozen && spec->dropout > 0,
        .ids = of.has_ids ? 1u << of.ids_input : 0,
        .flops_forward = 2.0 * pairs * (of.part[Q].size + of.part[V].size),
        .flops_backward = 2.0 * pairs * (3.0 * of.part[Q].size + 2.0 * of.part[V].size),
    };
    return RP_OK;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* Whether attention_heads.c does it. The number of samples does not count, because the results of
 * the two differ in their last bits. */
static bool is_by_heads(const rp_layer *layer, rp_gemm_choice choice) {
    const rp_attention_spec *spec = layer->spec;
    return choice == RP_GEMM_PANEL && !spec->rotary;
}

static size_t workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan_of,
                              const rp_shape *in, uint32_t n, rp_gemm_choice choice) {
    (void)plan_of;
    rp_attention_inputs of;
    if (find_inputs(layer, in, &of) != RP_OK) {
        return 0;
    }
    return sizeof(float) * (is_by_heads(layer, choice) ? rp_attention_heads_floats(&of, n)
                                                       : rp_attention_floats(layer->spec, &of, n));
}

static rp_err forward_attention(const rp_layer_call *call) {
    rp_attention_inputs of;
    rp_err err = find_inputs(call->layer, call->in, &of);
    if (err != RP_OK) {
        return err;
    }
    return is_by_heads(call->layer, rp_device_gemm(call->device))
               ? rp_attention_heads_forward(call, &of)
               : rp_attention_forward(call, &of);
}

static rp_err backward_attention(const rp_layer_call *call) {
    rp_attention_inputs of;
    rp_err err = find_inputs(call->layer, call->in, &of);
    bool wanted = false;
    for (uint32_t i = 0; i < call->layer->input_count; i++) {
        wanted |= call->dx[i] != NULL;
    }
    if (err != RP_OK || !call->want_dx || !wanted) {
        return err;
    }
    return is_by_heads(call->layer, rp_device_gemm(call->device))
               ? rp_attention_heads_backward(call, &of)
               : rp_attention_backward(call, &of);
}

const rp_layer_kind rp_layer_attention = {
    .name = "attention",
    .keys = "heads, kv_heads, causal, scale, dropout, padding, rotary, from",
    .source = "Vaswani et al. 2017; torch.nn.functional.scaled_dot_product_attention",
    .spec_bytes = sizeof(rp_attention_spec),
    .inputs_min = 1,
    .inputs_max = 4,
    .parse = parse_attention,
    .plan = plan_attention,
    .workspace_bytes = workspace_bytes,
    .forward = forward_attention,
    .backward = backward_attention,
};
