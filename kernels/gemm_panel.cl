/* C = A * B on devices with wide vectors and few threads (CPUs), with packed panels and a tile of
 * registers.
 *
 * A block of B is packed into panels of 32 columns that stay in the second-level cache. Tiles of MR
 * rows of A are read where they are, if its rows are contiguous, or else packed once. One work-item
 * computes MR x 32 elements in registers. Work-groups have one item.
 *
 *   MR   8 or 12, rows of a tile
 *   KC   depth of a block
 *   NB   the most panels of a group
 *
 * source  Goto & van de Geijn 2008 */
#include "gemm_steps.clh"
#include "gemm_tile.clh"

#ifndef MR
#define MR 8
#endif
#ifndef KC
#define KC 256
#endif
#ifndef NB
#define NB 4
#endif
#define NR 32
#define BAND (MR * 32)

#if MR == 12
#define FOR_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#else
#define FOR_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#endif

typedef struct {
    global float *c; /* first row of the tile, without column offsets */
    int row_stride;
    local const int *at;      /* offsets of the panel's 32 columns */
    uint rows, cols;          /* rows and columns that exist */
    uint run;                 /* contiguous columns: 16, 8 or 4; otherwise 1 */
    bool add;                 /* to c */
    bool last;                /* add bias and apply relu now */
    bool plain;               /* all columns exist and are in runs of 16 */
    global const float *bias; /* for the first row or column; NULL none */
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
    if (j + 16 <= to->cols && to->run == 16) {
        return vload16(0, row + to->at[j]);
    }
    float16 value = 0;
    float *each = (float *)&value;
    for (uint i = 0; i < 16 && j + i < to->cols; i++) {
        each[i] = row[to->at[j + i]];
    }
    return value;
}

inline void write16(global float *row, const place *to, uint j, float16 value) {
    const float *each = (const float *)&value;
    if (j + 16 <= to->cols && to->run == 16) {
        vstore16(value, 0, row + to->at[j]);
    } else if (j + 16 <= to->cols && to->run >= 4) {
        for (uint i = 0; i < 16; i += 4) {
            vstore4(vload4(0, each + i), 0, row + to->at[j + i]);
        }
    } else {
        for (uint i = 0; i < 16 && j + i < to->cols; i++) {
            row[to->at[j + i]] = each[i];
        }
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

/* MR x 32 elements: the sum over kc rows of the packed block of B. Rows of A are `apart` elements
 * from one another and end with row `last`; elements of a row are `step` apart. */
inline void multiply(const place *to, global const float *a, long apart, uint last, uint step,
                     local const float16 *b, uint kc) {
#define ZERO(r) float16 l##r = 0, h##r = 0;
    FOR_ROWS(ZERO)
#define ROW(r) global const float *a##r = a + apart * (long)min((uint)r, last);
    FOR_ROWS(ROW)
    for (ulong k = 0; k < kc * step; k += step, b += 2) {
        const float16 left = b[0];
        const float16 right = b[1];
#define STEP(r)                                                                                    \
    {                                                                                              \
        const float16 x = a##r[k];                                                                 \
        l##r = fma(x, left, l##r);                                                                 \
        h##r = fma(x, right, h##r);                                                                \
    }
        FOR_ROWS(STEP)
    }
    if (to->plain && to->rows >= MR) {
        global float *left = to->c + to->at[0];
        global float *right = to->c + to->at[16];
        const long stride = to->row_stride;
#define ADD_PLAIN(r)                                                                               \
    l##r += vload16(0, left + r * stride);                                                         \
    h##r += vload16(0, right + r * stride);
#define ADD_ROW_BIAS(r)                                                                            \
    l##r += to->bias[r];                                                                           \
    h##r += to->bias[r];
#define ADD_COLUMN_BIAS(r)                                                                         \
    l##r += of_left;                                                                               \
    h##r += of_right;
#define CUT_NEGATIVE(r)                                                                            \
    l##r = select(l##r, (float16)0, l##r <= 0.0f);                                                 \
    h##r = select(h##r, (float16)0, h##r <= 0.0f);
#define PUT_PLAIN(r)                                                                               \
    vstore16(l##r, 0, left + r * stride);                                                          \
    vstore16(h##r, 0, right + r * stride);
        if (to->add) {
            FOR_ROWS(ADD_PLAIN)
        }
        if (to->last && to->bias_axis == 1) {
            FOR_ROWS(ADD_ROW_BIAS)
        } else if (to->last && to->bias_axis == 2) {
            const float16 of_left = vload16(0, to->bias);
            const float16 of_right = vload16(1, to->bias);
            FOR_ROWS(ADD_COLUMN_BIAS)
        }
        if (to->last && to->relu) {
            FOR_ROWS(CUT_NEGATIVE)
        }
        FOR_ROWS(PUT_PLAIN)
        return;
    }
#define PUT(r) put_row(to, r, l##r, h##r);
    FOR_ROWS(PUT)
}

/* B with contiguous columns: copies rows of all panels in runs, so memory is read in long
 * pieces. */
inline void pack_wide(local float *to, global const float *b, local const int *row,
                      local const int *col, uint kc, uint panels, uint how) {
    switch (how) {
#define PACK_WIDE(apart, run)                                                                      \
    case RUN(apart, run):                                                                          \
        for (uint k = 0; k < kc; k++) {                                                            \
            for (uint p = 0; p < panels; p++) {                                                    \
                local float *line = to + (p * KC + k) * NR;                                        \
                for (uint j = 0; j < NR; j += run) {                                               \
                    CAT(vstore, run)                                                               \
                    (LOAD(apart, run)(b + row[k] + col[p * NR + j]), 0, line + j);                 \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        break;
        FOR_RUNS(PACK_WIDE)
    }
}

/* B with contiguous rows: transposes blocks of 16 x 16. Returns the number of rows done. */
inline uint pack_deep(local float *to, global const float *b, local const int *row,
                      local const int *col, uint kc, uint panels, uint how) {
    const uint deep = kc / 16 * 16;
    for (uint j = 0; j < panels * NR; j += 16) {
        local float *panel = to + j / NR * KC * NR + j % NR;
        int line[16];
        for (uint i = 0; i < 16; i++) {
            line[i] = col[j + i];
        }
        for (uint k = 0; k < deep; k += 16) {
            float16 x[16];
            read_lines(x, b, line, 16, row + k, how);
            transpose16(x);
#pragma unroll
            for (uint i = 0; i < 16; i++) {
                vstore16(x[i], 0, panel + (k + i) * NR);
            }
        }
    }
    return deep;
}

inline void pack_singly(local float *to, global const float *b, local const int *row,
                        local const int *col, uint k, uint kc) {
    for (; k < kc; k++) {
        for (uint j = 0; j < NR; j++) {
            to[k * NR + j] = b[row[k] + col[j]];
        }
    }
}

/* Packs kc rows of the panels of B. wide, deep: RUN() of its columns or rows; full: number of
 * panels in which all columns exist. */
inline void pack_panels(local float *to, global const float *b, local const int *row,
                        local const int *col, uint kc, uint panels, uint full, uint wide,
                        uint deep) {
    uint done_rows = 0;
    uint done_panels = 0;
    if (deep != 0) {
        done_rows = pack_deep(to, b, row, col, kc, panels, deep);
    } else if (wide != 0) {
        pack_wide(to, b, row, col, kc, full, wide);
        done_panels = full;
    }
    for (uint p = done_panels; p < panels; p++) {
        pack_singly(to + p * KC * NR, b, row, col + p * NR, done_rows, kc);
    }
}

/* C = A * B (+ C) (+ bias) (relu) over rows [row_each * group 1, ...), columns [32 panel_each *
 * group 0, ...), depth [depth_each * group 2, ...). With several groups in depth C is [group
 * 2][rows][cols], and `finish` of gemm_move.cl adds the parts.
 *   wide, deep  RUN() of the columns or rows of B
 *   c_run       number of contiguous columns of C
 *   block_each  depth of a block, at most KC; depth_each is a multiple of it
 *   packed_a    A is as pack_rows() leaves it; otherwise element (i, k) is a_row i + a_step k
 *   grid        (column blocks, row blocks, depth blocks), groups of one item */
kernel ONE_ITEM void product(global float *c, ulong c_base, ulong c_part, int c_row,
                             STEPS_ARGS(ccol), global const float *a, ulong a_base,
                             global const float *b, ulong b_base, STEPS_ARGS(brow),
                             STEPS_ARGS(bcol), uint rows, uint cols, uint depth, uint wide,
                             uint deep, uint c_run, uint panel_each, uint row_each, uint depth_each,
                             uint block_each, uint accumulate, global const float *bias,
                             ulong bias_base, uint bias_axis, uint relu, uint packed_a, int a_row,
                             uint a_step) {
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
        col_at[j] = col_at[live - 1]; /* packed, but not part of the result */
    }
    for (uint k = k0; k < k1; k += block_each) {
        const uint kc = min(block_each, k1 - k);
        steps_fill(row_at, k, kc, STEPS(brow));
        pack_panels((local float *)packed, b + b_base, row_at, col_at, kc, panels, live / NR, wide,
                    deep);
        place to = {.row_stride = c_row,
                    .run = c_run,
                    .add = k > k0 || accumulate,
                    .last = k + kc == k1,
                    .bias_axis = bias_axis,
                    .relu = relu};
        const long apart = packed_a ? 1 : a_row;
        const uint step = packed_a ? MR : a_step;
        const long each_row = packed_a ? kc : a_row;
        global const float *block =
            a + a_base + (ulong)k * (packed_a ? (rows + MR - 1) / MR * MR : a_step);
        /* A panel stays in the first-level cache for a band of rows; the band stays in the second
         * until all panels have used it. */
        for (uint band = i0; band < i1; band += BAND) {
            const uint end = min(band + BAND, i1);
            for (uint p = 0; p < panels; p++) {
                to.at = c_at + p * NR;
                to.cols = cols - j0 - p * NR;
                to.plain = c_run == 16 && to.cols >= NR;
                for (uint i = band; i < end; i += MR) {
                    to.c = c + ((long)c_base + (long)(get_group_id(2) * c_part) + (long)i * c_row);
                    to.rows = i1 - i;
                    to.bias = bias + bias_base + (bias_axis == 1 ? i : j0 + p * NR);
                    multiply(&to, block + (long)i * each_row, apart,
                             packed_a ? MR - 1 : to.rows - 1, step, packed + p * KC * 2, kc);
                }
            }
        }
    }
}
