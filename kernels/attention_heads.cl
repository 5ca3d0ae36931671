/* The attention of attention.cl for CPUs: a work-item does everything for its heads in turn,
 * so what it packs stays in its cache. Only the operand that is read in vectors is packed: the
 * lanes are queries forward and keys backward, and the rows are read from the tensors. A backward
 * makes each tile once, for all three gradients. Groups have one item.
 *
 * In the last panel a tile uses only half of its lanes if that has at most 16 tokens. */
#include "attention_tile.clh"
#include "gemm_tile.clh"

/* The rows of a head: row t begins at element `at` + t * stride. */
typedef struct {
    global const float *at;
    uint stride;
} rows_of;

static rows_of rows_from(rows_of x, uint token, uint element) {
    x.at += (ulong)token * x.stride + element;
    return x;
}

/* ---- products ------------------------------------------------------------------------------- */

#define FOR_ROWS_OF(X, SECOND)                                                                     \
    X(SECOND, 0)                                                                                   \
    X(SECOND, 1) X(SECOND, 2) X(SECOND, 3) X(SECOND, 4) X(SECOND, 5) X(SECOND, 6) X(SECOND, 7)
#define BOTH(x) x
#define FIRST_HALF(x)

/* Rows [first, first + 8) of to: to[r][lane] = sum over d of row r of a [d] * b[d][lane]. After row
 * `last` of a its last row is repeated. */
#define MULTIPLY_ROWS(name, SECOND)                                                                \
    static void name(tile *to, uint first, uint last, rows_of a, global const float *b,            \
                     uint size) {                                                                  \
        FOR_ROWS(FIND_ROW)                                                                         \
        FOR_ROWS(ZERO)                                                                             \
        for (uint d = 0; d < size; d++, b += TOKENS) {                                             \
            const float16 left = vload16(0, b);                                                    \
            SECOND(const float16 right = vload16(1, b);)                                           \
            FOR_ROWS_OF(STEP, SECOND)                                                              \
        }                                                                                          \
        FOR_ROWS(PUT)                                                                              \
    }
#define FIND_ROW(r) global const float *a##r = a.at + (ulong)min(first + r, last) * a.stride;
#define ZERO(r) float16 l##r = 0, h##r = 0;
#define STEP(SECOND, r)                                                                            \
    {                                                                                              \
        const float16 x = a##r[d];                                                                 \
        l##r = fma(x, left, l##r);                                                                 \
        SECOND(h##r = fma(x, right, h##r);)                                                        \
    }
#define PUT(r)                                                                                     \
    to->row[first + r][0] = l##r;                                                                  \
    to->row[first + r][1] = h##r;
MULTIPLY_ROWS(multiply_rows_both, BOTH)
MULTIPLY_ROWS(multiply_rows_half, FIRST_HALF)
#undef FIND_ROW
#undef ZERO
#undef STEP
#undef PUT

/* The first `rows` rows of to = a b; the rows after them, up to a multiple of 8, have any values.
 */
static void multiply(tile *to, uint rows, uint halves, rows_of a, global const float *b,
                     uint size) {
    for (uint r = 0; r < rows; r += ROWS) {
        if (halves == 2) {
            multiply_rows_both(to, r, rows - 1, a, b, size);
        } else {
            multiply_rows_half(to, r, rows - 1, a, b, size);
        }
    }
}

/* Panel to[d][lane] = to[d][lane] * factor[lane] + sum over r < rows of row r of a [d] *
 * weight[r][lane]. */
#define ADD_PRODUCT(name, SECOND)                                                                  \
    static void name(global float *to, const float16 *factor, uint rows, rows_of a,                \
                     const tile *weight, uint size) {                                              \
        for (uint d = 0; d < size; d += ROWS, to += ROWS * TOKENS) {                               \
            FOR_ROWS(FIND_ELEMENT)                                                                 \
            FOR_ROWS_OF(LOAD_SUM, SECOND)                                                          \
            global const float *row = a.at + d;                                                    \
            for (uint i = 0; i < rows; i++, row += a.stride) {                                     \
                const float16 left = weight->row[i][0];                                            \
                SECOND(const float16 right = weight->row[i][1];)                                   \
                FOR_ROWS_OF(STEP, SECOND)                                                          \
            }                                                                                      \
            FOR_ROWS_OF(STORE_SUM, SECOND)                                                         \
        }                                                                                          \
    }
/* Panels have 8 rows where a head has fewer elements left: its last one is repeated. */
#define FIND_ELEMENT(r) const uint e##r = min((uint)r, size - 1 - d);
#define LOAD_SUM(SECOND, r)                                                                        \
    float16 l##r = vload16(2 * r, to) * factor[0];                                                 \
    SECOND(float16 h##r = vload16(2 * r + 1, to) * factor[1];)
#define STEP(SECOND, r)                                                                            \
    {                                                                                              \
        const float16 x = row[e##r];                                                               \
        l##r = fma(x, left, l##r);                                                                 \
        SECOND(h##r = fma(x, right, h##r);)                                                        \
    }
#define STORE_SUM(SECOND, r)                                                                       \
    vstore16(l##r, 2 * r, to);                                                                     \
    SECOND(vstore16(h##r, 2 * r + 1, to);)
ADD_PRODUCT(add_product_both, BOTH)
ADD_PRODUCT(add_product_half, FIRST_HALF)
#undef STEP

static void add_product(global float *to, const float16 *factor, uint rows, uint halves, rows_of a,
                        const tile *weight, uint size) {
    if (halves == 2) {
        add_product_both(to, factor, rows, a, weight, size);
    } else {
        add_product_half(to, factor, rows, a, weight, size);
    }
}

/* Rows to[r][d] += sum over lanes of weight[r][lane] * row `lane` of b [d], r < rows, lane < lanes;
 * `to` has a multiple of 8 rows, and a multiple of 16 elements in each. */
static void add_rows(global float *to, uint to_stride, uint rows, const tile *weight, rows_of b,
                     uint lanes, uint size) {
    for (uint first = 0; first < rows; first += ROWS, to += ROWS * to_stride) {
        const float *each = (const float *)weight->row[first];
        for (uint d = 0; d < size; d += 16) {
            const uint left = size - d;
#define LOAD_SUM(r) float16 s##r = vload16(0, to + r * to_stride + d);
#define STEP(r) s##r = fma((float16)each[r * TOKENS + lane], value, s##r);
#define STORE_SUM(r) vstore16(s##r, 0, to + r * to_stride + d);
            FOR_ROWS(LOAD_SUM)
            global const float *row = b.at + d;
            if (left >= 16) {
                for (uint lane = 0; lane < lanes; lane++, row += b.stride) {
                    const float16 value = vload16(0, row);
                    FOR_ROWS(STEP)
                }
            } else {
                for (uint lane = 0; lane < lanes; lane++, row += b.stride) {
                    const float16 value = load16(row, left, 0.0f);
                    FOR_ROWS(STEP)
                }
            }
            FOR_ROWS(STORE_SUM)
#undef LOAD_SUM
#undef STEP
#undef STORE_SUM
        }
    }
}

/* ---- rows and panels ------------------------------------------------------------------------ */

/* Panel to[d][token] = row `token` of from [d] * factor, and 0 after `live` tokens. */
static void pack_panel(global float *to, rows_of from, uint live, uint size, float factor) {
    for (uint j = 0; j < live; j += 16) {
        for (uint d = 0; d < size; d += 16) {
            const uint left = size - d;
            global const float *rows = from.at + (ulong)j * from.stride + d;
            float16 block[16];
#pragma unroll
            for (uint i = 0; i < 16; i++) {
                block[i] = j + i < live ? load16(rows + (ulong)i * from.stride, left, 0.0f)
                                        : (float16)0.0f;
            }
            transpose16(block);
#pragma unroll
            for (uint i = 0; i < 16; i++) {
                if (i < left) {
                    vstore16(block[i] * factor, 0, to + (d + i) * TOKENS + j);
                }
            }
        }
    }
}

/* The inverse from row `token` on, if `add` added to what is there. */
static void unpack_panel(global float *to, uint stride, uint token, global const float *from,
                         uint live, uint size, float factor, uint add) {
    for (uint j = 0; j < live; j += 16) {
        for (uint d = 0; d < size; d += 16) {
            const uint left = size - d;
            float16 block[16];
#pragma unroll
            for (uint i = 0; i < 16; i++) {
                block[i] = i < left ? vload16(0, from + (d + i) * TOKENS + j) : (float16)0.0f;
            }
            transpose16(block);
            global float *rows = to + (ulong)(token + j) * stride + d;
#pragma unroll
            for (uint i = 0; i < 16; i++) {
                if (j + i < live) {
                    put16(block[i] * factor, rows + (ulong)i * stride, left, add);
                }
            }
        }
    }
}

static uint halves_of(uint live) {
    return live > 16 ? 2 : 1;
}

static uint whole_rows(uint size) {
    return (size + ROWS - 1) / ROWS * ROWS;
}

/* ---- arguments ------------------------------------------------------------------------------ */

/* As in attention.cl. An item does runs_each of the `runs` = samples * kv_heads, and has
 * slot_floats of `work` for itself, from element slot_first on. */
#define COMMON                                                                                     \
    global float *work, ulong slot_first, uint slot_floats, uint runs, uint runs_each,             \
        ulong mask_first, uint masked, global float *levels, ulong level_first, uint heads,        \
        uint kv_heads, uint queries, uint keys, uint size, uint v_size, int ahead,                 \
        uint word_queries, uint word_keys, ulong sample_first, uint key0, uint key1,               \
        uint drop_below, float keep

/* Rows of a tensor [sample, token, stride] from its element x_first on. */
#define TENSOR(x) global float *x, ulong x##_first, uint x##_stride
#define HEAD_OF(x, tokens, sample, head, size)                                                     \
    (x + x##_first + (ulong)(sample) * (tokens)*x##_stride + (head) * (size))
#define ROWS_OF(x, tokens, sample, head, size)                                                     \
    ((rows_of){HEAD_OF(x, tokens, sample, head, size), x##_stride})

/* First word of the dropout of a head. */
#define WORD(sample, head)                                                                         \
    (((sample_first + (sample)) * heads + (head)) * ((word_keys + 1) / 2) * PANELS(word_queries) * \
     64)
/* First word of a tile: panel j of keys and panel i of queries. */
#define TILE_WORD(word, j, i)                                                                      \
    ((word) + ((ulong)(j) * (TOKENS / 2) * PANELS(word_queries) + (i)) * 64)

/* ---- kernels -------------------------------------------------------------------------------- */

/* y and levels. A slot has a panel of q and one of y. Grid: (slots). */
kernel ONE_ITEM void attend_heads(COMMON, TENSOR(q), TENSOR(k), TENSOR(v), TENSOR(y),
                                  float q_factor) {
    const uint slot = (uint)get_group_id(0);
    global float *q_panel = work + slot_first + (ulong)slot * slot_floats;
    global float *y_panel = q_panel + whole_rows(size) * TOKENS;
    const uint run_end = min((slot + 1) * runs_each, runs);
    const uint q_panels = PANELS(queries);
    const uint k_panels = PANELS(keys);
    const uint group = heads / kv_heads;
    for (uint at = slot * runs_each * group; at < run_end * group; at++) {
        const uint sample = at / heads;
        const uint head = at % heads;
        const rows_of k_rows = ROWS_OF(k, keys, sample, head / group, size);
        const rows_of v_rows = ROWS_OF(v, keys, sample, head / group, v_size);
        const rows_of q_rows = ROWS_OF(q, queries, sample, head, size);
        global float *y_rows = HEAD_OF(y, queries, sample, head, v_size);
        global const float *mask =
            masked ? work + mask_first + (ulong)sample * k_panels * TOKENS : 0;
        for (uint panel = 0; panel < q_panels; panel++) {
            const uint live = min(queries - panel * TOKENS, (uint)TOKENS);
            const uint halves = halves_of(live);
            const uint tiles = count_tiles(panel, queries, k_panels, ahead);
            float16 m[2] = {(float16)-INFINITY, (float16)-INFINITY};
            float16 l[2] = {(float16)0.0f, (float16)0.0f};
            float16 factor[2] = {(float16)0.0f, (float16)0.0f};
            tile s;
            pack_panel(q_panel, rows_from(q_rows, panel * TOKENS, 0), live, size, q_factor);
            clear_panel(y_panel, whole_rows(v_size));
            for (uint j = 0; j < tiles; j++) {
                const uint rows = min(keys - j * TOKENS, (uint)TOKENS);
                const int shift = (int)(j * TOKENS) - (int)(panel * TOKENS) - ahead;
                multiply(&s, rows, halves, rows_from(k_rows, j * TOKENS, 0), q_panel, size);
                if (masked || shift + (int)TOKENS > 1) {
                    hide_keys(&s, rows, masked ? mask + j * TOKENS : 0, shift);
                }
                weigh_scores(&s, rows, halves, m, l, factor);
                if (drop_below) {
                    uint kept[TOKENS];
                    draw_kept(kept, (uint2)(key0, key1), TILE_WORD(WORD(sample, head), j, panel),
                              PANELS(word_queries), drop_below);
                    drop_keys(&s, rows, kept);
                }
                add_product(y_panel, factor, rows, halves, rows_from(v_rows, j * TOKENS, 0), &s,
                            v_size);
            }
            for (uint h = 0; h < 2; h++) {
                factor[h] = select(keep / l[h], (float16)0.0f, l[h] == 0.0f);
                if (levels) {
                    vstore16(select(m[h] + log2(l[h]), (float16)INFINITY, l[h] == 0.0f), h,
                             levels + level_first + ((ulong)at * q_panels + panel) * TOKENS);
                }
            }
            scale_panel(y_panel, factor, v_size);
            unpack_panel(y_rows, y_stride, panel * TOKENS, y_panel, live, v_size, 1.0f, 0);
        }
    }
}

/* delta of the heads of a group: [head][query], the sums of dy * y over a head. */
static void sum_rows(global float *delta, rows_of dy, rows_of y, uint group, uint queries,
                     uint size) {
    for (uint head = 0; head < group; head++) {
        global float *to = delta + (ulong)head * PANELS(queries) * TOKENS;
        for (uint t = 0; t < queries; t++) {
            global const float *a = rows_from(dy, t, head * size).at;
            global const float *b = rows_from(y, t, head * size).at;
            float16 sums = (float16)0.0f;
            for (uint d = 0; d < size; d += 16) {
                sums += load16(a + d, size - d, 0.0f) * load16(b + d, size - d, 0.0f);
            }
            to[t] = sum16(sums);
        }
    }
}

/* Elements of a row of dq in a slot. */
static uint slot_row(uint size) {
    return (size + 15) / 16 * 16;
}

static void clear_rows(global float *rows, uint group, uint queries, uint size) {
    const ulong count = (ulong)group * PANELS(queries) * TOKENS * slot_row(size);
    for (ulong i = 0; i < count; i += 16) {
        vstore16((float16)0.0f, 0, rows + i);
    }
}

/* dq of the heads of a group (+)= rows * factor. */
static void put_rows(global float *dq, uint stride, global const float *rows, uint group,
                     uint queries, uint size, float factor, uint add) {
    for (uint head = 0; head < group; head++, dq += size) {
        global const float *from = rows + (ulong)head * PANELS(queries) * TOKENS * slot_row(size);
        for (uint t = 0; t < queries; t++, from += slot_row(size)) {
            for (uint d = 0; d < size; d += 16) {
                put16(vload16(0, from + d) * factor, dq + (ulong)t * stride + d, size - d, add);
            }
        }
    }
}

/* A panel of k or v, and the sum of its gradient. */
static void begin_panels(global float *panel, global float *gradient, rows_of from, uint live,
                         uint size, float factor) {
    pack_panel(panel, from, live, size, factor);
    clear_panel(gradient, whole_rows(size));
}

static void keep_all(uint *kept) {
    for (uint i = 0; i < TOKENS; i++) {
        kept[i] = 0xFFFFFFFF;
    }
}

/* dq, dk and dv, which are added to what is there where add_q, add_k and add_v say so, and not
 * stored where wants_q, wants_k and wants_v are 0. A slot has a panel of k, dk, v and dv, then
 * delta and rows of dq of the heads that share k. k_factor: of scores; factor: of the gradients of
 * q and k. Grid: (slots). */
kernel ONE_ITEM void attend_heads_backward(COMMON, TENSOR(q), TENSOR(k), TENSOR(v), TENSOR(y),
                                           TENSOR(dy), TENSOR(dq), TENSOR(dk), TENSOR(dv),
                                           float k_factor, float factor, uint wants_q, uint wants_k,
                                           uint wants_v, uint add_q, uint add_k, uint add_v) {
    const uint q_tokens = PANELS(queries) * TOKENS;
    const uint group = heads / kv_heads;
    global float *k_panel = work + slot_first + get_group_id(0) * slot_floats;
    global float *dk_panel = k_panel + whole_rows(size) * TOKENS;
    global float *v_panel = dk_panel + whole_rows(size) * TOKENS;
    global float *dv_panel = v_panel + whole_rows(v_size) * TOKENS;
    global float *delta = dv_panel + whole_rows(v_size) * TOKENS;
    global float *dq_rows = delta + (ulong)group * q_tokens;
    const float16 one[2] = {(float16)1.0f, (float16)1.0f};
    uint kept[TOKENS];
    tile s, g;
    keep_all(kept);
    const uint first = (uint)get_group_id(0) * runs_each;
    for (uint run = first; run < min(first + runs_each, runs); run++) {
        const uint sample = run / kv_heads, head = run % kv_heads * group;
        const rows_of q_rows = ROWS_OF(q, queries, sample, head, size);
        const rows_of dy_rows = ROWS_OF(dy, queries, sample, head, v_size);
        sum_rows(delta, dy_rows, ROWS_OF(y, queries, sample, head, v_size), group, queries, v_size);
        clear_rows(dq_rows, group, queries, size);
        for (uint at = 0; at < keys; at += TOKENS) {
            const uint live = min(keys - at, (uint)TOKENS);
            const rows_of k_rows = rows_from(ROWS_OF(k, keys, sample, head / group, size), at, 0);
            global const float *mask =
                masked ? work + mask_first + (ulong)sample * PANELS(keys) * TOKENS + at : 0;
            begin_panels(k_panel, dk_panel, k_rows, live, size, k_factor);
            begin_panels(v_panel, dv_panel,
                         rows_from(ROWS_OF(v, keys, sample, head / group, v_size), at, 0), live,
                         v_size, 1.0f);
            for (uint i = 0; i < group * q_tokens; i += TOKENS) {
                const uint member = i / q_tokens, t = i % q_tokens;
                if ((int)(t + TOKENS) <= (int)at - ahead) {
                    continue; /* none of the keys is seen */
                }
                const uint rows = min(queries - t, (uint)TOKENS);
                const rows_of q_live = rows_from(q_rows, t, member * size);
                const rows_of dy_live = rows_from(dy_rows, t, member * v_size);
                if (drop_below) {
                    draw_kept(kept, (uint2)(key0, key1),
                              TILE_WORD(WORD(sample, head + member), at / TOKENS, t / TOKENS),
                              PANELS(word_queries), drop_below);
                }
                multiply(&s, rows, halves_of(live), q_live, k_panel, size);
                multiply(&g, rows, halves_of(live), dy_live, v_panel, v_size);
                weigh_queries(&s, &g, rows, halves_of(live), mask, (int)at - (int)t - ahead,
                              levels + level_first + ((ulong)sample * heads + head) * q_tokens + i,
                              delta + i, kept, keep);
                add_product(dv_panel, one, rows, halves_of(live), dy_live, &s, v_size);
                add_product(dk_panel, one, rows, halves_of(live), q_live, &g, size);
                add_rows(dq_rows + (ulong)i * slot_row(size), slot_row(size), rows, &g, k_rows,
                         live, size);
            }
            if (wants_k) {
                unpack_panel(HEAD_OF(dk, keys, sample, head / group, size), dk_stride, at, dk_panel,
                             live, size, factor, add_k);
            }
            if (wants_v) {
                unpack_panel(HEAD_OF(dv, keys, sample, head / group, v_size), dv_stride, at,
                             dv_panel, live, v_size, 1.0f, add_v);
            }
        }
        if (wants_q) {
            put_rows(HEAD_OF(dq, queries, sample, head, size), dq_stride, dq_rows, group, queries,
                     size, factor, add_q);
        }
    }
}
