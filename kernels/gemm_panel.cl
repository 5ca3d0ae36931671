/* C = A * B on devices with wide vectors and few threads (CPUs): packed panels, a register tile.
 *
 * source  Goto & van de Geijn 2008: a block of B is packed into panels of 32 columns that stay in the
 *         second-level cache, A is packed once into tiles of MR rows; one work-item computes
 *         MR x 32 elements in registers. Work-groups are of one item.
 *
 * defines MR 8 or 12: rows of a tile; KC: depth of a block; NB: panels of a group
 *         B_RUN: so many neighbouring columns of B lie side by side in memory (32, 16, 8, 4, 2, 1)
 *         B_DEEP: so many neighbouring rows of B do (then B is packed by transposing), 1 = no
 *         C_RUN: so many neighbouring columns of C do */
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
#ifndef C_RUN
#define C_RUN 1
#endif
#define NR 32
#define ONE_ITEM __attribute__((reqd_work_group_size(1, 1, 1)))

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

/* dst[tile][k][r] = A(tile * MR + r, k), 0 below the last row. Written once, read by every group.
 * grid  (tiles, depth / depth_each) */
kernel ONE_ITEM void pack_rows(global float *dst, ulong dst_base, global const float *a, ulong a_base,
                               uint rows, uint depth, uint depth_each, STEPS_ARGS(row),
                               STEPS_ARGS(col)) {
    const uint tile = (uint)get_group_id(0);
    const uint first = (uint)get_group_id(1) * depth_each;
    const uint last = min(first + depth_each, depth);
    global float *to = dst + dst_base + (ulong)tile * depth * MR;
    global const float *from = a + a_base;
    const uint live = min((uint)MR, rows - tile * MR);
    int at[MR];
    for (uint r = 0; r < MR; r++) {
        at[r] = steps_at(tile * MR + min(r, live - 1), STEPS(row));
    }
    for (uint k = first; k < last; k++) {
        const int off = steps_at(k, STEPS(col));
        for (uint r = 0; r < MR; r++) {
            to[(ulong)k * MR + r] = r < live ? from[at[r] + off] : 0.0f;
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
    for (uint k = 0; k < kc; k++) {
        const float16 left = b[2 * k];
        const float16 right = b[2 * k + 1];
#define STEP(r)                                                                                    \
    {                                                                                              \
        const float16 x = a[k * MR + r];                                                           \
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
    const uint deep = kc / B_DEEP * B_DEEP;
    for (uint j = 0; j < NR; j++) {
        global const float *from = b + col[j];
        for (uint k = 0; k < deep; k += B_DEEP) {
            CAT(float, B_DEEP) x = CAT(vload, B_DEEP)(0, from + row[k]);
            const float *each = (const float *)&x;
            for (uint i = 0; i < B_DEEP; i++) {
                to[(k + i) * NR + j] = each[i];
            }
        }
        for (uint k = deep; k < kc; k++) {
            to[k * NR + j] = from[row[k]];
        }
    }
#else
#if B_RUN > 1
    if (full) {
#if B_RUN == 32
        for (uint k = 0; k < kc; k++) {
            global const float *from = b + row[k] + col[0];
            vstore16(vload16(0, from), 0, to + k * NR);
            vstore16(vload16(1, from), 1, to + k * NR);
        }
#else
        for (uint k = 0; k < kc; k++) {
            global const float *from = b + row[k];
            for (uint j = 0; j < NR; j += B_RUN) {
                CAT(vstore, B_RUN)(CAT(vload, B_RUN)(0, from + col[j]), 0, to + k * NR + j);
            }
        }
#endif
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

/* C = A * B (+ C) (+ bias) (relu) over rows [row_each * group 1, ...), columns [32 NB * group 0, ...),
 * depth [depth_each * group 2, ...). With several groups in depth C is [group 2][rows][cols] and
 * `finish` of gemm_move.cl adds the parts.
 * grid  (column blocks, row blocks, depth blocks), groups of one item */
kernel ONE_ITEM void product(global float *c, ulong c_base, ulong c_part, int c_row,
                             STEPS_ARGS(ccol), global const float *a, ulong a_base,
                             global const float *b, ulong b_base, STEPS_ARGS(brow),
                             STEPS_ARGS(bcol), uint rows, uint cols, uint depth, uint row_each,
                             uint depth_each, uint accumulate, global const float *bias,
                             ulong bias_base, uint bias_axis, uint relu) {
    local float16 packed[NB * KC * 2];
    local int row_at[KC];
    local int col_at[NB * NR];
    local int c_at[NB * NR];
    const uint j0 = (uint)get_group_id(0) * NB * NR;
    const uint i0 = (uint)get_group_id(1) * row_each;
    const uint i1 = min(i0 + row_each, rows);
    const uint k0 = (uint)get_group_id(2) * depth_each;
    const uint k1 = min(k0 + depth_each, depth);
    const uint panels = min((uint)NB, (cols - j0 + NR - 1) / NR);
    for (uint j = 0; j < panels * NR; j++) {
        const uint column = min(j0 + j, cols - 1);
        col_at[j] = steps_at(column, STEPS(bcol));
        c_at[j] = steps_at(column, STEPS(ccol));
    }
    for (uint k = k0; k < k1; k += KC) {
        const uint kc = min((uint)KC, k1 - k);
        for (uint i = 0; i < kc; i++) {
            row_at[i] = steps_at(k + i, STEPS(brow));
        }
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
