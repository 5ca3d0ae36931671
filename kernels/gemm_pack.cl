/* Packs the left operand of gemm_panel.cl into tiles of MR (8 or 12) rows. */
#include "gemm_steps.clh"
#include "gemm_tile.clh"

#ifndef MR
#define MR 8
#endif
#ifndef PACK_DEPTH
#define PACK_DEPTH 256
#endif
#ifndef PACK_TILES
#define PACK_TILES 4
#endif

/* dst[block][tile][k][r] = A(tile * MR + r, block * block_each + k), 0 after the last row; the last
 * block may have fewer k. Written once, read by every group of the product.
 *   block_each depth of a block, at most PACK_DEPTH
 *   deep, run  how adjacent columns and rows of A are arranged: a RUN() of columns; run >= 4: that
 *              many rows are contiguous
 *   grid       (tiles / PACK_TILES, depth / block_each), groups of one item */
kernel ONE_ITEM void pack_rows(global float *dst, ulong dst_base, global const float *a,
                               ulong a_base, uint rows, uint depth, STEPS_ARGS(row),
                               STEPS_ARGS(col), uint block_each, uint deep, uint run) {
    local int off[PACK_DEPTH];
    const uint first = (uint)get_group_id(1) * block_each;
    const uint count = min(block_each, depth - first);
    const uint tiles = (rows + MR - 1) / MR;
    const uint tile_end = min((uint)(get_group_id(0) + 1) * PACK_TILES, tiles);
    global const float *from = a + a_base;
    steps_fill(off, first, count, STEPS(col));
    for (uint tile = (uint)get_group_id(0) * PACK_TILES; tile < tile_end; tile++) {
        global float *to = dst + dst_base + (ulong)first * tiles * MR + (ulong)tile * count * MR;
        const uint live = min((uint)MR, rows - tile * MR);
        int at[MR];
        for (uint r = 0; r < MR; r++) {
            at[r] = steps_at(tile * MR + min(r, live - 1), STEPS(row));
        }
        uint k = 0;
        if (deep != 0) {
            float16 x[16];
            for (uint i = 0; i < 16; i++) {
                x[i] = 0;
            }
            for (; k + 16 <= count; k += 16) {
                read_lines(x, from, at, live, off + k, deep);
                float16 y[16];
#pragma unroll
                for (uint i = 0; i < 16; i++) {
                    y[i] = i < MR ? x[i] : (float16)0;
                }
                transpose16(y);
#pragma unroll
                for (uint i = 0; i < 16; i++) {
                    vstore8(y[i].lo, 0, to + (k + i) * MR);
#if MR == 12
                    vstore4(y[i].hi.lo, 0, to + (k + i) * MR + 8);
#endif
                }
            }
        } else if (run >= 4 && live == MR) {
            for (; k < count; k++) {
                for (uint r = 0; r < MR; r += 4) {
                    vstore4(vload4(0, from + off[k] + at[r]), 0, to + k * MR + r);
                }
            }
        }
        for (; k < count; k++) {
            for (uint r = 0; r < MR; r++) {
                to[k * MR + r] = r < live ? from[at[r] + off[k]] : 0.0f;
            }
        }
    }
}
