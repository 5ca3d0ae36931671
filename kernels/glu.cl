/* y = a sigmoid(b), where each row of x has `half_row` elements a and then as many b, and
 * `half_row` is the length of a row of y. Element 0 of each tensor is at `<name>_first` of its
 * buffer. Grid: one item for each 16 elements of a row of y, one dimension for all rows. */
#include "vec16.clh"

kernel void glu_forward(global float *y, ulong y_first, global const float *x, ulong x_first,
                        uint rows, uint half_row) {
    uint item = (uint)get_global_id(0);
    uint pieces = (half_row + 15) / 16;
    uint row = item / pieces;
    uint i = item % pieces * 16;
    uint left = half_row - i;
    if (row < rows) {
        global const float *from = x + x_first + (ulong)row * half_row * 2 + i;
        float16 a = load16(from, left, 0.0f);
        float16 b = load16(from + half_row, left, 0.0f);
        store16(a * (1.0f / (1.0f + exp(-b))), y + y_first + (ulong)row * half_row + i, left);
    }
}

/* da (+)= dy sigmoid(b), db (+)= dy a sigmoid'(b) */
kernel void glu_backward(global float *dx, ulong dx_first, global const float *dy, ulong dy_first,
                         global const float *x, ulong x_first, uint rows, uint half_row, uint add) {
    uint item = (uint)get_global_id(0);
    uint pieces = (half_row + 15) / 16;
    uint row = item / pieces;
    uint i = item % pieces * 16;
    uint left = half_row - i;
    if (row < rows) {
        ulong at = (ulong)row * half_row * 2 + i;
        float16 a = load16(x + x_first + at, left, 0.0f);
        float16 b = load16(x + x_first + at + half_row, left, 0.0f);
        float16 d = load16(dy + dy_first + (ulong)row * half_row + i, left, 0.0f);
        float16 s = 1.0f / (1.0f + exp(-b));
        put16(d * s, dx + dx_first + at, left, add);
        put16(d * a * (s * (1.0f - s)), dx + dx_first + at + half_row, left, add);
    }
}
