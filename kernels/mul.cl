/* Products y = a b where b may be broadcast. A sample of `a` is [p, q, wide]; b has the same axes,
 * but an axis may have one element, and its stride (step_p, step_q, `along` for the last axis) is
 * then 0. A sample of b begins step_n elements after the last one; 0: b is a parameter. Element 0
 * of each tensor is at `<name>_first` of its buffer. */
#include "vec16.clh"

/* y (+)= a b. y may be a.
 * Grid: one item for each 16 elements of a row, one dimension for all n * p * q rows. */
kernel void mul_rows(global float *y, ulong y_first, global const float *a, ulong a_first,
                     global const float *b, ulong b_first, uint n, uint p, uint q, uint wide,
                     ulong step_n, uint step_p, uint step_q, uint along, uint add) {
    uint item = (uint)get_global_id(0);
    uint pieces = (wide + 15) / 16;
    uint row = item / pieces;
    uint i = item % pieces * 16;
    uint plane = row / q;
    uint s = plane / p;
    if (s >= n) {
        return;
    }
    global const float *factor =
        b + b_first + s * step_n + (ulong)(plane % p) * step_p + (ulong)(row % q) * step_q;
    ulong at = (ulong)row * wide + i;
    float16 f = along ? load16(factor + i, wide - i, 0.0f) : (float16)factor[0];
    put16(load16(a + a_first + at, wide - i, 0.0f) * f, y + y_first + at, wide - i, add);
}

/* da (+)= dy b and db (+)= dy a for inputs of one shape. da and db may be the same memory; db is
 * then added to da.
 * Grid: one item for each 16 elements. */
kernel void mul_backward(global float *da, ulong da_first, global float *db, ulong db_first,
                         global const float *dy, ulong dy_first, global const float *a,
                         ulong a_first, global const float *b, ulong b_first, uint count,
                         uint add_a, uint add_b) {
    uint i = (uint)get_global_id(0) * 16;
    uint left = count - i;
    if (i >= count) {
        return;
    }
    float16 d = load16(dy + dy_first + i, left, 0.0f);
    float16 of_a = d * load16(b + b_first + i, left, 0.0f);
    float16 of_b = d * load16(a + a_first + i, left, 0.0f);
    if (da) {
        put16(of_a, da + da_first + i, left, add_a);
    }
    if (db) {
        put16(of_b, db + db_first + i, left, add_b);
    }
}

/* out[group][e] (+)= the sum of dy a over `images` samples and over the axes of which b has one
 * element; e counts the elements of a sample of b, [p or 1, q or 1, 1]. The order of the sum is
 * sample, p, q, then 16 sums along the row.
 * Grid: (elements of a sample of b, groups). */
kernel void mul_sum_rows(global float *out, ulong out_first, global const float *dy, ulong dy_first,
                         global const float *a, ulong a_first, uint n, uint p, uint q, uint wide,
                         uint keep_p, uint keep_q, uint images, uint add) {
    uint e = (uint)get_global_id(0);
    uint group = (uint)get_global_id(1);
    uint over_p = keep_p ? p : 1;
    uint over_q = keep_q ? q : 1;
    if (e >= over_p * over_q || group * images >= n) {
        return;
    }
    uint2 in_p = keep_p ? (uint2)(e / over_q, e / over_q + 1) : (uint2)(0, p);
    uint2 in_q = keep_q ? (uint2)(e % over_q, e % over_q + 1) : (uint2)(0, q);
    uint end = min((group + 1) * images, n);
    float16 sum = (float16)0.0f;
    for (uint s = group * images; s < end; s++) {
        for (uint j = in_p.x; j < in_p.y; j++) {
            for (uint k = in_q.x; k < in_q.y; k++) {
                ulong at = (((ulong)s * p + j) * q + k) * wide;
                for (uint i = 0; i < wide; i += 16) {
                    sum += load16(dy + dy_first + at + i, wide - i, 0.0f) *
                           load16(a + a_first + at + i, wide - i, 0.0f);
                }
            }
        }
    }
    global float *to = out + out_first + (ulong)group * over_p * over_q + e;
    *to = add ? *to + sum16(sum) : sum16(sum);
}

/* mul_sum_rows for a b that has the last axis: e counts the rows of a sample of b.
 * Grid: (one item for each 16 elements of the rows of a sample of b, groups). */
kernel void mul_sum_columns(global float *out, ulong out_first, global const float *dy,
                            ulong dy_first, global const float *a, ulong a_first, uint n, uint p,
                            uint q, uint wide, uint keep_p, uint keep_q, uint images, uint add) {
    uint pieces = (wide + 15) / 16;
    uint e = (uint)get_global_id(0) / pieces;
    uint i = (uint)get_global_id(0) % pieces * 16;
    uint group = (uint)get_global_id(1);
    uint over_p = keep_p ? p : 1;
    uint over_q = keep_q ? q : 1;
    if (e >= over_p * over_q || group * images >= n) {
        return;
    }
    uint2 in_p = keep_p ? (uint2)(e / over_q, e / over_q + 1) : (uint2)(0, p);
    uint2 in_q = keep_q ? (uint2)(e % over_q, e % over_q + 1) : (uint2)(0, q);
    uint end = min((group + 1) * images, n);
    float16 sum = (float16)0.0f;
    for (uint s = group * images; s < end; s++) {
        for (uint j = in_p.x; j < in_p.y; j++) {
            for (uint k = in_q.x; k < in_q.y; k++) {
                ulong at = (((ulong)s * p + j) * q + k) * wide + i;
                sum += load16(dy + dy_first + at, wide - i, 0.0f) *
                       load16(a + a_first + at, wide - i, 0.0f);
            }
        }
    }
    put16(sum, out + out_first + ((ulong)group * over_p * over_q + e) * wide + i, wide - i, add);
}
