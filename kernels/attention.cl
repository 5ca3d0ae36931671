/* Attention over panels of 32 queries and 32 keys (attention.clh): only one tile of 32 x 32 scores
 * exists at a time. All kernels have groups of one item. On CPUs, attention_heads.cl does the same
 * unless positions are rotary.
 *
 * Queries are packed times scale * log2(e), so that scores are exponents of 2.
 *
 * forward:  m = running maximum, l = running sum of 2^(score - m),
 *           y = running sum of 2^(score - m) v, divided by l at the end;
 *           level = m + log2(l) is saved, infinity for a query that sees no key
 * backward: P = 2^(score - level), dS = P (dy v' - delta), delta = row sum of dy * y,
 *           dv = P' dy, dq = dS k, dk = dS' q
 *
 * attend() and attend_queries() own queries, the lanes, and keys are the rows of a tile;
 * attend_keys() owns keys, and queries are the rows. Tiles in which causal order hides every key
 * are skipped.
 *
 * Dropout multiplies P with z / (1 - p) where it meets v: y = P z v, dS = P (dy v' z - delta).
 *
 * source  Milakov & Gimelshein 2018 (running maximum); Dao et al. 2022 (backward from the
 *         log-sum-exp) */
#include "attention_tile.clh"

/* ---- products ------------------------------------------------------------------------------- */

/* Rows [first, first + 8) of to: to[r][lane] = sum over d of a[d][r] * b[d][lane]. */
static void multiply_rows(tile *to, uint first, global const float *a, global const float *b,
                          uint depth) {
    a += first;
#define ZERO(r) float16 l##r = 0, h##r = 0;
    FOR_ROWS(ZERO)
    for (uint d = 0; d < depth; d++, a += TOKENS, b += TOKENS) {
        const float16 left = vload16(0, b);
        const float16 right = vload16(1, b);
#define STEP(r)                                                                                    \
    {                                                                                              \
        const float16 x = a[r];                                                                    \
        l##r = fma(x, left, l##r);                                                                 \
        h##r = fma(x, right, h##r);                                                                \
    }
        FOR_ROWS(STEP)
    }
#define PUT(r)                                                                                     \
    to->row[first + r][0] = l##r;                                                                  \
    to->row[first + r][1] = h##r;
    FOR_ROWS(PUT)
#undef ZERO
#undef STEP
#undef PUT
}

/* The first `rows` rows of to = a' b, rounded up to 8. */
static void multiply_panels(tile *to, uint rows, global const float *a, global const float *b,
                            uint depth) {
    for (uint r = 0; r < rows; r += ROWS) {
        multiply_rows(to, r, a, b, depth);
    }
}

/* Panel to[d][lane] = to[d][lane] * factor[lane] + sum over r < rows of a[d][r] * weight[r][lane].
 */
static void add_product(global float *to, const float16 *factor, uint rows, global const float *a,
                        const tile *weight, uint depth) {
    for (uint d = 0; d < depth; d += ROWS, a += ROWS * TOKENS, to += ROWS * TOKENS) {
#define LOAD_SUM(r)                                                                                \
    float16 l##r = vload16(2 * r, to) * factor[0];                                                 \
    float16 h##r = vload16(2 * r + 1, to) * factor[1];
        FOR_ROWS(LOAD_SUM)
        for (uint i = 0; i < rows; i++) {
            const float16 left = weight->row[i][0];
            const float16 right = weight->row[i][1];
#define STEP(r)                                                                                    \
    {                                                                                              \
        const float16 x = a[r * TOKENS + i];                                                       \
        l##r = fma(x, left, l##r);                                                                 \
        h##r = fma(x, right, h##r);                                                                \
    }
            FOR_ROWS(STEP)
        }
#define STORE_SUM(r)                                                                               \
    vstore16(l##r, 2 * r, to);                                                                     \
    vstore16(h##r, 2 * r + 1, to);
        FOR_ROWS(STORE_SUM)
#undef LOAD_SUM
#undef STEP
#undef STORE_SUM
    }
}

/* ---- one item's part ------------------------------------------------------------------------ */

/* Arguments of all three kernels. In `work`, from the given first elements on, are the panels of q
 * [sample, head, panel], of k and v [sample, kv_head, panel], and, if `masked`, the mask [sample,
 * key]. Level [sample, head, query] and mask have whole panels of tokens. Query t sees key s if s
 * <= t + ahead; ahead = keys if the order is not causal. size, v_size: elements of a head of q and
 * k, and of v. word_queries, word_keys: queries and keys of the longest steps. drop_below = p *
 * 2^24, keep = 1 / (1 - p). */
#define COMMON                                                                                     \
    global float *work, ulong q_first, ulong k_first, ulong v_first, ulong mask_first,             \
        uint masked, global float *levels, ulong level_first, uint heads, uint kv_heads,           \
        uint queries, uint keys, uint size, uint v_size, int ahead, uint word_queries,             \
        uint word_keys, ulong sample_first, uint key0, uint key1, uint drop_below, float keep

typedef struct {
    uint depth, v_depth;           /* rows of panels of q and k, of v */
    uint q_panels, k_panels;       /* of a head */
    ulong panel, v_panel;          /* floats */
    global const float *q, *k, *v; /* first panel of the head */
    global const float *mask;      /* of the sample; NULL: no key is masked */
    ulong row;  /* of level and delta: (sample * heads + head) * padded queries */
    ulong word; /* first word of the head's dropout */
    uint word_panels;
} part;

/* First word of a tile: panel j of keys and panel i of queries. */
#define WORD(p, j, i) ((p).word + ((ulong)(j) * (TOKENS / 2) * (p).word_panels + (i)) * 64)

static part find_part(global const float *work, ulong q_first, ulong k_first, ulong v_first,
                      ulong mask_first, uint masked, uint heads, uint kv_heads, uint queries,
                      uint keys, uint size, uint v_size, uint word_queries, uint word_keys,
                      ulong sample_first, uint sample, uint head) {
    part p;
    p.depth = (size + 7) / 8 * 8;
    p.v_depth = (v_size + 7) / 8 * 8;
    p.q_panels = PANELS(queries);
    p.k_panels = PANELS(keys);
    p.panel = p.depth * TOKENS;
    p.v_panel = p.v_depth * TOKENS;
    const ulong run = (ulong)sample * heads + head;
    const ulong kv_run = (ulong)sample * kv_heads + head * kv_heads / heads;
    p.q = work + q_first + run * p.q_panels * p.panel;
    p.k = work + k_first + kv_run * p.k_panels * p.panel;
    p.v = work + v_first + kv_run * p.k_panels * p.v_panel;
    p.mask = masked ? work + mask_first + (ulong)sample * p.k_panels * TOKENS : 0;
    p.row = run * p.q_panels * TOKENS;
    p.word_panels = PANELS(word_queries);
    p.word =
        ((sample_first + sample) * heads + head) * ((word_keys + 1) / 2) * p.word_panels * 64;
    return p;
}
#define PART(sample, head)                                                                         \
    find_part(work, q_first, k_first, v_first, mask_first, masked, heads, kv_heads, queries, keys, \
              size, v_size, word_queries, word_keys, sample_first, sample, head)

/* ---- forward -------------------------------------------------------------------------------- */

/* Panels y and levels. Grid: (panels of queries, samples * heads). */
kernel ONE_ITEM void attend(COMMON, ulong y_first) {
    const uint panel = (uint)get_group_id(0);
    const uint run = (uint)get_group_id(1);
    const part p = PART(run / heads, run % heads);
    const uint tiles = count_tiles(panel, queries, p.k_panels, ahead);
    global const float *q = p.q + panel * p.panel;
    global float *y = work + y_first + ((ulong)run * p.q_panels + panel) * p.v_panel;
    float16 m[2] = {(float16)-INFINITY, (float16)-INFINITY};
    float16 l[2] = {(float16)0.0f, (float16)0.0f};
    float16 factor[2];
    tile s;
    clear_panel(y, p.v_depth);
    for (uint j = 0; j < tiles; j++) {
        const uint rows = min(keys - j * TOKENS, (uint)TOKENS);
        const int shift = (int)(j * TOKENS) - (int)(panel * TOKENS) - ahead;
        multiply_panels(&s, rows, p.k + j * p.panel, q, p.depth);
        if (p.mask || shift + (int)TOKENS > 1) {
            hide_keys(&s, rows, p.mask ? p.mask + j * TOKENS : 0, shift);
        }
        weigh_scores(&s, rows, 2, m, l, factor);
        if (drop_below) {
            uint kept[TOKENS];
            draw_kept(kept, (uint2)(key0, key1), WORD(p, j, panel), p.word_panels, drop_below);
            drop_keys(&s, rows, kept);
        }
        add_product(y, factor, rows, p.v + j * p.v_panel, &s, p.v_depth);
    }
    for (uint h = 0; h < 2; h++) {
        factor[h] = select(keep / l[h], (float16)0.0f, l[h] == 0.0f);
        if (levels) {
            vstore16(select(m[h] + log2(l[h]), (float16)INFINITY, l[h] == 0.0f), h,
                     levels + level_first + p.row + panel * TOKENS);
        }
    }
    scale_panel(y, factor, p.v_depth);
}

/* ---- backward ------------------------------------------------------------------------------- */

/* Panels dq. delta: [sample, head, query], of whole panels. Grid: (panels of queries, samples *
 * heads). */
kernel ONE_ITEM void attend_queries(COMMON, ulong delta_first, ulong dy_first, ulong dq_first) {
    const uint panel = (uint)get_group_id(0);
    const uint run = (uint)get_group_id(1);
    const part p = PART(run / heads, run % heads);
    const uint tiles = count_tiles(panel, queries, p.k_panels, ahead);
    const ulong at = (ulong)run * p.q_panels + panel;
    global const float *q = p.q + panel * p.panel;
    global const float *dy = work + dy_first + at * p.v_panel;
    global float *dq = work + dq_first + at * p.panel;
    global const float *level = levels + level_first + p.row + panel * TOKENS;
    global const float *delta = work + delta_first + p.row + panel * TOKENS;
    const float16 one[2] = {(float16)1.0f, (float16)1.0f};
    tile s;
    tile g;
    clear_panel(dq, p.depth);
    for (uint j = 0; j < tiles; j++) {
        const uint rows = min(keys - j * TOKENS, (uint)TOKENS);
        const int shift = (int)(j * TOKENS) - (int)(panel * TOKENS) - ahead;
        multiply_panels(&s, rows, p.k + j * p.panel, q, p.depth);
        multiply_panels(&g, rows, p.v + j * p.v_panel, dy, p.v_depth);
        if (p.mask || shift + (int)TOKENS > 1) {
            hide_keys(&s, rows, p.mask ? p.mask + j * TOKENS : 0, shift);
        }
        if (drop_below) {
            uint kept[TOKENS];
            draw_kept(kept, (uint2)(key0, key1), WORD(p, j, panel), p.word_panels, drop_below);
            drop_keys(&g, rows, kept);
        }
        for (uint h = 0; h < 2; h++) {
            const float16 top = vload16(h, level);
            const float16 mean = vload16(h, delta);
            for (uint i = 0; i < rows; i++) {
                s.row[i][h] = power_of_2(s.row[i][h] - top) * (g.row[i][h] * keep - mean);
            }
        }
        add_product(dq, one, rows, p.k + j * p.panel, &s, p.depth);
    }
}

/* Panels dk and dv, summed up over the heads that share them. Grid: (panels of keys, samples *
 * kv_heads). */
kernel ONE_ITEM void attend_keys(COMMON, ulong delta_first, ulong dy_first, ulong dk_first,
                                 ulong dv_first) {
    const uint panel = (uint)get_group_id(0);
    const uint run = (uint)get_group_id(1);
    const uint group = heads / kv_heads;
    const uint first = (uint)max((int)(panel * TOKENS) - ahead, 0) / TOKENS;
    const float16 one[2] = {(float16)1.0f, (float16)1.0f};
    uint kept[TOKENS];
    tile s;
    tile g;
    for (uint i = 0; i < TOKENS; i++) {
        kept[i] = 0xFFFFFFFF;
    }
    for (uint member = 0; member < group; member++) {
        const uint head = run % kv_heads * group + member;
        const part p = PART(run / kv_heads, head);
        const ulong at = (ulong)run * p.k_panels + panel;
        global float *dk = work + dk_first + at * p.panel;
        global float *dv = work + dv_first + at * p.v_panel;
        global const float *k = p.k + panel * p.panel;
        global const float *v = p.v + panel * p.v_panel;
        global const float *mask = p.mask ? p.mask + panel * TOKENS : 0;
        if (member == 0) {
            clear_panel(dk, p.depth);
            clear_panel(dv, p.v_depth);
        }
        for (uint i = first; i < p.q_panels; i++) {
            const uint rows = min(queries - i * TOKENS, (uint)TOKENS);
            const int shift = (int)(panel * TOKENS) - (int)(i * TOKENS) - ahead;
            const ulong row = p.row + i * TOKENS;
            global const float *q = p.q + i * p.panel;
            global const float *dy = work + dy_first + (p.row / TOKENS + i) * p.v_panel;
            if (drop_below) {
                draw_kept(kept, (uint2)(key0, key1), WORD(p, panel, i), p.word_panels, drop_below);
            }
            multiply_panels(&s, rows, q, k, p.depth);
            multiply_panels(&g, rows, dy, v, p.v_depth);
            weigh_queries(&s, &g, rows, 2, mask, shift, levels + level_first + row,
                          work + delta_first + row, kept, keep);
            add_product(dv, one, rows, dy, &s, p.v_depth);
            add_product(dk, one, rows, q, &g, p.depth);
        }
    }
}
