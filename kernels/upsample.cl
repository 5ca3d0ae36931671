/* Upsampling of planes; x [planes, h, w], y [planes, p, q]. It is separable: output o of an axis
 * reads the inputs at(o) and at(o) + 1 (clamped to the last one), where
 *     at(o) + lambda(o) = max(step * o + shift, 0) / den,  0 <= lambda < 1,
 * with the weights 1 - lambda and lambda. Without LINEAR it reads only at(o). step <= den. Element
 * 0 of each tensor is at `<name>_first` of its buffer.
 *
 * The backward of an item gathers its 16 elements of dx in the order of y's columns (in chunks of
 * 16) and rows, so no two items write the same element. */
#include "vec16.clh"

#ifndef LINEAR
#define LINEAR 0
#endif

/* Position of one output of an axis: the input `at`, and rest / den of the way to the next. A
 * negative rest is before the first input, and counts as 0. */
typedef struct {
    int at, rest;
} place;

static place place_of(int o, int step, int shift, int den) {
    int value = step * o + shift;
    return value < 0 ? (place){0, value} : (place){value / den, value % den};
}

static place next_place(place now, int step, int den) {
    int rest = now.rest + step;
    return rest >= den ? (place){now.at + 1, rest - den} : (place){now.at, rest};
}

static float lambda_of(place now, float den) {
    return LINEAR ? (float)max(now.rest, 0) / den : 0.0f;
}

/* at, counted from now.at, and lambda of 16 outputs, the first of which is at `now`. Sides are at
 * most 2^15 pixels, so the half before the division keeps a whole quotient from being rounded
 * down. */
static int16 places_from(place now, int step, int den, float16 *lambda) {
    int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    int16 rest = max((int16)now.rest + (int16)step * lane, (int16)0);
    int16 at = convert_int16_rtz((convert_float16(rest) + 0.5f) / (float16)(float)den);
    *lambda = convert_float16(rest - at * (int16)den) / (float16)(float)den;
    return at;
}

/* The first output with at(o) >= at; `at` > 0. */
static int output_from(int at, int step, int shift, int den) {
    return (at * den - shift + step - 1) / step;
}

/* The outputs [.x, .y) that read any of the inputs [from, end). */
static int2 readers_of(int from, int end, int outputs, int step, int shift, int den) {
    int first = from - LINEAR;
    return (int2)(first <= 0 ? 0 : output_from(first, step, shift, den),
                  min(outputs, output_from(end, step, shift, den)));
}

/* Grid: one item for each 16 columns of a row of y, one dimension for all rows. */
kernel void upsample_forward(global float *y, ulong y_first, global const float *x, ulong x_first,
                             uint planes, int h, int w, int p, int q, int step_h, int shift_h,
                             int den_h, int step_w, int shift_w, int den_w) {
    uint item = (uint)get_global_id(0);
    uint pieces = ((uint)q + 15) / 16;
    uint row = item / pieces;
    int j = (int)(item % pieces) * 16;
    if (row / (uint)p >= planes) {
        return;
    }
    place tall = place_of((int)(row % (uint)p), step_h, shift_h, den_h);
    place wide = place_of(j, step_w, shift_w, den_w);
    int base = wide.at;
    int last = w - 1 - base; /* the last column, counted from base */
    ulong source = (ulong)(row / (uint)p) * (uint)h + (uint)tall.at;
    global const float *from = x + x_first + source * (uint)w + (uint)base;
    /* 16 outputs read at most 17 inputs; after the last column it is repeated. */
    float16 low = load16(from, (uint)(w - base), from[min(last, 16)]);
    float high = from[min(last, 16)];
#if LINEAR
    float lambda = lambda_of(tall, (float)den_h);
    global const float *below = from + (tall.at + 1 < h ? w : 0);
    low = (1.0f - lambda) * low + lambda * load16(below, (uint)(w - base), below[min(last, 16)]);
    high = (1.0f - lambda) * high + lambda * below[min(last, 16)];
#endif
    float16 share;
    int16 inputs = places_from(wide, step_w, den_w, &share);
    float value[17];
    float left[16];
    float right[16];
    int at[16];
    vstore16(low, 0, value);
    value[16] = high;
    vstore16(inputs, 0, at);
    for (int l = 0; l < 16; l++) {
        left[l] = value[at[l]];
        right[l] = LINEAR ? value[at[l] + 1] : 0.0f;
    }
    float16 out = vload16(0, left);
#if LINEAR
    out = (1.0f - share) * out + share * vload16(0, right);
#endif
    store16(out, y + y_first + (ulong)row * (uint)q + (uint)j, (uint)(q - j));
}

/* Columns [o, o + 16) of the sum of dy's rows over the rows that read input row i. */
static float16 sum_readers(global const float *dy, int i, int2 rows, int h, int q, int o, int step,
                           int shift, int den) {
    place tall = place_of(rows.x, step, shift, den);
    float16 sum = (float16)0.0f;
    for (int r = rows.x; r < rows.y; r++) {
        float16 d = load16(dy + (ulong)r * (uint)q + (uint)o, (uint)(q - o), 0.0f);
#if LINEAR
        float lambda = lambda_of(tall, (float)den);
        sum += ((tall.at == i ? 1.0f - lambda : 0.0f) +
                (min(tall.at + 1, h - 1) == i ? lambda : 0.0f)) *
               d;
        tall = next_place(tall, step, den);
#else
        sum += d;
#endif
    }
    return sum;
}

/* dx (+)= the transpose of upsample_forward.
 * Grid: one item for each 16 columns of a row of dx, one dimension for all rows. */
kernel void upsample_backward(global float *dx, ulong dx_first, global const float *dy,
                              ulong dy_first, uint planes, int h, int w, int p, int q, int step_h,
                              int shift_h, int den_h, int step_w, int shift_w, int den_w,
                              uint add) {
    uint item = (uint)get_global_id(0);
    uint pieces = ((uint)w + 15) / 16;
    uint row = item / pieces;
    int j = (int)(item % pieces) * 16;
    if (row / (uint)h >= planes) {
        return;
    }
    int i = (int)(row % (uint)h);
    dy += dy_first + (ulong)(row / (uint)h) * (uint)p * (uint)q;
    int2 rows = readers_of(i, i + 1, p, step_h, shift_h, den_h);
    int2 columns = readers_of(j, min(j + 16, w), q, step_w, shift_w, den_w);
    float left[16];
    float right[16];
    int at[16];
    float sum[18]; /* inputs j - 1 to j + 16; the first and the last belong to other items */
    for (int l = 0; l < 18; l++) {
        sum[l] = 0.0f;
    }
    for (int o = columns.x; o < columns.y; o += 16) {
        place wide = place_of(o, step_w, shift_w, den_w);
        float16 share;
        int16 inputs = places_from(wide, step_w, den_w, &share);
        float16 value = sum_readers(dy, i, rows, h, q, o, step_h, shift_h, den_h);
        vstore16(inputs + (wide.at - j + 1), 0, at);
        vstore16(LINEAR ? (1.0f - share) * value : value, 0, left);
        vstore16(share * value, 0, right);
        for (int l = 0; l < min(16, columns.y - o); l++) {
            sum[at[l]] += left[l];
#if LINEAR
            sum[min(at[l] + 1, w - j)] += right[l];
#endif
        }
    }
    put16(vload16(0, sum + 1), dx + dx_first + (ulong)row * (uint)w + (uint)j, (uint)(w - j), add);
}
