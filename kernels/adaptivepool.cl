/* Means of p x q bins of a plane of any size; x [planes, h, w], y [planes, p, q]. Along an axis bin
 * i of `bins` covers the pixels [bin_first, bin_end), so that neighbours may share a pixel. Element
 * 0 of each tensor is at `<name>_first` of its buffer. */
#include "vec16.clh"

static uint bin_first(uint i, uint size, uint bins) {
    return i * size / bins;
}

static uint bin_end(uint i, uint size, uint bins) {
    return ((i + 1) * size + bins - 1) / bins;
}

/* The bins [first, end) that cover a pixel. */
static uint2 covering(uint pixel, uint size, uint bins) {
    return (uint2)(pixel * bins / size, ((pixel + 1) * bins + size - 1) / size);
}

static float sum_row(global const float *x, uint count) {
    float16 wide = (float16)0.0f;
    uint i = 0;
    for (; i + 16 <= count; i += 16) {
        wide += vload16(0, x + i);
    }
    float sum = i > 0 ? sum16(wide) : 0.0f;
    for (; i < count; i++) {
        sum += x[i];
    }
    return sum;
}

/* Grid: one item for each of the planes * p rows of y. */
kernel void adaptive_forward(global float *restrict y, ulong y_first,
                             global const float *restrict x, ulong x_first, uint rows, uint h,
                             uint w, uint p, uint q) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    uint top = bin_first(row % p, h, p);
    uint bottom = bin_end(row % p, h, p);
    global const float *plane = x + x_first + (ulong)(row / p) * h * w;
    global float *out = y + y_first + (ulong)row * q;
    for (uint j = 0; j < q; j++) {
        uint left = bin_first(j, w, q);
        uint wide = bin_end(j, w, q) - left;
        float sum = 0.0f;
        for (uint r = top; r < bottom; r++) {
            sum += sum_row(plane + r * w + left, wide);
        }
        out[j] = sum / (float)((bottom - top) * wide);
    }
}

/* dx (+)= for each pixel the shares of the bins that cover it, in the order p, q.
 * Grid: one item for each of the planes * h rows of dx. */
kernel void adaptive_backward(global float *restrict dx, ulong dx_first,
                              global const float *restrict dy, ulong dy_first, uint rows, uint h,
                              uint w, uint p, uint q, uint add) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    uint2 over = covering(row % h, h, p);
    global float *to = dx + dx_first + (ulong)row * w;
    for (uint s = 0; s < w && !add; s++) {
        to[s] = 0.0f;
    }
    for (uint i = over.x; i < over.y; i++) {
        uint height = bin_end(i, h, p) - bin_first(i, h, p);
        global const float *d = dy + dy_first + ((ulong)(row / h) * p + i) * q;
        for (uint j = 0; j < q; j++) {
            uint left = bin_first(j, w, q);
            uint right = bin_end(j, w, q);
            float share = d[j] / (float)(height * (right - left));
            for (uint s = left; s < right; s++) {
                to[s] += share;
            }
        }
    }
}
