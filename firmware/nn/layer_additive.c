/* Additive attention, with one trained vector v: for each query t
 *   e[t, s] = v . tanh(q[t] + k[s] + bias),   y[t] = softmax over s (e[t]) memory
 *
 * Inputs are q [T, U], k [S, U], whose projections are layers of their own, and memory [S, M]; the
 * token ids [S] may follow, whose `padding` id masks keys. If `normalise`, v = scalar weight /
 * |weight|, and there is a bias. The output of a query that sees no key is 0, and it has no
 * gradient. The weights of pairs of a query and a key are in the workspace, for as many samples at
 * a time as have at most PAIRS_MAX of them; a backward computes them again. */
#include "nn/layer_common.h"

#include <math.h>

enum { Q, K, MEMORY, IDS, GROUP_ITEMS = 16, PAIRS_MAX = 1 << 24 };
enum { WEIGHT, SCALAR, BIAS };

typedef struct {
    bool normalise;
    bool has_padding;
    int32_t padding;
} additive_spec;

typedef struct {
    uint32_t queries, keys, units, columns;
} additive_sizes;

static rp_err parse_additive(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    additive_spec *spec = layer->spec;
    rp_err err;
    (void)data;
    *spec = (additive_spec){0};
    const rp_node *padding = rp_node_find(keys, "padding");
    spec->has_padding = padding != NULL;
    RP_TRY(rp_node_bool(keys, "normalise", &spec->normalise));
    RP_TRY(rp_node_i32(keys, "padding", &spec->padding));
    if (layer->input_count > IDS && !padding) {
        return rp_node_fail(keys, "additive with token ids as its last input needs `padding`, the "
                                  "id that masks a key");
    }
    if (layer->input_count == IDS && padding) {
        return rp_node_fail(padding, "`padding` needs the token ids as the last input of additive");
    }
fail:
    return err;
}

static additive_sizes sizes_of(const rp_shape *in) {
    return (additive_sizes){in[Q].dim[0], in[K].dim[0], in[Q].dim[1], in[MEMORY].dim[1]};
}

static rp_err check_shapes(const rp_layer *layer, const rp_shape *in) {
    char text[4][RP_LAYER_SHAPE_TEXT];
    const bool ids = layer->input_count > IDS;
    const bool sequences = in[Q].dims == 2 && in[K].dims == 2 && in[MEMORY].dims == 2;
    if (!sequences || in[Q].dim[1] != in[K].dim[1] || in[K].dim[0] != in[MEMORY].dim[0] ||
        (ids && (in[IDS].dims != 1 || in[IDS].dim[0] != in[K].dim[0]))) {
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': additive needs q [T, U], k [S, U], memory [S, M] and, with "
                       "padding, token ids [S]; found %s, %s, %s%s%s",
                       layer->name, rp_layer_shape_text(&in[Q], text[0]),
                       rp_layer_shape_text(&in[K], text[1]),
                       rp_layer_shape_text(&in[MEMORY], text[2]), ids ? ", " : "",
                       ids ? rp_layer_shape_text(&in[IDS], text[3]) : "");
    }
    if ((uint64_t)in[Q].dim[0] * in[K].dim[0] > PAIRS_MAX) {
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': additive takes at most %d pairs of a query and a "
                       "key, found %u x %u",
                       layer->name, PAIRS_MAX, in[Q].dim[0], in[K].dim[0]);
    }
    return RP_OK;
}

static rp_err plan_additive(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const additive_spec *spec = layer->spec;
    rp_err err = check_shapes(layer, in);
    if (err != RP_OK) {
        return err;
    }
    const additive_sizes size = sizes_of(in);
    const double pairs = (double)size.queries * size.keys;
    const float bound = 1.0f / sqrtf((float)size.units);
    *out = (rp_layer_plan){
        .out = rp_shape_2(size.queries, size.columns),
        .param_count = spec->normalise ? 3 : 1,
        .param = {{"linear_att", rp_shape_1(size.units), RP_PARAM_TRAINED, RP_INIT_UNIFORM, bound},
                  {"normalize_scalar", rp_shape_1(1), RP_PARAM_TRAINED, RP_INIT_CONSTANT, bound},
                  {"normalize_bias", rp_shape_1(size.units), RP_PARAM_TRAINED, RP_INIT_ZERO, 0}},
        .needs_x = true,
        .ids = layer->input_count > IDS ? 1u << IDS : 0,
        .flops_forward = pairs * (10.0 * size.units + 2.0 * size.columns),
        .flops_backward = pairs * (35.0 * size.units + 4.0 * size.columns),
    };
    return RP_OK;
}

/* ---- workspace ------------------------------------------------------------------------------ */

/* Samples that are computed together. */
static uint32_t chunk_samples(const additive_sizes *size, uint32_t n) {
    const uint32_t fit = PAIRS_MAX / (size->queries * size->keys);
    return fit < n ? fit : n;
}

/* First floats of what kernels/additive.cl calls so, and of the parts of sums over queries. */
typedef struct {
    uint64_t v, p, de, dq, dv, ds, parts, end;
} workspace_plan;

static workspace_plan plan_workspace(const additive_sizes *size, uint32_t n) {
    const uint64_t pairs = (uint64_t)n * size->queries * size->keys;
    const uint64_t rows = (uint64_t)n * size->queries;
    workspace_plan at = {0};
    at.p = at.v + size->units;
    at.de = at.p + pairs;
    at.dq = at.de + pairs;
    at.dv = at.dq + rows * size->units;
    at.ds = at.dv + rows * size->units;
    at.parts = at.ds + rows;
    at.end = at.parts + rp_layer_bias_floats((uint32_t)rows, size->units, 1);
    return at;
}

static size_t workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan, const rp_shape *in,
                              uint32_t n, rp_gemm_choice choice) {
    (void)layer;
    (void)plan;
    (void)choice;
    const additive_sizes size = sizes_of(in);
    return (size_t)plan_workspace(&size, chunk_samples(&size, n)).end * sizeof(float);
}

/* ---- launches ------------------------------------------------------------------------------- */

typedef struct {
    const rp_layer_call *call;
    const additive_spec *spec;
    additive_sizes size;
    workspace_plan at;
    uint32_t rows; /* queries of all samples */
} pass;

static pass begin_pass(const rp_layer_call *call) {
    pass p = {.call = call, .spec = call->layer->spec, .size = sizes_of(call->in)};
    p.at = plan_workspace(&p.size, call->n);
    p.rows = call->n * p.size.queries;
    return p;
}

static rp_err begin(const pass *p, const char *entry, rp_launch *launch) {
    return rp_layer_begin(p->call, "additive", entry, NULL, launch);
}

static const rp_buffer *param_of(const pass *p, uint32_t index) {
    return p->spec->normalise ? p->call->param[index]->buffer : NULL;
}

/* n, queries, keys and the width of a row. */
static void add_sizes(const pass *p, uint32_t width, rp_launch *launch) {
    rp_arg_u32(launch, p->call->n);
    rp_arg_u32(launch, p->size.queries);
    rp_arg_u32(launch, p->size.keys);
    rp_arg_u32(launch, width);
}

static rp_err run_rows(rp_launch *launch, uint64_t rows, uint32_t width) {
    return rp_layer_run_items(launch, rows * rp_layer_divide_up(width, 16), GROUP_ITEMS);
}

static rp_err run_pairs(const pass *p, rp_launch *launch) {
    return rp_layer_run_items(launch, (size_t)p->rows * p->size.keys, GROUP_ITEMS);
}

static rp_err scale_weight(const pass *p) {
    rp_launch launch;
    rp_err err;
    RP_TRY(begin(p, "additive_weight", &launch));
    rp_arg_buffer(&launch, p->call->workspace);
    rp_arg_u64(&launch, p->at.v);
    rp_arg_buffer(&launch, p->call->param[WEIGHT]->buffer);
    rp_arg_buffer(&launch, param_of(p, SCALAR));
    rp_arg_u32(&launch, p->size.units);
    RP_TRY(run_rows(&launch, 1, p->size.units));
fail:
    return err;
}

static rp_err make_scores(const pass *p) {
    const rp_tensor *ids = p->call->layer->input_count > IDS ? p->call->x[IDS] : NULL;
    rp_launch launch;
    rp_err err;
    RP_TRY(begin(p, "additive_scores", &launch));
    rp_arg_buffer(&launch, p->call->workspace);
    rp_arg_u64(&launch, p->at.p);
    rp_arg_u64(&launch, p->at.v);
    rp_arg_tensor(&launch, p->call->x[Q]);
    rp_arg_tensor(&launch, p->call->x[K]);
    rp_arg_buffer(&launch, param_of(p, BIAS));
    rp_arg_buffer(&launch, ids ? ids->buffer : NULL);
    rp_arg_u64(&launch, ids ? ids->offset : 0);
    rp_arg_i32(&launch, p->spec->padding);
    add_sizes(p, p->size.units, &launch);
    RP_TRY(run_pairs(p, &launch));
fail:
    return err;
}

static rp_err make_weights(const pass *p) {
    rp_launch launch;
    rp_err err;
    RP_TRY(scale_weight(p));
    RP_TRY(make_scores(p));
    RP_TRY(begin(p, "additive_softmax", &launch));
    rp_arg_buffer(&launch, p->call->workspace);
    rp_arg_u64(&launch, p->at.p);
    rp_arg_u32(&launch, p->rows);
    rp_arg_u32(&launch, p->size.keys);
    RP_TRY(rp_layer_run_items(&launch, p->rows, GROUP_ITEMS));
fail:
    return err;
}

static rp_err forward_chunk(const rp_layer_call *call) {
    const pass p = begin_pass(call);
    rp_launch launch;
    rp_err err;
    RP_TRY(make_weights(&p));
    RP_TRY(begin(&p, "additive_context", &launch));
    rp_arg_tensor(&launch, call->y);
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_u64(&launch, p.at.p);
    rp_arg_tensor(&launch, call->x[MEMORY]);
    add_sizes(&p, p.size.columns, &launch);
    RP_TRY(run_rows(&launch, p.rows, p.size.columns));
fail:
    return err;
}

static rp_err differentiate_scores(const pass *p) {
    rp_launch launch;
    rp_err err;
    RP_TRY(begin(p, "additive_products", &launch));
    rp_arg_buffer(&launch, p->call->workspace);
    rp_arg_u64(&launch, p->at.de);
    rp_arg_tensor(&launch, p->call->dy);
    rp_arg_tensor(&launch, p->call->x[MEMORY]);
    add_sizes(p, p->size.columns, &launch);
    RP_TRY(run_pairs(p, &launch));
    RP_TRY(begin(p, "additive_dsoftmax", &launch));
    rp_arg_buffer(&launch, p->call->workspace);
    rp_arg_u64(&launch, p->at.de);
    rp_arg_u64(&launch, p->at.p);
    rp_arg_u32(&launch, p->rows);
    rp_arg_u32(&launch, p->size.keys);
    RP_TRY(rp_layer_run_items(&launch, p->rows, GROUP_ITEMS));
fail:
    return err;
}

/* q, k and bias, which tanh(q + k + bias) is made of. */
static void add_bend(const pass *p, rp_launch *launch) {
    rp_arg_tensor(launch, p->call->x[Q]);
    rp_arg_tensor(launch, p->call->x[K]);
    rp_arg_buffer(launch, param_of(p, BIAS));
}

static rp_err differentiate_queries(const pass *p) {
    rp_launch launch;
    rp_err err;
    RP_TRY(begin(p, "additive_dquery", &launch));
    rp_arg_buffer(&launch, p->call->workspace);
    rp_arg_u64(&launch, p->at.dq);
    rp_arg_u64(&launch, p->at.dv);
    rp_arg_u64(&launch, p->at.de);
    rp_arg_u64(&launch, p->at.v);
    add_bend(p, &launch);
    add_sizes(p, p->size.units, &launch);
    RP_TRY(run_rows(&launch, p->rows, p->size.units));
fail:
    return err;
}

static rp_err differentiate_keys(const pass *p) {
    rp_launch launch;
    rp_err err;
    RP_TRY(begin(p, "additive_dkey", &launch));
    rp_arg_tensor(&launch, p->call->dx[K]);
    rp_arg_buffer(&launch, p->call->workspace);
    rp_arg_u64(&launch, p->at.de);
    rp_arg_u64(&launch, p->at.v);
    add_bend(p, &launch);
    add_sizes(p, p->size.units, &launch);
    rp_arg_u32(&launch, p->call->dx_add[K]);
    RP_TRY(run_rows(&launch, (uint64_t)p->call->n * p->size.keys, p->size.units));
fail:
    return err;
}

static rp_err differentiate_memory(const pass *p) {
    rp_launch launch;
    rp_err err;
    RP_TRY(begin(p, "additive_dmemory", &launch));
    rp_arg_tensor(&launch, p->call->dx[MEMORY]);
    rp_arg_buffer(&launch, p->call->workspace);
    rp_arg_u64(&launch, p->at.p);
    rp_arg_tensor(&launch, p->call->dy);
    add_sizes(p, p->size.columns, &launch);
    rp_arg_u32(&launch, p->call->dx_add[MEMORY]);
    RP_TRY(run_rows(&launch, (uint64_t)p->call->n * p->size.keys, p->size.columns));
fail:
    return err;
}

static rp_err differentiate_normal(const pass *p) {
    rp_launch launch;
    rp_err err;
    RP_TRY(begin(p, "additive_dnormalise", &launch));
    rp_arg_buffer(&launch, p->call->workspace);
    rp_arg_u64(&launch, p->at.dv);
    rp_arg_u64(&launch, p->at.ds);
    rp_arg_buffer(&launch, p->call->param[WEIGHT]->buffer);
    rp_arg_buffer(&launch, p->call->param[SCALAR]->buffer);
    rp_arg_u32(&launch, p->rows);
    rp_arg_u32(&launch, p->size.units);
    RP_TRY(rp_layer_run_items(&launch, p->rows, GROUP_ITEMS));
fail:
    return err;
}

/* dparam (+)= the sum over all queries of `width` floats of each. */
static rp_err sum_queries(const pass *p, uint32_t param, uint64_t at, uint32_t width) {
    const rp_rows rows = {p->call->workspace, at, 0};
    return p->call->dparam[param] ? rp_layer_bias_gradient(p->call, p->call->dparam[param]->buffer,
                                                           p->at.parts, rows, p->rows, width, 1)
                                  : RP_OK;
}

static rp_err differentiate_params(const pass *p) {
    rp_err err = RP_OK;
    if (p->spec->normalise) {
        RP_TRY(differentiate_normal(p));
        RP_TRY(sum_queries(p, SCALAR, p->at.ds, 1));
        RP_TRY(sum_queries(p, BIAS, p->at.dq, p->size.units));
    }
    RP_TRY(sum_queries(p, WEIGHT, p->at.dv, p->size.units));
fail:
    return err;
}

static rp_err give_queries(const pass *p) {
    const uint32_t count = p->size.queries * p->size.units;
    const rp_rows from = {p->call->workspace, p->at.dq, count};
    return rp_layer_copy_rows(p->call, rp_layer_rows(p->call->dx[Q], count), from, count,
                              p->call->n, p->call->dx_add[Q]);
}

static rp_err backward_chunk(const rp_layer_call *call) {
    const pass p = begin_pass(call);
    rp_err err;
    RP_TRY(make_weights(&p));
    RP_TRY(differentiate_scores(&p));
    RP_TRY(differentiate_queries(&p));
    if (call->want_dx) {
        RP_TRY(call->dx[Q] ? give_queries(&p) : RP_OK);
        RP_TRY(call->dx[K] ? differentiate_keys(&p) : RP_OK);
        RP_TRY(call->dx[MEMORY] ? differentiate_memory(&p) : RP_OK);
    }
    if (call->want_dw) {
        RP_TRY(differentiate_params(&p));
    }
fail:
    return err;
}

/* Views of the samples of a chunk. */
typedef struct {
    rp_tensor x[IDS + 1], dx[IDS], y, dy;
} views;

static rp_err slice_call(const rp_layer_call *whole, uint32_t first, views *of,
                         rp_layer_call *part) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < whole->layer->input_count; i++) {
        RP_TRY(rp_tensor_slice(whole->x[i], first, part->n, &of->x[i]));
        part->x[i] = &of->x[i];
        if (whole->dx[i]) {
            RP_TRY(rp_tensor_slice(whole->dx[i], first, part->n, &of->dx[i]));
            part->dx[i] = &of->dx[i];
        }
    }
    if (whole->y) {
        RP_TRY(rp_tensor_slice(whole->y, first, part->n, &of->y));
        part->y = &of->y;
    }
    if (whole->dy) {
        RP_TRY(rp_tensor_slice(whole->dy, first, part->n, &of->dy));
        part->dy = &of->dy;
    }
fail:
    return err;
}

/* Gradients of parameters are added chunk by chunk, in an order that the shapes decide. */
static rp_err run_chunks(const rp_layer_call *call, rp_err (*run)(const rp_layer_call *part)) {
    const additive_sizes size = sizes_of(call->in);
    const uint32_t most = chunk_samples(&size, call->n);
    rp_err err = RP_OK;
    for (uint32_t first = 0; first < call->n; first += most) {
        rp_layer_call part = *call;
        views of;
        part.n = call->n - first < most ? call->n - first : most;
        part.accumulate = call->accumulate || first > 0;
        RP_TRY(slice_call(call, first, &of, &part));
        RP_TRY(run(&part));
    }
fail:
    return err;
}

static rp_err forward_additive(const rp_layer_call *call) {
    return run_chunks(call, forward_chunk);
}

static rp_err backward_additive(const rp_layer_call *call) {
    return run_chunks(call, backward_chunk);
}

const rp_layer_kind rp_layer_additive = {
    .name = "additive",
    .keys = "from, normalise, padding",
    .source = "Bahdanau et al. 2015, eq. 6; normalised as in GNMT and TensorFlow's "
              "BahdanauAttention",
    .spec_bytes = sizeof(additive_spec),
    .inputs_min = 3,
    .inputs_max = 4,
    .parse = parse_additive,
    .plan = plan_additive,
    .workspace_bytes = workspace_bytes,
    .forward = forward_additive,
    .backward = backward_additive,
};
