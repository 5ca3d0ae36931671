/* C = A * B on devices with wide vectors and few threads (CPUs): packed panels, a register tile.
 *
 * source  Goto & van de Geijn 2008: a block of B is packed into panels of 32 columns that stay in the
 *         second-level cache, A is packed once into tiles of MR rows; one work-item computes
 *         MR x 32 elements in registers. Work-groups are of one item.
 *
 * defines MR 8 or 12: rows of a tile; KC: depth of a block; NB: panels a group may have
 *         B_RUN: so many neighbouring columns of B lie B_STRIDE (1 or 2) apart, in aligned runs of
 *         16, 8, 4 or 2; 1: they are taken one by one
 *         B_DEEP: the same of neighbouring rows of B, which is then packed by transposing; 1: no
 *         A_RUN: so many neighbouring rows of A lie side by side; A_DEEP, A_STRIDE: columns of A
 *         C_RUN: so many neighbouring columns of C lie side by side
 *         PACK_DEPTH, PACK_TILES: what one group of pack_rows packs */
#include "gemm_steps.clh"

#ifndef MR
#define MR 8
#endif
#ifndef KC
#define KC 256
#endif
#ifndef NB
#define NB 4
#endif
#ifndef B_RUN
#define B_RUN 1
#endif
#ifndef B_DEEP
#define B_DEEP 1
#endif
#ifndef B_STRIDE
#define B_STRIDE 1
#endif
#ifndef A_RUN
#define A_RUN 1
#endif
#ifndef A_DEEP
#define A_DEEP 1
#endif
#ifndef A_STRIDE
#define A_STRIDE 1
#endif
#ifndef PACK_DEPTH
#define PACK_DEPTH 256
#endif
#ifndef PACK_TILES
#define PACK_TILES 4
#endif
#ifndef C_RUN
#define C_RUN 1
#endif
#define NR 32
#define ONE_ITEM __attribute__((reqd_work_group_size(1, 1, 1)))

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

/* Rows become columns by four perfect shuffles (16 x 16 elements, in registers). */
#define LOW(a, b)                                                                                  \
    (float16)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3, a.s4, b.s4, a.s5, b.s5, a.s6, b.s6,  \
              a.s7, b.s7)
#define HIGH(a, b)                                                                                 \
    (float16)(a.s8, b.s8, a.s9, b.s9, a.sa, b.sa, a.sb, b.sb, a.sc, b.sc, a.sd, b.sd, a.se, b.se,  \
              a.sf, b.sf)
inline void shuffle16(float16 *to, const float16 *from) {
#pragma unroll
    for (uint i = 0; i < 8; i++) {
        to[2 * i] = LOW(from[i], from[i + 8]);
        to[2 * i + 1] = HIGH(from[i], from[i + 8]);
    }
}

inline void transpose16(float16 *x) {
    float16 y[16];
    shuffle16(y, x);
    shuffle16(x, y);
    shuffle16(y, x);
    shuffle16(x, y);
}

/* 16 elements that lie in runs: neighbours (stride 1), or every other element (stride 2; the second
 * load ends at the last element, so nothing behind it is touched). */
#define LOAD_1_16(from) vload16(0, from)
#define LOAD_1_8(from) vload8(0, from)
#define LOAD_1_4(from) vload4(0, from)
#define LOAD_1_2(from) vload2(0, from)
#define LOAD_2_16(from) (float16)(vload16(0, from).even, vload16(0, (from) + 15).odd)
#define LOAD_2_8(from) (float8)(vload8(0, from).even, vload8(0, (from) + 7).odd)
#define LOAD_2_4(from) (float4)(vload4(0, from).even, vload4(0, (from) + 3).odd)
#define LOAD_2_2(from) (float2)((from)[0], (from)[2])
#define LOAD(stride, run) CAT(CAT(LOAD_, stride), CAT(_, run))
#define LOAD_RUNS(x, from, at, stride, run)                                                        \
    {                                                                                              \
        float *each = (float *)&(x);                                                               \
        for (uint load_i = 0; load_i < 16; load_i += (run)) {                                      \
            CAT(vstore, run)(LOAD(stride, run)((from) + (at)[load_i]), 0, each + load_i);          \
        }                                                                                          \
    }

/* dst[tile][k][r] = A(tile * MR + r, k), 0 below the last row. Written once, read by every group.
 * grid  (tiles / PACK_TILES, depth / PACK_DEPTH), groups of one item */
kernel ONE_ITEM void pack_rows(global float *dst, ulong dst_base, global const float *a, ulong a_base,
                               uint rows, uint depth, STEPS_ARGS(row), STEPS_ARGS(col)) {
    local int off[PACK_DEPTH];
    const uint first = (uint)get_group_id(1) * PACK_DEPTH;
    const uint count = min((uint)PACK_DEPTH, depth - first);
    const uint tiles = (rows + MR - 1) / MR;
    const uint tile_end = min((uint)(get_group_id(0) + 1) * PACK_TILES, tiles);
    global const float *from = a + a_base;
    steps_fill(off, first, count, STEPS(col));
    for (uint tile = (uint)get_group_id(0) * PACK_TILES; tile < tile_end; tile++) {
        global float *to = dst + dst_base + (ulong)tile * depth * MR + (ulong)first * MR;
        const uint live = min((uint)MR, rows - tile * MR);
        int at[MR];
        for (uint r = 0; r < MR; r++) {
            at[r] = steps_at(tile * MR + min(r, live - 1), STEPS(row));
        }
        uint k = 0;
#if A_DEEP > 1
        for (; k + 16 <= count; k += 16) {
            float16 x[16];
#pragma unroll
            for (uint r = 0; r < 16; r++) {
                x[r] = 0;
                if (r < live) {
                    LOAD_RUNS(x[r], from + at[r], off + k, A_STRIDE, A_DEEP)
                }
            }
            transpose16(x);
#pragma unroll
            for (uint i = 0; i < 16; i++) {
                vstore8(x[i].lo, 0, to + (k + i) * MR);
#if MR == 12
                vstore4(x[i].hi.lo, 0, to + (k + i) * MR + 8);
#endif
            }
        }
#elif A_RUN >= 4
        if (live == MR) {
            for (; k < count; k++) {
                for (uint r = 0; r < MR; r += 4) {
                    vstore4(vload4(0, from + off[k] + at[r]), 0, to + k * MR + r);
                }
            }
        }
#endif
        for (; k < count; k++) {
            for (uint r = 0; r < MR; r++) {
                to[k * MR + r] = r < live ? from[at[r] + off[k]] : 0.0f;
            }
        }
    }
}

#if MR == 12
#define FOR_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#else
#define FOR_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#endif

typedef struct {
    global float *c;          /* first element of the tile's first row, column offsets not in it */
    int row_stride;
    local const int *at;      /* offsets of the panel's 32 columns */
    uint rows, cols;          /* live ones */
    bool add;                 /* to what is there */
    bool last;                /* bias and relu now */
    global const float *bias; /* of the first row or column; NULL none */
    uint bias_axis;
    uint relu;
} place;

inline float16 finish16(float16 sum, const place *to, uint r, uint j) {
    if (to->last) {
        if (to->bias_axis == 1) {
            sum += to->bias[r];
        } else if (to->bias_axis == 2) {
            float16 add = 0;
            if (j + 16 <= to->cols) {
                add = vload16(0, to->bias + j);
            } else {
                float *each = (float *)&add;
                for (uint i = j; i < to->cols; i++) {
                    each[i - j] = to->bias[i];
                }
            }
            sum += add;
        }
        if (to->relu) {
            sum = select(sum, (float16)0, sum <= 0.0f);
        }
    }
    return sum;
}

inline float16 read16(global const float *row, const place *to, uint j) {
#if C_RUN >= 16
    if (j + 16 <= to->cols) {
        return vload16(0, row + to->at[j]);
    }
#endif
    float16 value = 0;
    float *each = (float *)&value;
    for (uint i = 0; i < 16; i++) {
        if (j + i < to->cols) {
            each[i] = row[to->at[j + i]];
        }
    }
    return value;
}

inline void write16(global float *row, const place *to, uint j, float16 value) {
    if (j + 16 <= to->cols) {
#if C_RUN >= 16
        vstore16(value, 0, row + to->at[j]);
        return;
#elif C_RUN == 8
        vstore8(value.lo, 0, row + to->at[j]);
        vstore8(value.hi, 0, row + to->at[j + 8]);
        return;
#elif C_RUN == 4
        vstore4(value.s0123, 0, row + to->at[j]);
        vstore4(value.s4567, 0, row + to->at[j + 4]);
        vstore4(value.s89ab, 0, row + to->at[j + 8]);
        vstore4(value.scdef, 0, row + to->at[j + 12]);
        return;
#endif
    }
    const float *each = (const float *)&value;
    for (uint i = 0; i < 16 && j + i < to->cols; i++) {
        row[to->at[j + i]] = each[i];
    }
}

inline void put_row(const place *to, uint r, float16 left, float16 right) {
    if (r < to->rows) {
        global float *row = to->c + (long)r * to->row_stride;
        if (to->add) {
            left += read16(row, to, 0);
            right += read16(row, to, 16);
        }
        write16(row, to, 0, finish16(left, to, r, 0));
        write16(row, to, 16, finish16(right, to, r, 16));
    }
}

/* MR x 32 elements: the sum over kc rows of the packed blocks. */
inline void multiply(const place *to, global const float *a, local const float16 *b, uint kc) {
#define ZERO(r) float16 l##r = 0, h##r = 0;
    FOR_ROWS(ZERO)
    for (uint k = 0; k < kc; k++, a += MR, b += 2) {
        const float16 left = b[0];
        const float16 right = b[1];
#define STEP(r)                                                                                    \
    {                                                                                              \
        const float16 x = a[r];                                                           \
        l##r = fma(x, left, l##r);                                                                 \
        h##r = fma(x, right, h##r);                                                                \
    }
        FOR_ROWS(STEP)
    }
#define PUT(r) put_row(to, r, l##r, h##r);
    FOR_ROWS(PUT)
}

/* One panel of 32 columns of B, kc rows deep. `full`: no column beyond the last. */
inline void pack_panel(local float *to, global const float *b, local const int *row,
                       local const int *col, uint kc, bool full) {
#if B_DEEP > 1
    const uint deep = kc / 16 * 16;
    for (uint k = 0; k < deep; k += 16) {
        for (uint j = 0; j < NR; j += 16) {
            float16 x[16];
#pragma unroll
            for (uint i = 0; i < 16; i++) {
                LOAD_RUNS(x[i], b + col[j + i], row + k, B_STRIDE, B_DEEP)
            }
            transpose16(x);
#pragma unroll
            for (uint i = 0; i < 16; i++) {
                vstore16(x[i], 0, to + (k + i) * NR + j);
            }
        }
    }
    for (uint k = deep; k < kc; k++) {
        for (uint j = 0; j < NR; j++) {
            to[k * NR + j] = b[row[k] + col[j]];
        }
    }
#else
#if B_RUN > 1
    if (full) {
        for (uint k = 0; k < kc; k++) {
            global const float *from = b + row[k];
            for (uint j = 0; j < NR; j += B_RUN) {
                CAT(vstore, B_RUN)(LOAD(B_STRIDE, B_RUN)(from + col[j]), 0, to + k * NR + j);
            }
        }
        return;
    }
#endif
    for (uint k = 0; k < kc; k++) {
        global const float *from = b + row[k];
        for (uint j = 0; j < NR; j++) {
            to[k * NR + j] = from[col[j]];
        }
    }
#endif
}

/* C = A * B (+ C) (+ bias) (relu) over rows [row_each * group 1, ...), columns [32 panel_each * group 0, ...),
 * depth [depth_each * group 2, ...). With several groups in depth C is [group 2][rows][cols] and
 * `finish` of gemm_move.cl adds the parts.
 * grid  (column blocks, row blocks, depth blocks), groups of one item */
kernel ONE_ITEM void product(global float *c, ulong c_base, ulong c_part, int c_row,
                             STEPS_ARGS(ccol), global const float *a, ulong a_base,
                             global const float *b, ulong b_base, STEPS_ARGS(brow),
                             STEPS_ARGS(bcol), uint rows, uint cols, uint depth, uint panel_each,
                             uint row_each, uint depth_each, uint accumulate, global const float *bias,
                             ulong bias_base, uint bias_axis, uint relu) {
    local float16 packed[NB * KC * 2];
    local int row_at[KC];
    local int col_at[NB * NR];
    local int c_at[NB * NR];
    const uint j0 = (uint)get_group_id(0) * panel_each * NR;
    const uint i0 = (uint)get_group_id(1) * row_each;
    const uint i1 = min(i0 + row_each, rows);
    const uint k0 = (uint)get_group_id(2) * depth_each;
    const uint k1 = min(k0 + depth_each, depth);
    const uint panels = min(panel_each, (cols - j0 + NR - 1) / NR);
    const uint live = min(cols - j0, panels * NR);
    steps_fill(col_at, j0, live, STEPS(bcol));
    steps_fill(c_at, j0, live, STEPS(ccol));
    for (uint j = live; j < panels * NR; j++) {
        col_at[j] = col_at[live - 1]; /* read, packed, never stored */
    }
    for (uint k = k0; k < k1; k += KC) {
        const uint kc = min((uint)KC, k1 - k);
        steps_fill(row_at, k, kc, STEPS(brow));
        for (uint p = 0; p < panels; p++) {
            pack_panel((local float *)packed + p * KC * NR, b + b_base, row_at, col_at + p * NR, kc,
                       j0 + (p + 1) * NR <= cols);
        }
        place to = {.row_stride = c_row,
                    .add = k > k0 || accumulate,
                    .last = k + kc == k1,
                    .bias_axis = bias_axis,
                    .relu = relu};
        for (uint i = i0; i < i1; i += MR) {
            global const float *tile = a + a_base + (ulong)i * depth + (ulong)k * MR;
            to.c = c + ((long)c_base + (long)(get_group_id(2) * c_part) + (long)i * c_row);
            to.rows = i1 - i;
            for (uint p = 0; p < panels; p++) {
                to.at = c_at + p * NR;
                to.cols = cols - j0 - p * NR;
                to.bias = bias + bias_base + (bias_axis == 1 ? i : j0 + p * NR);
                multiply(&to, tile, packed + p * KC * 2, kc);
            }
        }
    }
}
