/* y = softmax(x), with LOG its logarithm, over the middle of [rows, length, inner]. A row without a
 * finite element is NaN, as in PyTorch. Element 0 of each tensor is at `<name>_first` of its
 * buffer. y may be x, and dx may be dy. */
#include "vec16.clh"

static float max16(float16 v) {
    float8 a = fmax(v.lo, v.hi);
    float4 b = fmax(a.lo, a.hi);
    float2 c = fmax(b.lo, b.hi);
    return fmax(c.x, c.y);
}

/* inner = 1. Grid: one item for each row. */
kernel void rows_forward(global float *y, ulong y_first, global const float *x, ulong x_first,
                         uint rows, uint length, uint inner) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    global const float *from = x + x_first + (ulong)row * length;
    global float *to = y + y_first + (ulong)row * length;
    float16 most = (float16)(-INFINITY);
    for (uint i = 0; i < length; i += 16) {
        most = fmax(most, load16(from + i, length - i, -INFINITY));
    }
    float largest = max16(most);
    float16 sum = (float16)0.0f;
    for (uint i = 0; i < length; i += 16) {
        sum += exp(load16(from + i, length - i, -INFINITY) - largest);
    }
    float total = sum16(sum);
    float level = log(total);
    for (uint i = 0; i < length; i += 16) {
        float16 v = load16(from + i, length - i, 0.0f);
        store16(LOG ? v - largest - level : exp(v - largest) / total, to + i, length - i);
    }
}

/* Grid: as rows_forward. */
kernel void rows_backward(global float *dx, ulong dx_first, global const float *dy, ulong dy_first,
                          global const float *y, ulong y_first, uint add, uint rows, uint length,
                          uint inner) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    ulong first = (ulong)row * length;
    float16 sum = (float16)0.0f;
    for (uint i = 0; i < length; i += 16) {
        float16 d = load16(dy + dy_first + first + i, length - i, 0.0f);
        sum += LOG ? d : d * load16(y + y_first + first + i, length - i, 0.0f);
    }
    float total = sum16(sum);
    for (uint i = 0; i < length; i += 16) {
        float16 d = load16(dy + dy_first + first + i, length - i, 0.0f);
        float16 own = load16(y + y_first + first + i, length - i, 0.0f);
        put16(LOG ? d - exp(own) * total : own * (d - total), dx + dx_first + first + i, length - i,
              add);
    }
}

/* Grid: one item for each 16 columns of `inner`, one dimension for all rows. */
kernel void columns_forward(global float *y, ulong y_first, global const float *x, ulong x_first,
                            uint rows, uint length, uint inner) {
    uint pieces = (inner + 15) / 16;
    uint row = (uint)get_global_id(0) / pieces;
    uint i = (uint)get_global_id(0) % pieces * 16;
    uint left = inner - i;
    if (row >= rows) {
        return;
    }
    global const float *from = x + x_first + (ulong)row * length * inner + i;
    global float *to = y + y_first + (ulong)row * length * inner + i;
    float16 largest = (float16)(-INFINITY);
    for (uint k = 0; k < length; k++) {
        largest = fmax(largest, load16(from + (ulong)k * inner, left, 0.0f));
    }
    float16 total = (float16)0.0f;
    for (uint k = 0; k < length; k++) {
        total += exp(load16(from + (ulong)k * inner, left, 0.0f) - largest);
    }
    float16 level = log(total);
    for (uint k = 0; k < length; k++) {
        float16 v = load16(from + (ulong)k * inner, left, 0.0f);
        store16(LOG ? v - largest - level : exp(v - largest) / total, to + (ulong)k * inner, left);
    }
}

/* Grid: as columns_forward. */
kernel void columns_backward(global float *dx, ulong dx_first, global const float *dy,
                             ulong dy_first, global const float *y, ulong y_first, uint add,
                             uint rows, uint length, uint inner) {
    uint pieces = (inner + 15) / 16;
    uint row = (uint)get_global_id(0) / pieces;
    uint i = (uint)get_global_id(0) % pieces * 16;
    uint left = inner - i;
    if (row >= rows) {
        return;
    }
    ulong first = (ulong)row * length * inner + i;
    float16 total = (float16)0.0f;
    for (uint k = 0; k < length; k++) {
        float16 d = load16(dy + dy_first + first + (ulong)k * inner, left, 0.0f);
        total += LOG ? d : d * load16(y + y_first + first + (ulong)k * inner, left, 0.0f);
    }
    for (uint k = 0; k < length; k++) {
        ulong at = first + (ulong)k * inner;
        float16 d = load16(dy + dy_first + at, left, 0.0f);
        float16 own = load16(y + y_first + at, left, 0.0f);
        put16(LOG ? d - exp(own) * total : own * (d - total), dx + dx_first + at, left, add);
    }
}
