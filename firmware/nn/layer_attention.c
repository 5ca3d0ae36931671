/* Scaled dot-product attention of several heads, without parameters: for each head
 *   y = softmax(scale q k' + mask) v
 *
 * Inputs are one packed tensor [T, (heads + 2 kv_heads) D] of q | k | v, or q [T, heads D], k [S,
 * kv_heads D] and v [S, kv_heads Dv]; the token ids [S] may follow, whose `padding` id masks keys.
 * Query t sees the keys s <= t + S - T if `causal`. Head h reads kv head h kv_heads / heads. The
 * output of a query that sees no key is 0, and it has no gradient.
 *
 * Everything is copied to panels in the workspace (kernels/attention.clh), where tiles of 32 x 32
 * scores are made and used; only the log-sum-exp of each row is saved. Rotary positions are applied
 * to the panels. Samples are processed in chunks that keep the workspace within CHUNK_FLOATS.
 *
 * Dropout masks single weights by the stream "dropout/<layer>", word numbers as in
 * kernels/attention.cl by sample, head, query and key. */
#include <math.h>
#include <stdio.h>

#include "nn/layer_common.h"

enum {
    TOKENS = 32, /* of a panel, as in kernels/attention.clh */
    HEADS_MAX = 4096,
    CHUNK_FLOATS = 1 << 22
};

#define LOG2_E 1.4426950408889634

typedef struct {
    uint32_t heads, kv_heads;
    bool causal;
    float scale; /* 0: 1 / sqrt(D) */
    double dropout;
    bool has_padding;
    int32_t padding;
    bool rotary, interleaved;
    float base;
} attention_spec;

/* ---- the model file ------------------------------------------------------------------------- */

static rp_err parse_rotary(rp_node *keys, attention_spec *spec) {
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
    attention_spec *spec = layer->spec;
    rp_err err;
    *spec = (attention_spec){0};
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

enum { Q, K, V, PARTS };

/* Where q, k or v is: in input `input`, from element `first` of each row on. */
typedef struct {
    uint32_t input, tokens, heads, size;
    uint32_t first, row_stride;
} rows_of;

typedef struct {
    rows_of part[PARTS];
    rows_of y;
    bool has_ids;
    uint32_t ids_input;
} inputs_of;

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
static rp_err find_packed(const rp_layer *layer, const rp_shape *in, inputs_of *out) {
    const attention_spec *spec = layer->spec;
    const uint32_t heads = spec->heads + 2 * spec->kv_heads;
    uint32_t size = 0;
    uint32_t first = 0;
    rp_err err;
    RP_TRY(need_dims(layer, &in[0], 0));
    RP_TRY(split_row(layer, in[0].dim[1], heads, 0, &size));
    for (uint32_t i = 0; i < PARTS; i++) {
        const uint32_t of = i == Q ? spec->heads : spec->kv_heads;
        out->part[i] = (rows_of){.tokens = in[0].dim[0],
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

static rp_err find_separate(const rp_layer *layer, const rp_shape *in, inputs_of *out) {
    const attention_spec *spec = layer->spec;
    rp_err err;
    for (uint32_t i = 0; i < PARTS; i++) {
        rows_of *part = &out->part[i];
        RP_TRY(need_dims(layer, &in[i], i));
        *part = (rows_of){.input = i,
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

static rp_err check_ids(const rp_layer *layer, const rp_shape *in, const inputs_of *of) {
    const attention_spec *spec = layer->spec;
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

static rp_err find_inputs(const rp_layer *layer, const rp_shape *in, inputs_of *out) {
    const attention_spec *spec = layer->spec;
    const uint32_t count = layer->input_count;
    rp_err err;
    *out = (inputs_of){.has_ids = count % 2 == 0, .ids_input = count - 1};
    RP_TRY((count <= 2 ? find_packed : find_separate)(layer, in, out));
    RP_TRY(check_ids(layer, &in[count - 1], out));
    if (spec->rotary && out->part[Q].size % 2 != 0) {
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': rotary positions need an even number of columns of a head, "
                       "found %u",
                       layer->name, out->part[Q].size);
    }
    out->y = (rows_of){.tokens = out->part[Q].tokens,
                       .heads = spec->heads,
                       .size = out->part[V].size,
                       .row_stride = spec->heads * out->part[V].size};
    return RP_OK;
fail:
    return err;
}

static uint32_t panels_of(uint32_t tokens) {
    return rp_layer_divide_up(tokens, TOKENS);
}

/* Floats of the log-sum-exp of a sample. */
static size_t level_floats(const inputs_of *of) {
    return (size_t)of->y.heads * panels_of(of->y.tokens) * TOKENS;
}

static rp_err plan_attention(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const attention_spec *spec = layer->spec;
    inputs_of of;
    rp_err err = find_inputs(layer, in, &of);
    if (err != RP_OK) {
        return err;
    }
    const double pairs =
        (double)of.part[Q].tokens * of.part[K].tokens * spec->heads * (spec->causal ? 0.5 : 1.0);
    *out = (rp_layer_plan){
        .out = rp_shape_2(of.y.tokens, of.y.row_stride),
        .saved_count = 1,
        .saved = {{.sample_bytes = level_floats(&of) * sizeof(float)}},
        .needs_x = true,
        .needs_y = true,
        .ids = of.has_ids ? 1u << of.ids_input : 0,
        .flops_forward = 2.0 * pairs * (of.part[Q].size + of.part[V].size),
        .flops_backward = 2.0 * pairs * (3.0 * of.part[Q].size + 2.0 * of.part[V].size),
    };
    return RP_OK;
}

/* ---- workspace ------------------------------------------------------------------------------ */

/* First floats of what is in the workspace; forward and backward use the same plan. */
typedef struct {
    uint64_t q_angles, k_angles;
    uint64_t part[PARTS], mask, y; /* panels; y: of dy in a backward */
    uint64_t gradient[PARTS], delta, end;
    uint32_t samples; /* of a chunk */
} workspace_plan;

static uint64_t panel_floats(const rows_of *rows) {
    const uint64_t depth = rp_layer_divide_up(rows->size, 8) * (uint64_t)8;
    return depth * TOKENS * panels_of(rows->tokens) * rows->heads;
}

static uint64_t take_floats(uint64_t *end, uint64_t count) {
    const uint64_t first = *end;
    *end += count;
    return first;
}

/* Places that grow with the number of samples. */
static void plan_samples(workspace_plan *plan, const inputs_of *of, uint32_t samples) {
    plan->samples = samples;
    for (uint32_t i = 0; i < PARTS; i++) {
        plan->part[i] = take_floats(&plan->end, samples * panel_floats(&of->part[i]));
        plan->gradient[i] = take_floats(&plan->end, samples * panel_floats(&of->part[i]));
    }
    plan->y = take_floats(&plan->end, samples * panel_floats(&of->y));
    plan->delta = take_floats(&plan->end, samples * level_floats(of));
    plan->mask =
        take_floats(&plan->end, (uint64_t)samples * panels_of(of->part[K].tokens) * TOKENS);
}

static workspace_plan plan_workspace(const attention_spec *spec, const inputs_of *of, uint32_t n) {
    workspace_plan plan = {0};
    if (spec->rotary) {
        const uint64_t floats = (uint64_t)of->part[Q].size * TOKENS;
        plan.q_angles = take_floats(&plan.end, panels_of(of->part[Q].tokens) * floats);
        plan.k_angles = take_floats(&plan.end, panels_of(of->part[K].tokens) * floats);
    }
    workspace_plan one = plan;
    plan_samples(&one, of, 1);
    const uint64_t fit = CHUNK_FLOATS / (one.end - plan.end);
    plan_samples(&plan, of, fit >= n ? n : (uint32_t)fit + (fit == 0));
    return plan;
}

static size_t workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan_of,
                              const rp_shape *in, uint32_t n, rp_gemm_choice choice) {
    (void)plan_of;
    (void)choice;
    inputs_of of;
    if (find_inputs(layer, in, &of) != RP_OK) {
        return 0;
    }
    return (size_t)plan_workspace(layer->spec, &of, n).end * sizeof(float);
}

/* ---- launches ------------------------------------------------------------------------------- */

/* Samples [first, first + n) of a call. */
typedef struct {
    const rp_layer_call *call;
    const attention_spec *spec;
    inputs_of of;
    workspace_plan at;
    uint32_t first, n;
} chunk;

static rp_err run_groups(rp_launch *launch, uint32_t panels, uint32_t runs) {
    return rp_launch_run(launch, 2, (size_t[]){panels, runs}, (size_t[]){1, 1});
}

static float score_scale(const chunk *c) {
    return c->spec->scale > 0.0f ? c->spec->scale : 1.0f / sqrtf((float)c->of.part[Q].size);
}

/* Distance of the elements of a pair that is turned; 0: none is. */
static uint32_t pair_distance(const chunk *c, uint32_t part) {
    if (!c->spec->rotary || part == V) {
        return 0;
    }
    return c->spec->interleaved ? 1 : c->of.part[part].size / 2;
}

static uint64_t angles_of(const chunk *c, uint32_t part) {
    return part == Q ? c->at.q_angles : c->at.k_angles;
}

static rp_err find_angles(const chunk *c, uint32_t part) {
    const rows_of *rows = &c->of.part[part];
    rp_launch launch;
    rp_err err = rp_layer_begin(c->call, "attention_pack", "find_angles", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, c->call->workspace);
    rp_arg_u64(&launch, angles_of(c, part));
    rp_arg_u32(&launch, rows->size);
    rp_arg_i32(&launch, (int32_t)c->of.part[K].tokens - (int32_t)rows->tokens);
    rp_arg_f32(&launch, c->spec->base);
    return run_groups(&launch, panels_of(rows->tokens), rows->size / 2);
}

/* The first element of the chunk's samples in the tensor. */
static uint64_t first_element(const chunk *c, const rp_tensor *tensor, const rows_of *rows) {
    return tensor->offset + (uint64_t)c->first * rows->tokens * rows->row_stride + rows->first;
}

static rp_err pack_panels(const chunk *c, uint64_t to, const rp_tensor *from, const rows_of *rows,
                          float factor, uint32_t apart, uint64_t angles) {
    rp_launch launch;
    rp_err err = rp_layer_begin(c->call, "attention_pack", "pack_panels", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, c->call->workspace);
    rp_arg_u64(&launch, to);
    rp_arg_buffer(&launch, from->buffer);
    rp_arg_u64(&launch, first_element(c, from, rows));
    rp_arg_u64(&launch, (uint64_t)rows->tokens * rows->row_stride);
    rp_arg_u32(&launch, rows->row_stride);
    rp_arg_u32(&launch, rows->heads);
    rp_arg_u32(&launch, rows->tokens);
    rp_arg_u32(&launch, rows->size);
    rp_arg_f32(&launch, factor);
    rp_arg_u32(&launch, apart);
    rp_arg_u64(&launch, angles);
    return run_groups(&launch, panels_of(rows->tokens), c->n * rows->heads);
}

static rp_err unpack_panels(const chunk *c, const rp_tensor *to, uint64_t from, const rows_of *rows,
                            float factor, bool add, uint32_t apart, uint64_t angles) {
    rp_launch launch;
    rp_err err = rp_layer_begin(c->call, "attention_pack", "unpack_panels", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, to->buffer);
    rp_arg_u64(&launch, first_element(c, to, rows));
    rp_arg_u64(&launch, (uint64_t)rows->tokens * rows->row_stride);
    rp_arg_u32(&launch, rows->row_stride);
    rp_arg_buffer(&launch, c->call->workspace);
    rp_arg_u64(&launch, from);
    rp_arg_u32(&launch, rows->heads);
    rp_arg_u32(&launch, rows->tokens);
    rp_arg_u32(&launch, rows->size);
    rp_arg_f32(&launch, factor);
    rp_arg_u32(&launch, add);
    rp_arg_u32(&launch, apart);
    rp_arg_u64(&launch, angles);
    return run_groups(&launch, panels_of(rows->tokens), c->n * rows->heads);
}

static rp_err mask_padding(const chunk *c) {
    const rp_tensor *ids = c->call->x[c->of.ids_input];
    const uint32_t keys = c->of.part[K].tokens;
    rp_launch launch;
    rp_err err = rp_layer_begin(c->call, "attention_pack", "mask_padding", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, c->call->workspace);
    rp_arg_u64(&launch, c->at.mask);
    rp_arg_buffer(&launch, ids->buffer);
    rp_arg_u64(&launch, ids->offset + (uint64_t)c->first * keys);
    rp_arg_u32(&launch, keys);
    rp_arg_i32(&launch, c->spec->padding);
    return run_groups(&launch, panels_of(keys), c->n);
}

static rp_err sum_rows(const chunk *c) {
    const rows_of *y = &c->of.y;
    rp_launch launch;
    rp_err err = rp_layer_begin(c->call, "attention_pack", "sum_rows", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, c->call->workspace);
    rp_arg_u64(&launch, c->at.delta);
    rp_arg_buffer(&launch, c->call->dy->buffer);
    rp_arg_u64(&launch, first_element(c, c->call->dy, y));
    rp_arg_buffer(&launch, c->call->y->buffer);
    rp_arg_u64(&launch, first_element(c, c->call->y, y));
    rp_arg_u32(&launch, y->heads);
    rp_arg_u32(&launch, y->tokens);
    rp_arg_u32(&launch, y->size);
    return run_groups(&launch, panels_of(y->tokens), c->n * y->heads);
}

/* Begins a kernel of attention.cl with the arguments that all of them have. */
static rp_err begin_tiles(const chunk *c, const char *entry, rp_launch *launch) {
    const rp_layer_call *call = c->call;
    const attention_spec *spec = c->spec;
    const uint32_t queries = c->of.part[Q].tokens;
    const uint32_t keys = c->of.part[K].tokens;
    const double p = call->training && !call->layer->frozen ? spec->dropout : 0.0;
    char name[RP_LAYER_NAME_MAX + 16];
    snprintf(name, sizeof name, "dropout/%s", call->layer->name);
    const rp_rng rng = rp_rng_named(call->seed, name);
    rp_err err = rp_layer_begin(call, "attention", entry, NULL, launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(launch, call->workspace);
    for (uint32_t i = 0; i < PARTS; i++) {
        rp_arg_u64(launch, c->at.part[i]);
    }
    rp_arg_u64(launch, c->at.mask);
    rp_arg_u32(launch, c->of.has_ids);
    rp_arg_buffer(launch, call->saved[0]);
    rp_arg_u64(launch, (uint64_t)(call->saved_first + c->first) * level_floats(&c->of));
    rp_arg_u32(launch, spec->heads);
    rp_arg_u32(launch, spec->kv_heads);
    rp_arg_u32(launch, queries);
    rp_arg_u32(launch, keys);
    rp_arg_u32(launch, c->of.part[Q].size);
    rp_arg_u32(launch, c->of.part[V].size);
    rp_arg_i32(launch, spec->causal ? (int32_t)keys - (int32_t)queries : (int32_t)keys);
    rp_arg_u64(launch, call->sample_first + c->first);
    rp_arg_u32(launch, rng.key[0]);
    rp_arg_u32(launch, rng.key[1]);
    rp_arg_u32(launch, (uint32_t)(p * 0x1p24 + 0.5));
    rp_arg_f32(launch, p < 1.0 ? (float)(1.0 / (1.0 - p)) : 0.0f);
    return RP_OK;
}

/* ---- forward -------------------------------------------------------------------------------- */

/* Panels of q, k and v, and the mask. */
static rp_err pack_inputs(const chunk *c) {
    rp_err err;
    for (uint32_t i = 0; i < PARTS; i++) {
        const rows_of *rows = &c->of.part[i];
        const float factor = i == Q ? score_scale(c) * (float)LOG2_E : 1.0f;
        RP_TRY(pack_panels(c, c->at.part[i], c->call->x[rows->input], rows, factor,
                           pair_distance(c, i), angles_of(c, i)));
    }
    if (c->of.has_ids) {
        RP_TRY(mask_padding(c));
    }
    return RP_OK;
fail:
    return err;
}

static rp_err forward_chunk(const chunk *c) {
    rp_launch launch;
    rp_err err;
    RP_TRY(pack_inputs(c));
    RP_TRY(begin_tiles(c, "attend", &launch));
    rp_arg_u64(&launch, c->at.y);
    RP_TRY(run_groups(&launch, panels_of(c->of.y.tokens), c->n * c->of.y.heads));
    return unpack_panels(c, c->call->y, c->at.y, &c->of.y, 1.0f, false, 0, 0);
fail:
    return err;
}

/* ---- backward ------------------------------------------------------------------------------- */

static rp_err find_key_gradients(const chunk *c) {
    rp_launch launch;
    rp_err err = begin_tiles(c, "attend_keys", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_u64(&launch, c->at.delta);
    rp_arg_u64(&launch, c->at.y);
    rp_arg_u64(&launch, c->at.gradient[K]);
    rp_arg_u64(&launch, c->at.gradient[V]);
    return run_groups(&launch, panels_of(c->of.part[K].tokens), c->n * c->of.part[K].heads);
}

static rp_err find_query_gradients(const chunk *c) {
    rp_launch launch;
    rp_err err = begin_tiles(c, "attend_queries", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_u64(&launch, c->at.delta);
    rp_arg_u64(&launch, c->at.y);
    rp_arg_u64(&launch, c->at.gradient[Q]);
    return run_groups(&launch, panels_of(c->of.y.tokens), c->n * c->of.y.heads);
}

/* The panels of q contain its scale and log2(e), which the gradient of k must not. */
static float gradient_factor(const chunk *c, uint32_t part) {
    return part == Q ? score_scale(c) : part == K ? (float)(1.0 / LOG2_E) : 1.0f;
}

static rp_err backward_chunk(const chunk *c) {
    const rp_layer_call *call = c->call;
    rp_err err;
    const bool wants_k = call->dx[c->of.part[K].input] || call->dx[c->of.part[V].input];
    RP_TRY(pack_inputs(c));
    RP_TRY(pack_panels(c, c->at.y, call->dy, &c->of.y, 1.0f, 0, 0));
    RP_TRY(sum_rows(c));
    if (wants_k) {
        RP_TRY(find_key_gradients(c));
    }
    if (call->dx[c->of.part[Q].input]) {
        RP_TRY(find_query_gradients(c));
    }
    for (uint32_t i = 0; i < PARTS; i++) {
        const rows_of *rows = &c->of.part[i];
        if (call->dx[rows->input]) {
            RP_TRY(unpack_panels(c, call->dx[rows->input], c->at.gradient[i], rows,
                                 gradient_factor(c, i), call->dx_add[rows->input],
                                 pair_distance(c, i), angles_of(c, i)));
        }
    }
    return RP_OK;
fail:
    return err;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static rp_err run_chunks(const rp_layer_call *call, rp_err (*run)(const chunk *)) {
    const attention_spec *spec = call->layer->spec;
    chunk c = {.call = call, .spec = spec};
    rp_err err;
    RP_TRY(find_inputs(call->layer, call->in, &c.of));
    c.at = plan_workspace(spec, &c.of, call->n);
    if (spec->rotary) {
        RP_TRY(find_angles(&c, Q));
        RP_TRY(find_angles(&c, K));
    }
    for (; c.first < call->n; c.first += c.n) {
        c.n = call->n - c.first < c.at.samples ? call->n - c.first : c.at.samples;
        RP_TRY(run(&c));
    }
    return RP_OK;
fail:
    return err;
}

static rp_err forward_attention(const rp_layer_call *call) {
    return run_chunks(call, forward_chunk);
}

static rp_err backward_attention(const rp_layer_call *call) {
    bool wanted = false;
    for (uint32_t i = 0; i < call->layer->input_count; i++) {
        wanted |= call->dx[i] != NULL;
    }
    return call->want_dx && wanted ? run_chunks(call, backward_chunk) : RP_OK;
}

const rp_layer_kind rp_layer_attention = {
    .name = "attention",
    .keys = "heads, kv_heads, causal, scale, dropout, padding, rotary, from",
    .source = "Vaswani et al. 2017; torch.nn.functional.scaled_dot_product_attention",
    .spec_bytes = sizeof(attention_spec),
    .inputs_min = 1,
    .inputs_max = 4,
    .parse = parse_attention,
    .plan = plan_attention,
    .workspace_bytes = workspace_bytes,
    .forward = forward_attention,
    .backward = backward_attention,
};
