/* Moves and sums along the axes of samples; the loops are those of axes.clh. Element 0 of each
 * tensor is at `<name>_first` of its buffer. */
#include "axes.clh"

/* to (+)= factor * from. Grid: the loop. */
kernel void move(global float *to, ulong to_first, global const float *from, ulong from_first,
                 SIZES, STEPS(t), STEPS(f), float factor, uint add) {
    place p = PLACE;
    if (p.left > 0) {
        float16 value = load_apart(from + from_first + ELEMENT(&p, f), f5, p.left);
        put_apart(factor * value, to + to_first + ELEMENT(&p, t), t5, p.left, add);
    }
}

/* to[i] = value, i < count. Grid: one item for each 16 elements. */
kernel void fill(global float *to, ulong to_first, uint count, float value) {
    uint i = (uint)get_global_id(0) * 16;
    if (i < count) {
        store16((float16)value, to + to_first + i, count - i);
    }
}

/* out (+)= factor * the sum of x [k0, r0, k1, r1, k2, r2, columns] over r0, r1 and r2, in the order
 * of the elements of x; out is [k0, k1, k2, columns], and one of k0, k1 and k2 is 1.
 * Grid: one item for each 16 columns of k0 * k1 * k2. */
kernel void sum_columns(global float *out, ulong out_first, global const float *x, ulong x_first,
                        uint k0, uint r0, uint k1, uint r1, uint k2, uint r2, uint columns,
                        float factor, uint add) {
    uint pieces = (columns + 15) / 16;
    uint e = (uint)get_global_id(0) / pieces;
    uint i = (uint)get_global_id(0) % pieces * 16;
    uint a = e / (k1 * k2);
    uint b = e / k2 % k1;
    uint c = e % k2;
    if (a >= k0) {
        return;
    }
    float16 sum = (float16)0.0f;
    for (uint u = 0; u < r0; u++) {
        for (uint v = 0; v < r1; v++) {
            for (uint w = 0; w < r2; w++) {
                ulong at = ((((ulong)a * r0 + u) * k1 + b) * r1 + v) * k2 + c;
                at = (at * r2 + w) * columns + i;
                sum += load16(x + x_first + at, columns - i, 0.0f);
            }
        }
    }
    put16(factor * sum, out + out_first + (ulong)e * columns + i, columns - i, add);
}

/* sum_columns without columns, where the last of r0, r1 and r2 that is not 1 has 16 sums.
 * Grid: one item for each element of out. */
kernel void sum_rows(global float *out, ulong out_first, global const float *x, ulong x_first,
                     uint k0, uint r0, uint k1, uint r1, uint k2, uint r2, uint columns,
                     float factor, uint add) {
    uint e = (uint)get_global_id(0);
    uint a = e / (k1 * k2);
    uint b = e / k2 % k1;
    uint c = e % k2;
    if (a >= k0) {
        return;
    }
    /* the last run is a row */
    uint row = r2;
    uint outer = r0;
    uint inner = r1;
    if (k2 * r2 == 1) {
        row = k1 * r1 == 1 ? r0 : r1;
        outer = k1 * r1 == 1 ? 1 : r0;
        inner = 1;
    }
    float16 sum = (float16)0.0f;
    for (uint u = 0; u < outer; u++) {
        for (uint v = 0; v < inner; v++) {
            ulong at = k2 * r2 > 1   ? ((((ulong)a * r0 + u) * k1 + b) * r1 + v) * k2 + c
                       : k1 * r1 > 1 ? ((ulong)a * r0 + u) * k1 + b
                                     : (ulong)a;
            for (uint i = 0; i < row; i += 16) {
                sum += load16(x + x_first + at * row + i, row - i, 0.0f);
            }
        }
    }
    global float *to = out + out_first + e;
    *to = add ? *to + factor * sum16(sum) : factor * sum16(sum);
}

/* Element (u, v, w) of what is summed for element (a, b, c) of out. */
#define SUMMED ((((((ulong)a * r0 + u) * k1 + b) * r1 + v) * k2 + c) * r2 + w)

/* The first of the largest elements, or of the NaNs, in the order of x. */
static ulong find_largest(global const float *x, uint a, uint b, uint c, uint r0, uint k1, uint r1,
                          uint k2, uint r2) {
    ulong best = 0;
    bool found = false;
    for (uint u = 0; u < r0; u++) {
        for (uint v = 0; v < r1; v++) {
            for (uint w = 0; w < r2; w++) {
                ulong at = SUMMED;
                bool better = !found || x[at] > x[best] || (isnan(x[at]) && !isnan(x[best]));
                best = better ? at : best;
                found = true;
            }
        }
    }
    return best;
}

/* y[e] = the largest element of x [k0, r0, k1, r1, k2, r2] over r0, r1 and r2; a NaN is larger than
 * any number. Grid: one item for each element of y. */
kernel void max_forward(global float *y, ulong y_first, global const float *x, ulong x_first,
                        uint k0, uint r0, uint k1, uint r1, uint k2, uint r2) {
    uint e = (uint)get_global_id(0);
    uint a = e / (k1 * k2);
    uint b = e / k2 % k1;
    uint c = e % k2;
    if (a < k0) {
        y[y_first + e] = x[x_first + find_largest(x + x_first, a, b, c, r0, k1, r1, k2, r2)];
    }
}

/* dx (+)= dy at the element of max_forward, 0 at all others. Grid: as max_forward. */
kernel void max_backward(global float *dx, ulong dx_first, global const float *dy, ulong dy_first,
                         global const float *x, ulong x_first, uint add, uint k0, uint r0, uint k1,
                         uint r1, uint k2, uint r2) {
    uint e = (uint)get_global_id(0);
    uint a = e / (k1 * k2);
    uint b = e / k2 % k1;
    uint c = e % k2;
    if (a >= k0) {
        return;
    }
    ulong best = find_largest(x + x_first, a, b, c, r0, k1, r1, k2, r2);
    for (uint u = 0; u < r0; u++) {
        for (uint v = 0; v < r1; v++) {
            for (uint w = 0; w < r2; w++) {
                ulong at = SUMMED;
                float own = at == best ? dy[dy_first + e] : 0.0f;
                dx[dx_first + at] = add ? dx[dx_first + at] + own : own;
            }
        }
    }
}
