/* Everything is copied to panels in the workspace (kernels/attention.clh), where tiles of 32 x 32
 * scores are made and used; only the log-sum-exp of each row is saved. Rotary positions are applied
 * to the panels. Samples are processed in chunks that keep the workspace within CHUNK_FLOATS, if it
 * suffices for one sample. */
#include <math.h>
#include <stdio.h>

#include "nn/attention_own.h"

enum { TOKENS = RP_ATTENTION_TOKENS, CHUNK_FLOATS = 1 << 20 };

#define LOG2_E RP_ATTENTION_LOG2_E

enum { Q = RP_ATTENTION_Q, K = RP_ATTENTION_K, V = RP_ATTENTION_V, PARTS = RP_ATTENTION_PARTS };

static uint32_t panels_of(uint32_t tokens) {
    return rp_layer_divide_up(tokens, TOKENS);
}

size_t rp_attention_level_floats(const rp_attention_inputs *of) {
    return (size_t)of->y.heads * panels_of(of->y.tokens) * TOKENS;
}

/* ---- workspace ------------------------------------------------------------------------------ */

/* First floats of what is in the workspace; forward and backward use the same plan. */
typedef struct {
    uint64_t q_angles, k_angles;
    uint64_t part[PARTS], mask, y; /* panels; y: of dy in a backward */
    uint64_t gradient[PARTS], delta, end;
    uint32_t samples; /* of a chunk */
} workspace_plan;

static uint64_t panel_floats(const rp_attention_rows *rows) {
    const uint64_t depth = rp_layer_divide_up(rows->size, 8) * (uint64_t)8;
    return depth * TOKENS * panels_of(rows->tokens) * rows->heads;
}

static uint64_t take_floats(uint64_t *end, uint64_t count) {
    const uint64_t first = *end;
    *end += count;
    return first;
}

/* Places that grow with the number of samples. */
static void plan_samples(workspace_plan *plan, const rp_attention_inputs *of, uint32_t samples) {
    plan->samples = samples;
    for (uint32_t i = 0; i < PARTS; i++) {
        plan->part[i] = take_floats(&plan->end, samples * panel_floats(&of->part[i]));
        plan->gradient[i] = take_floats(&plan->end, samples * panel_floats(&of->part[i]));
    }
    plan->y = take_floats(&plan->end, samples * panel_floats(&of->y));
    plan->delta = take_floats(&plan->end, samples * rp_attention_level_floats(of));
    plan->mask =
        take_floats(&plan->end, (uint64_t)samples * panels_of(of->part[K].tokens) * TOKENS);
}

static workspace_plan plan_workspace(const rp_attention_spec *spec, const rp_attention_inputs *of,
                                     uint32_t n) {
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

size_t rp_attention_floats(const rp_attention_spec *spec, const rp_attention_inputs *of,
                           uint32_t n) {
    return (size_t)plan_workspace(spec, of, n).end;
}

/* ---- launches ------------------------------------------------------------------------------- */

/* Samples [first, first + n) of a call. */
typedef struct {
    const rp_layer_call *call;
    const rp_attention_spec *spec;
    rp_attention_inputs of;
    workspace_plan at;
    uint32_t first, n;
} chunk;

static rp_err run_groups(rp_launch *launch, uint32_t columns, uint32_t rows) {
    return rp_launch_run(launch, 2, (size_t[]){columns, rows}, (size_t[]){1, 1});
}

float rp_attention_scale(const rp_attention_spec *spec, const rp_attention_inputs *of) {
    return spec->scale > 0.0f ? spec->scale : 1.0f / sqrtf((float)of->part[Q].size);
}

static float score_scale(const chunk *c) {
    return rp_attention_scale(c->spec, &c->of);
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
    const rp_attention_rows *rows = &c->of.part[part];
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
static uint64_t first_element(const chunk *c, const rp_tensor *tensor,
                              const rp_attention_rows *rows) {
    return tensor->offset + (uint64_t)c->first * rows->tokens * rows->row_stride + rows->first;
}

static rp_err pack_panels(const chunk *c, uint64_t to, const rp_tensor *from,
                          const rp_attention_rows *rows, float factor, uint32_t apart,
                          uint64_t angles) {
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
    return run_groups(&launch, c->n * rows->heads, panels_of(rows->tokens));
}

static rp_err unpack_panels(const chunk *c, const rp_tensor *to, uint64_t from,
                            const rp_attention_rows *rows, float factor, bool add, uint32_t apart,
                            uint64_t angles) {
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
    return run_groups(&launch, c->n * rows->heads, panels_of(rows->tokens));
}

rp_err rp_attention_mask(const rp_layer_call *call, const rp_attention_inputs *of, uint64_t to,
                         uint32_t first, uint32_t n) {
    const rp_attention_spec *spec = call->layer->spec;
    const rp_tensor *ids = call->x[of->ids_input];
    const uint32_t keys = of->part[K].tokens;
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "attention_pack", "mask_padding", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_u64(&launch, to);
    rp_arg_buffer(&launch, ids->buffer);
    rp_arg_u64(&launch, ids->offset + (uint64_t)first * keys);
    rp_arg_u32(&launch, keys);
    rp_arg_i32(&launch, spec->padding);
    return run_groups(&launch, panels_of(keys), n);
}

static rp_err sum_rows(const chunk *c) {
    const rp_attention_rows *y = &c->of.y;
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
    return run_groups(&launch, c->n * y->heads, panels_of(y->tokens));
}

void rp_attention_arg_heads(const rp_layer_call *call, const rp_attention_inputs *of,
                            uint32_t first, rp_launch *launch) {
    const rp_attention_spec *spec = call->layer->spec;
    const uint32_t queries = of->part[Q].tokens;
    const uint32_t keys = of->part[K].tokens;
    const double p = call->training && !call->layer->frozen ? spec->dropout : 0.0;
    char name[RP_LAYER_NAME_MAX + 16];
    snprintf(name, sizeof name, "dropout/%s", call->layer->name);
    const rp_rng rng = rp_rng_named(call->seed, name);
    rp_arg_buffer(launch, call->saved[0]);
    rp_arg_u64(launch, (uint64_t)(call->saved_first + first) * rp_attention_level_floats(of));
    rp_arg_u32(launch, spec->heads);
    rp_arg_u32(launch, spec->kv_heads);
    rp_arg_u32(launch, queries);
    rp_arg_u32(launch, keys);
    rp_arg_u32(launch, of->part[Q].size);
    rp_arg_u32(launch, of->part[V].size);
    rp_arg_i32(launch, spec->causal ? (int32_t)keys - (int32_t)queries : (int32_t)keys);
    rp_arg_u32(launch, rp_layer_longest_in(call, of->part[Q].input)->dim[0]);
    rp_arg_u32(launch, rp_layer_longest_in(call, of->part[K].input)->dim[0]);
    rp_arg_u64(launch, call->sample_first + first);
    rp_arg_u32(launch, rng.key[0]);
    rp_arg_u32(launch, rng.key[1]);
    rp_arg_u32(launch, (uint32_t)(p * 0x1p24 + 0.5));
    rp_arg_f32(launch, p < 1.0 ? (float)(1.0 / (1.0 - p)) : 0.0f);
}

/* Begins a kernel of attention.cl with the arguments that all of them have. */
static rp_err begin_tiles(const chunk *c, const char *entry, rp_launch *launch) {
    rp_err err = rp_layer_begin(c->call, "attention", entry, NULL, launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(launch, c->call->workspace);
    for (uint32_t i = 0; i < PARTS; i++) {
        rp_arg_u64(launch, c->at.part[i]);
    }
    rp_arg_u64(launch, c->at.mask);
    rp_arg_u32(launch, c->of.has_ids);
    rp_attention_arg_heads(c->call, &c->of, c->first, launch);
    return RP_OK;
}

/* ---- forward -------------------------------------------------------------------------------- */

/* Panels of q, k and v, and the mask. */
static rp_err pack_inputs(const chunk *c) {
    rp_err err;
    for (uint32_t i = 0; i < PARTS; i++) {
        const rp_attention_rows *rows = &c->of.part[i];
        const float factor = i == Q ? score_scale(c) * (float)LOG2_E : 1.0f;
        RP_TRY(pack_panels(c, c->at.part[i], c->call->x[rows->input], rows, factor,
                           pair_distance(c, i), angles_of(c, i)));
    }
    if (c->of.has_ids) {
        RP_TRY(rp_attention_mask(c->call, &c->of, c->at.mask, c->first, c->n));
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
        const rp_attention_rows *rows = &c->of.part[i];
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

static rp_err run_chunks(const rp_layer_call *call, const rp_attention_inputs *of,
                         rp_err (*run)(const chunk *)) {
    const rp_attention_spec *spec = call->layer->spec;
    chunk c = {.call = call, .spec = spec, .of = *of, .at = plan_workspace(spec, of, call->n)};
    rp_err err;
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

rp_err rp_attention_forward(const rp_layer_call *call, const rp_attention_inputs *of) {
    return run_chunks(call, of, forward_chunk);
}

rp_err rp_attention_backward(const rp_layer_call *call, const rp_attention_inputs *of) {
    return run_chunks(call, of, backward_chunk);
}
