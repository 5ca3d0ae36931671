/* y = x > 0 ? x : slope x, with trained slopes; x is `rows` rows of `wide` elements. With `along` a
 * slope belongs to a column, otherwise row r has slope number r % slopes. Element 0 of x, y, dx and
 * dy is at `<name>_first` of its buffer.
 *
 * The gradient of the slopes has two levels, chunks of samples and then the chunks, as in bias.cl,
 * so the order of the sum depends only on the shapes. */
#include "vec16.clh"

/* A piece of 16 elements of a row. */
typedef struct {
    uint row, i, left;
    ulong at;
} piece;

static piece piece_of(uint item, uint wide) {
    uint pieces = (wide + 15) / 16;
    piece p = {.row = item / pieces, .i = item % pieces * 16};
    p.left = wide - p.i;
    p.at = (ulong)p.row * wide + p.i;
    return p;
}

static float16 slopes_of(global const float *weight, piece p, uint slopes, uint along) {
    if (along) {
        return load16(weight + p.i, p.left, 0.0f);
    }
    return (float16)weight[p.row % slopes];
}

/* y may be x. Grid: one item for each 16 elements of a row, one dimension for all rows. */
kernel void prelu_forward(global float *y, ulong y_first, global const float *x, ulong x_first,
                          global const float *weight, uint rows, uint wide, uint slopes,
                          uint along) {
    piece p = piece_of((uint)get_global_id(0), wide);
    if (p.row < rows) {
        float16 v = load16(x + x_first + p.at, p.left, 0.0f);
        float16 bent = v * slopes_of(weight, p, slopes, along);
        store16(select(bent, v, v > 0.0f), y + y_first + p.at, p.left);
    }
}

/* dx (+)= x > 0 ? dy : slope dy; dx may be dy. Grid: as prelu_forward. */
kernel void prelu_backward(global float *dx, ulong dx_first, global const float *dy, ulong dy_first,
                           global const float *x, ulong x_first, global const float *weight,
                           uint rows, uint wide, uint slopes, uint along, uint add) {
    piece p = piece_of((uint)get_global_id(0), wide);
    if (p.row < rows) {
        float16 v = load16(x + x_first + p.at, p.left, 0.0f);
        float16 d = load16(dy + dy_first + p.at, p.left, 0.0f);
        float16 bent = d * slopes_of(weight, p, slopes, along);
        put16(select(bent, d, v > 0.0f), dx + dx_first + p.at, p.left, add);
    }
}

/* x dy where x <= 0; 0 for elements that do not exist */
static float16 share(global const float *x, global const float *dy, uint left) {
    float16 v = load16(x, left, 1.0f);
    float16 d = load16(dy, left, 0.0f);
    return select(v * d, (float16)0.0f, v > 0.0f);
}

/* part[chunk * slopes + c] = the sum over `images` samples of slopes rows of `wide` elements.
 * Grid: (slopes, chunks). */
kernel void prelu_part_rows(global float *part, global const float *x, ulong x_first,
                            global const float *dy, ulong dy_first, uint n, uint slopes, uint wide,
                            uint images) {
    uint c = (uint)get_global_id(0);
    uint chunk = (uint)get_global_id(1);
    uint end = min((chunk + 1) * images, n);
    if (c >= slopes || chunk * images >= n) {
        return;
    }
    float16 sum = (float16)0.0f;
    for (uint s = chunk * images; s < end; s++) {
        ulong at = ((ulong)s * slopes + c) * wide;
        for (uint i = 0; i < wide; i += 16) {
            sum += share(x + x_first + at + i, dy + dy_first + at + i, wide - i);
        }
    }
    part[(ulong)chunk * slopes + c] = sum16(sum);
}

/* prelu_part_rows for slopes along the row: part[chunk * wide + i] = the sum over `images` of n
 * rows.
 * Grid: (wide / 16 rounded up, chunks). */
kernel void prelu_part_columns(global float *part, global const float *x, ulong x_first,
                               global const float *dy, ulong dy_first, uint n, uint slopes,
                               uint wide, uint images) {
    uint i = (uint)get_global_id(0) * 16;
    uint chunk = (uint)get_global_id(1);
    uint end = min((chunk + 1) * images, n);
    if (i >= wide || chunk * images >= n) {
        return;
    }
    float16 sum = (float16)0.0f;
    for (uint r = chunk * images; r < end; r++) {
        ulong at = (ulong)r * wide + i;
        sum += share(x + x_first + at, dy + dy_first + at, wide - i);
    }
    store16(sum, part + (ulong)chunk * wide + i, wide - i);
}
