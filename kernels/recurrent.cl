/* The time steps of lstm and, with GRU, of gru. A work-group of WG items runs all steps of SAMPLES
 * samples in one direction, because samples do not depend on each other; its items share the
 * columns. Every sum is over the units in their order, so WG, SAMPLES, TILE and LANES do not change
 * a bit.
 *
 * Row r = sample * steps + t. With D directions and H units:
 *
 *   gates   [row][D][4][H]         before forward x Wi' + bi of each gate; after it the gates:
 *                                  i f g o, or r z n and then the hidden part of n before r
 *   cell    [row][D][H]            c of lstm
 *   state   [row][D][H]            h
 *   dgates  [D][row][GATES][H]     gradients of the sums x Wi' + bi
 *   dhidden [D][row][GATES][H]     gradients of the sums h Wh' + bh; those of lstm are the same
 *   before  [D][row][H]            h of the step before
 *   carry   [D][sample][2][H]      gradients of h and c from the step after
 *
 * Step k of a sample is t = k or, in reverse, t = length - 1 - k. Without ids all lengths are
 * `steps`; otherwise padding at the end does not count. Its rows become 0, except those of gates
 * and cell, which nothing reads.
 *
 * source  Hochreiter & Schmidhuber 1997; Cho et al. 2014, with the reset gate after the product */
#include "lanes.clh"

#ifndef SAMPLES
#define SAMPLES 4
#endif
#ifndef TILE
#define TILE 1 /* panels of weights that an item processes together */
#endif
#ifndef WG
#define WG 1
#endif
#ifdef GRU
#define GATES 3
#else
#define GATES 4
#endif
#define BLOCKS 4 /* in a row of gates */

/* Weights are packed in panels of LANES columns, filled up with zeros: panels follow each other
 * for an item that reads a panel from end to end, or side by side for neighbouring items. */
#if WG == 1
#define PANEL(p, panels, depth) ((ulong)(p) * (depth)*LANES)
#define PANEL_STEP(panels) LANES
#define SYNC()
#else
#define PANEL(p, panels, depth) ((ulong)(p)*LANES)
#define PANEL_STEP(panels) ((panels)*LANES)
#define SYNC() barrier(CLK_GLOBAL_MEM_FENCE)
#endif
#define PANELS_OF(columns) (((columns) + LANES - 1) / LANES)

/* Packs W [GATES * hidden, hidden] of every direction: W' with a panel of each gate's columns
 * (`turned`), or W. Grid: (depth of a panel, panels, directions). */
kernel void pack_weights(global float *packed, ulong packed_first, global const float *w0,
                         global const float *w1, uint hidden, uint turned) {
    const uint k = (uint)get_global_id(0);
    const uint p = (uint)get_global_id(1);
    const uint chunks = PANELS_OF(hidden);
    const uint panels = turned ? GATES * chunks : chunks;
    const uint depth = turned ? hidden : GATES * hidden;
    if (k >= depth || p >= panels) {
        return;
    }
    global const float *w = get_global_id(2) ? w1 : w0;
    packed += packed_first + get_global_id(2) * (ulong)panels * depth * LANES;
    packed += PANEL(p, panels, depth) + k * PANEL_STEP(panels);
    const uint first = p % chunks * LANES;
    const uint gate = p / chunks; /* 0 if not turned */
    for (uint l = 0; l < LANES; l++) {
        const uint column = first + l;
        const ulong from =
            turned ? ((ulong)gate * hidden + column) * hidden + k : (ulong)k * hidden + column;
        packed[l] = column < hidden ? w[from] : 0.0f;
    }
}

/* ---- what both directions of time share ------------------------------------------------------ */

/* The samples of a work-group, and its part of the arrays. */
typedef struct {
    uint count;
    uint at[SAMPLES];     /* number in the call; places beyond `count` repeat the last sample */
    uint length[SAMPLES]; /* steps; 0 beyond `count` */
    uint longest;
    uint steps, hidden;
    uint direction;
    bool reverse;
    uint lane;  /* of the item */
    ulong wide; /* floats of a row of states */
} walk;

static uint length_of(global const int *ids, uint steps, int padding) {
    uint length = steps;
    while (length > 0 && ids[length - 1] == padding) {
        length--;
    }
    return length;
}

static walk walk_of(global const int *ids, uint n, uint steps, uint hidden, uint reversed,
                    int padding) {
    const uint first = (uint)get_group_id(0) * SAMPLES;
    walk w;
    w.count = min(n - first, (uint)SAMPLES);
    w.longest = 0;
    for (uint s = 0; s < SAMPLES; s++) {
        w.at[s] = first + min(s, w.count - 1);
        w.length[s] = s >= w.count ? 0
                      : ids        ? length_of(ids + (ulong)w.at[s] * steps, steps, padding)
                                   : steps;
        w.longest = max(w.longest, w.length[s]);
    }
    w.steps = steps;
    w.hidden = hidden;
    w.direction = (uint)get_group_id(1);
    w.reverse = reversed || w.direction;
    w.lane = (uint)get_local_id(0);
    w.wide = (ulong)get_num_groups(1) * hidden;
    return w;
}

/* The row of step k of sample s; if it has no such step, any row of the sample. */
static ulong row_of(const walk *w, uint s, uint k) {
    const uint t = k >= w->length[s] ? 0 : w->reverse ? w->length[s] - 1 - k : k;
    return (ulong)w->at[s] * w->steps + t;
}

/* Sets columns [0, columns) of a row to 0. */
static void clear_row(const walk *w, global float *row, uint columns) {
    for (uint c = w->lane * LANES; c < columns; c += WG * LANES) {
        store_lanes((VEC)0.0f, row + c, (int)(columns - c));
    }
}

/* sum[i][s] = sum over k < depth of rows[s][k] * panel p + i [k]. */
static void multiply(VEC sum[TILE][SAMPLES], global const float *const rows[SAMPLES],
                     global const float *packed, uint p, uint panels, uint depth, uint used) {
    global const float *panel[TILE];
#pragma unroll
    for (uint i = 0; i < TILE; i++) {
        panel[i] = packed + PANEL(min(p + i, panels - 1), panels, depth);
#pragma unroll
        for (uint s = 0; s < SAMPLES; s++) {
            sum[i][s] = (VEC)0.0f;
        }
    }
    for (uint k = 0; k < used; k++) {
#pragma unroll
        for (uint i = 0; i < TILE; i++) {
            const VEC w = VLOAD(0, panel[i] + (ulong)k * PANEL_STEP(panels));
#pragma unroll
            for (uint s = 0; s < SAMPLES; s++) {
                sum[i][s] = fma((VEC)rows[s][k], w, sum[i][s]);
            }
        }
    }
}

static VEC sigmoid(VEC x) {
    return 1.0f / (1.0f + exp(-x));
}

/* ---- forward --------------------------------------------------------------------------------- */

/* A row of gates of a step, the cell and state of this step and of the one before (NULL: zeros). */
typedef struct {
    global float *gates, *cell, *state;
    global const float *cell_before, *state_before;
} step_rows;

#ifdef GRU
/* Columns [c, c + left) of h' = (1 - z) n + z h; gates are stored for the backward. */
static VEC step_forward(const step_rows *r, uint hidden, uint c, int left) {
    global float *gates = r->gates + c;
    const VEC reset = sigmoid(load_lanes(gates, left));
    const VEC update = sigmoid(load_lanes(gates + hidden, left));
    const VEC inner = load_lanes(gates + 3 * hidden, left);
    const VEC fresh = tanh(load_lanes(gates + 2 * hidden, left) + reset * inner);
    const VEC before = r->state_before ? load_lanes(r->state_before + c, left) : (VEC)0.0f;
    store_lanes(reset, gates, left);
    store_lanes(update, gates + hidden, left);
    store_lanes(fresh, gates + 2 * hidden, left);
    return (1.0f - update) * fresh + update * before;
}
#else
/* Columns [c, c + left) of c' = f c + i g and h' = o tanh c'; gates and c' are stored. */
static VEC step_forward(const step_rows *r, uint hidden, uint c, int left) {
    global float *gates = r->gates + c;
    const VEC in = sigmoid(load_lanes(gates, left));
    const VEC forget = sigmoid(load_lanes(gates + hidden, left));
    const VEC fresh = tanh(load_lanes(gates + 2 * hidden, left));
    const VEC out = sigmoid(load_lanes(gates + 3 * hidden, left));
    const VEC before = r->cell_before ? load_lanes(r->cell_before + c, left) : (VEC)0.0f;
    const VEC cell = forget * before + in * fresh;
    store_lanes(in, gates, left);
    store_lanes(forget, gates + hidden, left);
    store_lanes(fresh, gates + 2 * hidden, left);
    store_lanes(out, gates + 3 * hidden, left);
    store_lanes(cell, r->cell + c, left);
    return out * tanh(cell);
}
#endif

/* Adds the hidden part of a gate, h Wh' + bh, to its sum; for n of gru, r comes in between. */
static void add_hidden(global float *gates, VEC part, uint gate, uint hidden, uint c, int left) {
#ifdef GRU
    if (gate == 2) {
        store_lanes(part, gates + 3 * hidden + c, left);
        return;
    }
#endif
    gates += gate * hidden + c;
    store_lanes(load_lanes(gates, left) + part, gates, left);
}

/* Adds h Wh' + bh to the sums of step k. */
static void forward_sums(const walk *w, uint k, global float *gates, global const float *state,
                         global const float *packed, global const float *bias) {
    const uint hidden = w->hidden;
    const uint chunks = PANELS_OF(hidden);
    const uint panels = GATES * chunks;
    global const float *rows[SAMPLES];
    for (uint s = 0; s < SAMPLES; s++) {
        rows[s] = state + row_of(w, s, k > 0 ? k - 1 : 0) * w->wide;
    }
    for (uint p = w->lane * TILE; p < panels; p += WG * TILE) {
        VEC sum[TILE][SAMPLES];
        multiply(sum, rows, packed, p, panels, hidden, k > 0 ? hidden : 0);
#pragma unroll
        for (uint i = 0; i < TILE; i++) {
            const uint gate = (p + i) / chunks;
            const uint c = (p + i) % chunks * LANES;
            const int left = (int)(hidden - c);
            if (p + i >= panels) {
                continue;
            }
            const VEC shift = load_lanes(bias + gate * hidden + c, left);
#pragma unroll
            for (uint s = 0; s < SAMPLES; s++) {
                if (k < w->length[s]) {
                    add_hidden(gates + row_of(w, s, k) * BLOCKS * w->wide, shift + sum[i][s], gate,
                               hidden, c, left);
                }
            }
        }
    }
}

/* From the sums of step k to its h. */
static void forward_units(const walk *w, uint k, global float *gates, global float *cell,
                          global float *state, global float *last) {
    for (uint s = 0; s < w->count; s++) {
        if (k >= w->length[s]) {
            continue;
        }
        const ulong row = row_of(w, s, k);
        const ulong older = row_of(w, s, k > 0 ? k - 1 : 0);
        const step_rows r = {gates + row * BLOCKS * w->wide, cell + row * w->wide,
                             state + row * w->wide, k > 0 ? cell + older * w->wide : 0,
                             k > 0 ? state + older * w->wide : 0};
        for (uint c = w->lane * LANES; c < w->hidden; c += WG * LANES) {
            const int left = (int)(w->hidden - c);
            const VEC h = step_forward(&r, w->hidden, c, left);
            store_lanes(h, r.state + c, left);
            if (last && k + 1 == w->length[s]) {
                store_lanes(h, last + w->at[s] * w->wide + c, left);
            }
        }
    }
}

/* cell is NULL for gru. last [sample][D][H]: h of the last step, or NULL. ids [sample][steps] or
 * NULL. Grid: (groups of samples * WG, directions). */
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
forward(global float *gates, ulong gates_first, global float *cell, ulong cell_first,
        global float *state, ulong state_first, global float *last, ulong last_first,
        global const int *ids, ulong ids_first, global const float *packed, ulong packed_first,
        global const float *bias0, global const float *bias1, uint n, uint steps, uint hidden,
        uint reversed, int padding) {
    const walk w = walk_of(ids ? ids + ids_first : 0, n, steps, hidden, reversed, padding);
    const ulong first = (ulong)w.direction * hidden;
    packed += packed_first + first * GATES * PANELS_OF(hidden) * LANES;
    gates += gates_first + first * BLOCKS;
    cell += cell_first + first;
    state += state_first + first;
    last = last ? last + last_first + first : 0;
    for (uint k = 0; k < w.longest; k++) {
        forward_sums(&w, k, gates, state, packed, w.direction ? bias1 : bias0);
        SYNC();
        forward_units(&w, k, gates, cell, state, last);
        SYNC();
    }
    for (uint s = 0; s < w.count; s++) {
        for (uint t = w.length[s]; t < steps; t++) {
            clear_row(&w, state + ((ulong)w.at[s] * steps + t) * w.wide, hidden);
        }
        if (last && w.length[s] == 0) {
            clear_row(&w, last + w.at[s] * w.wide, hidden);
        }
    }
}

/* ---- backward -------------------------------------------------------------------------------- */

/* The rows of a step, and `before` of the step after it; NULL where there is no such step. */
typedef struct {
    global const float *gates, *cell, *cell_before, *state_before;
    global float *dgates, *dhidden, *carry, *before, *before_after;
} step_gradients;

#ifdef GRU
/* From dh of columns [c, c + left) to the gradients of the sums; carry becomes dh z. */
static void step_backward(const step_gradients *r, VEC dh, uint hidden, uint c, int left) {
    global const float *gates = r->gates + c;
    const VEC reset = load_lanes(gates, left);
    const VEC update = load_lanes(gates + hidden, left);
    const VEC fresh = load_lanes(gates + 2 * hidden, left);
    const VEC inner = load_lanes(gates + 3 * hidden, left);
    const VEC before = r->state_before ? load_lanes(r->state_before + c, left) : (VEC)0.0f;
    const VEC dn = dh * (1.0f - update) * (1.0f - fresh * fresh);
    const VEC dz = dh * (before - fresh) * update * (1.0f - update);
    const VEC dr = dn * inner * reset * (1.0f - reset);
    store_lanes(dr, r->dgates + c, left);
    store_lanes(dz, r->dgates + hidden + c, left);
    store_lanes(dn, r->dgates + 2 * hidden + c, left);
    store_lanes(dr, r->dhidden + c, left);
    store_lanes(dz, r->dhidden + hidden + c, left);
    store_lanes(dn * reset, r->dhidden + 2 * hidden + c, left);
    store_lanes(before, r->before + c, left);
    store_lanes(dh * update, r->carry + c, left);
}
#else
/* From dh of columns [c, c + left) to the gradients of the sums; carry becomes 0 and dc f. */
static void step_backward(const step_gradients *r, VEC dh, uint hidden, uint c, int left) {
    global const float *gates = r->gates + c;
    global float *carry_cell = r->carry + hidden + c;
    const VEC in = load_lanes(gates, left);
    const VEC forget = load_lanes(gates + hidden, left);
    const VEC fresh = load_lanes(gates + 2 * hidden, left);
    const VEC out = load_lanes(gates + 3 * hidden, left);
    const VEC bent = tanh(load_lanes(r->cell + c, left));
    const VEC before = r->cell_before ? load_lanes(r->cell_before + c, left) : (VEC)0.0f;
    const VEC later = r->before_after ? load_lanes(carry_cell, left) : (VEC)0.0f;
    const VEC dc = later + dh * out * (1.0f - bent * bent);
    store_lanes(dc * fresh * in * (1.0f - in), r->dgates + c, left);
    store_lanes(dc * before * forget * (1.0f - forget), r->dgates + hidden + c, left);
    store_lanes(dc * in * (1.0f - fresh * fresh), r->dgates + 2 * hidden + c, left);
    store_lanes(dh * bent * out * (1.0f - out), r->dgates + 3 * hidden + c, left);
    store_lanes((VEC)0.0f, r->carry + c, left);
    store_lanes(dc * forget, carry_cell, left);
    if (r->before_after) {
        store_lanes(out * bent, r->before_after + c, left);
    }
    if (!r->cell_before) {
        store_lanes((VEC)0.0f, r->before + c, left);
    }
}
#endif

/* The arrays, from the direction's part on. */
typedef struct {
    global const float *dy, *gates, *cell, *state, *packed;
    global float *dgates, *dhidden, *before, *carry;
} gradients;

/* From the gradient of h of step k to those of its sums. */
static void backward_units(const walk *w, uint k, const gradients *g, bool last_only) {
    const uint sums = GATES * w->hidden;
    for (uint s = 0; s < w->count; s++) {
        if (k >= w->length[s]) {
            continue;
        }
        const bool is_last = k + 1 == w->length[s];
        const ulong row = row_of(w, s, k);
        const ulong older = row_of(w, s, k > 0 ? k - 1 : 0);
        const ulong later = row_of(w, s, is_last ? k : k + 1);
        const step_gradients r = {g->gates + row * BLOCKS * w->wide,
                                  g->cell + row * w->wide,
                                  k > 0 ? g->cell + older * w->wide : 0,
                                  k > 0 ? g->state + older * w->wide : 0,
                                  g->dgates + row * sums,
                                  g->dhidden + row * sums,
                                  g->carry + (ulong)w->at[s] * 2 * w->hidden,
                                  g->before + row * w->hidden,
                                  is_last ? 0 : g->before + later * w->hidden};
        for (uint c = w->lane * LANES; c < w->hidden; c += WG * LANES) {
            const int left = (int)(w->hidden - c);
            VEC dh = is_last ? (VEC)0.0f : load_lanes(r.carry + c, left);
            if (!last_only || is_last) {
                dh += load_lanes(g->dy + (last_only ? w->at[s] : row) * w->wide + c, left);
            }
            step_backward(&r, dh, w->hidden, c, left);
        }
    }
}

/* Adds dhidden Wh of step k to the gradient of h of the step before. */
static void backward_sums(const walk *w, uint k, const gradients *g) {
    const uint sums = GATES * w->hidden;
    const uint panels = PANELS_OF(w->hidden);
    global const float *rows[SAMPLES];
    for (uint s = 0; s < SAMPLES; s++) {
        rows[s] = g->dhidden + row_of(w, s, k) * sums;
    }
    for (uint p = w->lane * TILE; p < panels; p += WG * TILE) {
        VEC sum[TILE][SAMPLES];
        multiply(sum, rows, g->packed, p, panels, sums, sums);
#pragma unroll
        for (uint i = 0; i < TILE; i++) {
            const uint c = (p + i) * LANES;
            const int left = (int)(w->hidden - c);
            if (p + i >= panels) {
                continue;
            }
#pragma unroll
            for (uint s = 0; s < SAMPLES; s++) {
                if (k < w->length[s]) {
                    global float *to = g->carry + (ulong)w->at[s] * 2 * w->hidden + c;
                    store_lanes(load_lanes(to, left) + sum[i][s], to, left);
                }
            }
        }
    }
}

/* dy [row][D][H], or [sample][D][H] of the last step with `last_only`. packed, dgates, dhidden,
 * before and carry begin at the given elements of `work`; for lstm dhidden is dgates. cell is NULL
 * for gru, and state for lstm. Grid: as forward. */
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
backward(global float *work, ulong packed_first, ulong dgates_first, ulong dhidden_first,
         ulong before_first, ulong carry_first, global const float *dy, ulong dy_first,
         global const float *gates, ulong gates_first, global const float *cell, ulong cell_first,
         global const float *state, ulong state_first, global const int *ids, ulong ids_first,
         uint n, uint steps, uint hidden, uint reversed, int padding, uint last_only) {
    const walk w = walk_of(ids ? ids + ids_first : 0, n, steps, hidden, reversed, padding);
    const ulong first = (ulong)w.direction * hidden;
    const ulong rows_first = first * n * steps;
    const gradients g = {dy + dy_first + first,
                         gates + gates_first + first * BLOCKS,
                         cell + cell_first + first,
                         state + state_first + first,
                         work + packed_first + first * GATES * PANELS_OF(hidden) * LANES,
                         work + dgates_first + rows_first * GATES,
                         work + dhidden_first + rows_first * GATES,
                         work + before_first + rows_first,
                         work + carry_first + first * n * 2};
    for (uint k = w.longest; k-- > 0;) {
        backward_units(&w, k, &g, last_only);
        SYNC();
        if (k > 0) {
            backward_sums(&w, k, &g);
        }
        SYNC();
    }
    for (uint s = 0; s < w.count; s++) {
        for (uint t = w.length[s]; t < steps; t++) {
            const ulong row = (ulong)w.at[s] * steps + t;
            clear_row(&w, g.dgates + row * GATES * hidden, GATES * hidden);
            clear_row(&w, g.dhidden + row * GATES * hidden, GATES * hidden);
            clear_row(&w, g.before + row * hidden, hidden);
        }
    }
}
