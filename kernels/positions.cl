/* Additions of positions to sequences; x [n, steps, columns]. Element 0 of x, y and dy is at
 * `<name>_first` of its buffer. */
#include "vec16.clh"

#define RADIANS 1.46291807926715968e-9f /* pi / 2^31: an angle in units of 2^-32 turns */

/* y[s][i] = x[s][i] + weight[i], i < count; y may be x.
 * Grid: one item for each 16 elements of a sample, one dimension for all samples. */
kernel void position_forward(global float *y, ulong y_first, global const float *x, ulong x_first,
                             global const float *weight, uint n, uint count) {
    uint item = (uint)get_global_id(0);
    uint pieces = (count + 15) / 16;
    uint s = item / pieces;
    uint i = item % pieces * 16;
    if (s < n) {
        ulong at = (ulong)s * count + i;
        float16 sum = load16(x + x_first + at, count - i, 0.0f);
        sum += load16(weight + i, count - i, 0.0f);
        store16(sum, y + y_first + at, count - i);
    }
}

/* out[i] (+)= the sum of dy[s * stride + i] over n samples for i < count; out[i] (+)= 0 for i from
 * count to `total`.
 * Grid: one item for each 16 elements of out. */
kernel void sum_samples(global float *out, global const float *dy, ulong dy_first, ulong stride,
                        uint n, uint count, uint total, uint add) {
    uint i = (uint)get_global_id(0) * 16;
    if (i < total) {
        float16 sum = (float16)0.0f;
        for (uint s = 0; s < n && i < count; s++) {
            sum += load16(dy + dy_first + s * stride + i, count - i, 0.0f);
        }
        put16(sum, out + i, total - i, add);
    }
}

/* first * ratio^exponent, where `ratio` counts in units of 2^-64. */
static ulong shrink(ulong first, ulong ratio, uint exponent) {
    for (; exponent > 0; exponent /= 2) {
        first = exponent & 1 ? mul_hi(first, ratio) : first;
        ratio = mul_hi(ratio, ratio);
    }
    return first;
}

/* sin (even columns) and cos (odd columns) of t * f_k for the columns i to i + 16, i even. Angles
 * are turns in units of 2^-64, so t * f_k is exact modulo one turn. f_0 = first, f_(k+1) = f_k *
 * ratio. */
static float16 waves(uint t, uint i, ulong first, ulong ratio) {
    ulong turns = shrink(first, ratio, i / 2);
    float angle[8];
    for (uint k = 0; k < 8; k++) {
        angle[k] = (float)as_int((uint)(t * turns >> 32)) * RADIANS;
        turns = mul_hi(turns, ratio);
    }
    float8 angles = vload8(0, angle);
    float16 wave;
    wave.even = sin(angles);
    wave.odd = cos(angles);
    return wave;
}

/* y[s][t][2 k] = x + sin(t f_k), y[s][t][2 k + 1] = x + cos(t f_k); y may be x.
 * Grid: one item for each 16 columns of a step, one dimension for all steps; an item processes all
 * samples. */
kernel void sinusoid_forward(global float *y, ulong y_first, global const float *x, ulong x_first,
                             uint n, uint steps, uint columns, ulong first, ulong ratio) {
    uint item = (uint)get_global_id(0);
    uint pieces = (columns + 15) / 16;
    uint t = item / pieces;
    uint i = item % pieces * 16;
    if (t >= steps) {
        return;
    }
    float16 wave = waves(t, i, first, ratio);
    for (uint s = 0; s < n; s++) {
        ulong at = ((ulong)s * steps + t) * columns + i;
        store16(load16(x + x_first + at, columns - i, 0.0f) + wave, y + y_first + at, columns - i);
    }
}
