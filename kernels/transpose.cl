/* Matrices from rows to columns. */
#include "gemm_tile.clh"
#include "vec16.clh"

/* y[m][c][r] (+)= x[m][r][c] of `count` matrices [rows, columns].
 * Grid: one item for each block of 16 x 16 elements, one dimension for all matrices. */
kernel void transpose(global float *y, ulong y_first, global const float *x, ulong x_first,
                      uint rows, uint columns, uint count, uint add) {
    const uint across = (columns + 15) / 16;
    const uint blocks = (rows + 15) / 16 * across;
    const uint item = (uint)get_global_id(0);
    const uint row = item % blocks / across * 16;
    const uint column = item % across * 16;
    if (item >= blocks * count) {
        return;
    }
    const ulong matrix = (ulong)(item / blocks) * rows * columns;
    x += x_first + matrix + (ulong)row * columns + column;
    y += y_first + matrix + (ulong)column * rows + row;
    float16 block[16];
#pragma unroll
    for (uint i = 0; i < 16; i++) {
        block[i] = row + i < rows ? load16(x + (ulong)i * columns, columns - column, 0.0f)
                                  : (float16)0.0f;
    }
    transpose16(block);
#pragma unroll
    for (uint i = 0; i < 16; i++) {
        if (column + i < columns) {
            put16(block[i], y + (ulong)i * rows, rows - row, add);
        }
    }
}
