/* Attention of several heads, by products and softmax, and additive attention. */
#include <math.h>

#include "export/layer.h"

static const int64_t swap_heads[] = {0, 2, 1, 3};
static const int64_t turn_keys[] = {0, 2, 3, 1};

enum { Q, K, V, PARTS };

/* What a layer computes. q is [N, T, heads D], k [N, S, kv_heads D], v [N, S, kv_heads Dv]. */
typedef struct {
    uint32_t heads, kv_heads;
    uint32_t queries, keys; /* T, S */
    uint32_t size, wide;    /* D, Dv */
    bool causal, interleaved;
    double scale, dropout;
    double base; /* of rotary positions; 0: not used */
    int32_t padding;
    const char *part[PARTS];
    const char *ids; /* NULL: no keys are masked by ids */
} attention;

/* ---- reading --------------------------------------------------------------------------------- */

static void read_rotary(rp_export_layer *l, attention *a) {
    rp_node *rotary = rp_node_find(l->keys, "rotary");
    float base = 10000.0f;
    rp_err err = RP_OK;
    if (!rotary) {
        return;
    }
    RP_TRY(rp_node_f32(rotary, "base", 1.0, 1e9, &base));
    RP_TRY(rp_node_bool(rotary, "interleaved", &a->interleaved));
    RP_TRY(rp_node_done(rotary));
    a->base = (double)base;
fail:
    l->graph->err = l->graph->err == RP_OK ? err : l->graph->err;
}

/* Sizes and inputs: one tensor with q, k and v side by side, or three. */
static void read_inputs(rp_export_layer *l, attention *a) {
    const bool packed = l->input_count <= 2;
    const rp_shape *k = &l->in[packed ? 0 : K];
    a->queries = l->in[Q].dim[0];
    a->keys = k->dim[0];
    a->size = l->in[Q].dim[1] / (packed ? a->heads + 2 * a->kv_heads : a->heads);
    a->wide = l->plan->out.dim[1] / a->heads;
    a->ids = l->input_count % 2 == 0 ? l->x[l->input_count - 1] : NULL;
    if (!packed) {
        for (uint32_t i = 0; i < PARTS; i++) {
            a->part[i] = l->x[i];
        }
        return;
    }
    const int64_t columns[] = {(int64_t)a->heads * a->size, (int64_t)a->kv_heads * a->size,
                               (int64_t)a->kv_heads * a->size};
    const char *sizes = rp_export_whole(l, PARTS, columns);
    (void)RP_EXPORT_OP(l, "Split", l->x[0], sizes);
    rp_export_int(l, "axis", 2);
    rp_export_outputs(l, PARTS);
    for (uint32_t i = 0; i < PARTS; i++) {
        a->part[i] = rp_export_output(l, i);
    }
}

static attention read_attention(rp_export_layer *l) {
    attention a = {.heads = rp_export_key_u32(l, "heads", 1)};
    a.kv_heads = rp_export_key_u32(l, "kv_heads", a.heads);
    a.causal = rp_export_key_bool(l, "causal", false);
    a.dropout = rp_export_key_f64(l, "dropout", 0.0);
    a.padding = rp_export_key_i32(l, "padding", 0);
    a.scale = rp_export_key_f64(l, "scale", 0.0);
    read_rotary(l, &a);
    read_inputs(l, &a);
    a.scale = a.scale > 0.0 ? a.scale : 1.0 / sqrt((double)a.size);
    return a;
}

/* ---- rotary positions ------------------------------------------------------------------------ */

/* cos or sin of the angles of tokens at first, first + 1, ...: [tokens, D], each angle for both
 * columns of its pair. */
static const char *write_angles(rp_export_layer *l, const attention *a, uint32_t tokens,
                                int64_t first, double (*function)(double)) {
    const int64_t dim[] = {tokens, a->size};
    const uint32_t pairs = a->size / 2;
    float *angles = NULL;
    RP_EXPORT_NEW(l->graph, (size_t)tokens * a->size, &angles);
    for (size_t i = 0; angles && i < (size_t)tokens * a->size; i++) {
        const uint32_t column = (uint32_t)(i % a->size);
        const uint32_t pair = a->interleaved ? column / 2 : column % pairs;
        const float rate = (float)pow(a->base, -2.0 * pair / a->size);
        const float position = (float)(first + (int64_t)(i / a->size));
        angles[i] = (float)function((double)(position * rate));
    }
    return rp_export_table(l, 2, dim, angles);
}

/* (-x2, x1) of each pair (x1, x2); x is [N, heads, tokens, D]. */
static const char *turn_pairs(rp_export_layer *l, const attention *a, const char *x, uint32_t heads,
                              uint32_t tokens) {
    const int64_t split[] = {0, heads, tokens, a->size / 2, 2};
    const int64_t joined[] = {0, heads, tokens, a->size};
    const int64_t axis = a->interleaved ? 4 : 3;
    const int64_t half = a->interleaved ? 1 : a->size / 2;
    x = a->interleaved ? rp_export_reshape(l, x, 5, split) : x;
    const char *first = rp_export_slice(l, x, axis, 0, half);
    const char *second = rp_export_slice(l, x, axis, half, 2 * half);
    const char *negative = RP_EXPORT_OP(l, "Neg", second);
    const char *y = RP_EXPORT_OP(l, "Concat", negative, first);
    rp_export_int(l, "axis", axis);
    return a->interleaved ? rp_export_reshape(l, y, 4, joined) : y;
}

static const char *turn(rp_export_layer *l, const attention *a, const char *x, uint32_t heads,
                        uint32_t tokens) {
    const int64_t first = (int64_t)a->keys - tokens;
    const char *turned = turn_pairs(l, a, x, heads, tokens);
    const char *cosines = write_angles(l, a, tokens, first, cos);
    const char *kept = RP_EXPORT_OP(l, "Mul", x, cosines);
    const char *sines = write_angles(l, a, tokens, first, sin);
    const char *moved = RP_EXPORT_OP(l, "Mul", turned, sines);
    return RP_EXPORT_OP(l, "Add", kept, moved);
}

/* ---- heads ----------------------------------------------------------------------------------- */

/* Each head of k or v for as many heads of q as share it. */
static const char *repeat_heads(rp_export_layer *l, const attention *a, const char *x,
                                uint32_t size) {
    static const int64_t after_heads[] = {2};
    const uint32_t times = a->heads / a->kv_heads;
    const int64_t wanted[] = {1, 1, times, 1, 1};
    const int64_t joined[] = {0, a->heads, a->keys, size};
    if (times == 1) {
        return x;
    }
    const char *groups = rp_export_unsqueeze(l, x, 1, after_heads);
    const char *shape = rp_export_whole(l, 5, wanted);
    const char *all = RP_EXPORT_OP(l, "Expand", groups, shape);
    return rp_export_reshape(l, all, 4, joined);
}

/* q, k or v as [N, heads, tokens, size]; k as [N, heads, size, tokens]. */
static const char *split_heads(rp_export_layer *l, const attention *a, uint32_t part) {
    const uint32_t heads = part == Q ? a->heads : a->kv_heads;
    const uint32_t tokens = part == Q ? a->queries : a->keys;
    const uint32_t size = part == V ? a->wide : a->size;
    const int64_t split[] = {0, tokens, heads, size};
    const bool plain = part == K && a->base == 0.0 && heads == a->heads;
    const char *x = rp_export_reshape(l, a->part[part], 4, split);
    x = rp_export_transpose(l, x, 4, plain ? turn_keys : swap_heads);
    if (a->base > 0.0 && part != V) {
        x = turn(l, a, x, heads, tokens);
    }
    if (part != Q && !plain) {
        x = repeat_heads(l, a, x, size);
    }
    static const int64_t turn_last[] = {0, 1, 3, 2};
    return part == K && !plain ? rp_export_transpose(l, x, 4, turn_last) : x;
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* [T, S]: 0 where query t sees key s <= t + S - T, else minus infinity. Layers of one size share
 * the table. */
static const char *write_triangle(rp_export_layer *l, const attention *a) {
    rp_export_graph *graph = l->graph;
    const int64_t dim[] = {a->queries, a->keys};
    float *mask = NULL;
    if (graph->triangle && graph->triangle_queries == a->queries &&
        graph->triangle_keys == a->keys) {
        return graph->triangle;
    }
    RP_EXPORT_NEW(graph, (size_t)a->queries * a->keys, &mask);
    for (uint64_t i = 0; mask && i < (uint64_t)a->queries * a->keys; i++) {
        const bool sees = i % a->keys + a->queries <= i / a->keys + a->keys;
        mask[i] = sees ? 0.0f : -INFINITY;
    }
    graph->triangle = rp_export_table(l, 2, dim, mask);
    graph->triangle_queries = a->queries;
    graph->triangle_keys = a->keys;
    return graph->triangle;
}

/* Scores of keys that are padding become minus infinity. `axes`: those that ids [N, S] lack. */
static const char *mask_padding(rp_export_layer *l, const char *ids, int32_t padding,
                                const char *scores, uint32_t axis_count, const int64_t *axes) {
    const char *id = rp_export_id(l, padding);
    const char *same = RP_EXPORT_OP(l, "Equal", ids, id);
    const char *is_padding = rp_export_unsqueeze(l, same, axis_count, axes);
    const char *least = rp_export_number(l, -INFINITY);
    return RP_EXPORT_OP(l, "Where", is_padding, least, scores);
}

/* Softmax over keys; a query that sees no key has the weights 0. */
static const char *write_softmax(rp_export_layer *l, const char *scores, bool may_see_none) {
    const char *p = RP_EXPORT_OP(l, "Softmax", scores);
    rp_export_int(l, "axis", -1);
    if (!may_see_none) {
        return p;
    }
    const char *none = RP_EXPORT_OP(l, "IsNaN", p);
    const char *zero = rp_export_number(l, 0.0);
    return RP_EXPORT_OP(l, "Where", none, zero, p);
}

/* ---- attention ------------------------------------------------------------------------------- */

/* Opset 23 has an operator. Its causal mask is this one where all sequences have one length. */
static bool has_operator(const rp_export_layer *l, const attention *a) {
    return l->opset >= 23 && !a->ids && a->base == 0.0 && (!a->causal || a->queries == a->keys) &&
           !(l->train && a->dropout > 0.0);
}

static const char *write_operator(rp_export_layer *l, const attention *a) {
    const char *y = rp_export_op(l, "Attention", PARTS, a->part);
    rp_export_int(l, "is_causal", a->causal);
    rp_export_int(l, "q_num_heads", a->heads);
    rp_export_int(l, "kv_num_heads", a->kv_heads);
    rp_export_float(l, "scale", a->scale);
    return y;
}

const char *rp_export_write_attention(rp_export_layer *l) {
    static const int64_t for_keys[] = {1, 2};
    const attention a = read_attention(l);
    const int64_t rows[] = {0, a.queries, (int64_t)a.heads * a.wide};
    if (has_operator(l, &a)) {
        return write_operator(l, &a);
    }
    const char *q = split_heads(l, &a, Q);
    const char *k = split_heads(l, &a, K);
    const char *v = split_heads(l, &a, V);
    const char *product = RP_EXPORT_OP(l, "MatMul", q, k);
    const char *factor = rp_export_number(l, a.scale);
    const char *scores = RP_EXPORT_OP(l, "Mul", product, factor);
    if (a.causal) {
        const char *triangle = write_triangle(l, &a);
        scores = RP_EXPORT_OP(l, "Add", scores, triangle);
    }
    if (a.ids) {
        scores = mask_padding(l, a.ids, a.padding, scores, 2, for_keys);
    }
    const char *p = write_softmax(l, scores, a.ids || (a.causal && a.queries > a.keys));
    p = rp_export_dropout(l, p, a.dropout);
    const char *heads = RP_EXPORT_OP(l, "MatMul", p, v);
    const char *joined = rp_export_transpose(l, heads, 4, swap_heads);
    return rp_export_reshape(l, joined, 3, rows);
}

/* ---- additive attention ---------------------------------------------------------------------- */

/* scalar w / |w| */
static const char *normalise(rp_export_layer *l, const char *w) {
    static const int64_t axis[] = {0};
    const char *square = RP_EXPORT_OP(l, "Mul", w, w);
    const char *sum = rp_export_reduce(l, "ReduceSum", square, 1, axis, true);
    const char *length = RP_EXPORT_OP(l, "Sqrt", sum);
    const char *unit = RP_EXPORT_OP(l, "Div", w, length);
    const char *scalar = rp_export_param(l, "normalize_scalar");
    return RP_EXPORT_OP(l, "Mul", unit, scalar);
}

/* v . tanh(q[t] + k[s] + bias), [N, T, S] */
static const char *write_energies(rp_export_layer *l) {
    static const int64_t after_queries[] = {2};
    static const int64_t before_keys[] = {1};
    static const int64_t last_axis[] = {3};
    static const int64_t column[] = {1};
    const bool normal = rp_export_key_bool(l, "normalise", false);
    const char *q = rp_export_unsqueeze(l, l->x[0], 1, after_queries);
    const char *k = rp_export_unsqueeze(l, l->x[1], 1, before_keys);
    const char *sum = RP_EXPORT_OP(l, "Add", q, k);
    if (normal) {
        const char *bias = rp_export_param(l, "normalize_bias");
        sum = RP_EXPORT_OP(l, "Add", sum, bias);
    }
    const char *bent = RP_EXPORT_OP(l, "Tanh", sum);
    const char *w = rp_export_param(l, "linear_att");
    w = normal ? normalise(l, w) : w;
    const char *v = rp_export_unsqueeze(l, w, 1, column);
    const char *energies = RP_EXPORT_OP(l, "MatMul", bent, v);
    return rp_export_squeeze(l, energies, 1, last_axis);
}

const char *rp_export_write_additive(rp_export_layer *l) {
    static const int64_t for_keys[] = {1};
    const int32_t padding = rp_export_key_i32(l, "padding", 0);
    const bool has_ids = l->input_count > 3;
    const char *scores = write_energies(l);
    if (has_ids) {
        scores = mask_padding(l, l->x[3], padding, scores, 1, for_keys);
    }
    const char *p = write_softmax(l, scores, has_ids);
    return RP_EXPORT_OP(l, "MatMul", p, l->x[2]);
}
