/* Rows from one tensor to another, sums of tensors. */
#include "vec16.clh"

/* y[y_first + r * y_stride + i] (+)= x[x_first + r * x_stride + i], i < columns, r < rows. Offsets
 * and strides in elements. Grid: one item for each 16 elements of a row, one dimension for all
 * rows. */
kernel void copy_rows(global float *y, global const float *x, ulong y_first, ulong y_stride,
                      ulong x_first, ulong x_stride, uint columns, uint rows, uint add) {
    uint item = (uint)get_global_id(0);
    uint pieces = (columns + 15) / 16;
    uint r = item / pieces;
    uint i = item % pieces * 16;
    if (r < rows) {
        global const float *from = x + x_first + r * x_stride + i;
        put16(load16(from, columns - i, 0.0f), y + y_first + r * y_stride + i, columns - i, add);
    }
}

/* y[y_first + i] = a[a_first + i] + b[b_first + i]; y may be a.
 * Grid: one item per 16 elements. */
kernel void sum_two(global float *y, ulong y_first, global const float *a, ulong a_first,
                    global const float *b, ulong b_first, uint count) {
    uint i = (uint)get_global_id(0) * 16;
    uint left = count - i;
    if (i < count) {
        float16 sum = load16(a + a_first + i, left, 0.0f) + load16(b + b_first + i, left, 0.0f);
        store16(sum, y + y_first + i, left);
    }
}

/* x[x_first + i] *= factor. Grid: as sum_two. */
kernel void scale_all(global float *x, ulong x_first, uint count, float factor) {
    uint i = (uint)get_global_id(0) * 16;
    if (i < count) {
        store16(load16(x + x_first + i, count - i, 0.0f) * factor, x + x_first + i, count - i);
    }
}

/* out[out_first + i] = y[y_first + i] > 0 ? dy[dy_first + i] : 0, with d_relu's rule for a NaN.
 * Grid: as sum_two. */
kernel void mask_positive(global float *out, ulong out_first, global const float *dy,
                          ulong dy_first, global const float *y, ulong y_first, uint count) {
    uint i = (uint)get_global_id(0) * 16;
    if (i < count) {
        float16 d = load16(dy + dy_first + i, count - i, 0.0f);
        float16 ref = load16(y + y_first + i, count - i, 0.0f);
        store16(select(d, (float16)0.0f, ref <= 0.0f), out + out_first + i, count - i);
    }
}
