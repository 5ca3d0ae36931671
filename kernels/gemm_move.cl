/* Copies before and after a product: padding of images, gathering of operands, completion of a
 * result. */
#include "gemm_steps.clh"

/* Pads the images of a convolution so that every patch is inside: dst[plane][y][x], y < hp, x < wp,
 * is src(c)[(y + y_min) / div][(x + x_min) / div], or 0 if that is not divisible or outside.
 *   plane = image * channels + c; a plane of src starts at base + image * image_stride + c * h * w
 *   grid    (planes * hp) rows / rows_each; each item writes rows_each rows */
kernel void spread(global float *dst, ulong dst_base, global const float *src, ulong src_base,
                   uint planes, uint channels, uint image_stride, uint h, uint w, uint hp, uint wp,
                   int y_min, int x_min, int div, uint rows_each) {
    const uint first = (uint)get_global_id(0) * rows_each;
    const uint last = min(first + rows_each, planes * hp);
    for (uint row = first; row < last; row++) {
        const uint plane = row / hp;
        const int y = (int)(row % hp) + y_min;
        global float *to = dst + dst_base + (ulong)row * wp;
        const bool inside = y >= 0 && y % div == 0 && y / div < (int)h;
        if (!inside) {
            for (uint x = 0; x < wp; x++) {
                to[x] = 0;
            }
            continue;
        }
        global const float *from = src + src_base + (ulong)(plane / channels) * image_stride +
                                   (ulong)(plane % channels) * h * w + (ulong)(y / div) * w;
        if (div == 1) {
            const uint left = min(wp, (uint)max(0, -x_min));
            const int end = (int)w - x_min; /* first x to the right of the image */
            const uint right = end < (int)left ? left : min(wp, (uint)end);
            for (uint x = 0; x < left; x++) {
                to[x] = 0;
            }
            for (uint x = left; x < right; x++) {
                to[x] = from[(int)x + x_min];
            }
            for (uint x = right; x < wp; x++) {
                to[x] = 0;
            }
        } else {
            for (uint x = 0; x < wp; x++) {
                to[x] = 0;
            }
            for (uint x = 0; x < w; x++) {
                const int xx = (int)x * div - x_min;
                if (xx >= 0 && xx < (int)wp) {
                    to[xx] = from[x];
                }
            }
        }
    }
}

/* dst[i * cols + j] = src[base + row(i) + col(j)].  grid (cols, rows) */
kernel void gather(global float *dst, ulong dst_base, global const float *src, ulong src_base,
                   uint rows, uint cols, STEPS_ARGS(row), STEPS_ARGS(col)) {
    const uint j = (uint)get_global_id(0);
    const uint i = (uint)get_global_id(1);
    if (i < rows && j < cols) {
        dst[dst_base + (ulong)i * cols + j] =
            src[(long)src_base + steps_at(i, STEPS(row)) + steps_at(j, STEPS(col))];
    }
}

/* c(i, j) = relu((accumulate ? c(i, j) : 0) + sum over parts of t[part][i * cols + j] + bias), the
 * parts in order. parts 0: c itself is the product. bias_axis: 0 none, 1 row, 2 column.
 *   grid  (cols, rows) */
kernel void finish(global float *c, ulong c_base, global const float *t, ulong t_base, uint parts,
                   global const float *bias, ulong bias_base, uint rows, uint cols,
                   STEPS_ARGS(row), STEPS_ARGS(col), uint accumulate, uint bias_axis, uint relu) {
    const uint j = (uint)get_global_id(0);
    const uint i = (uint)get_global_id(1);
    if (i >= rows || j >= cols) {
        return;
    }
    global float *out = c + ((long)c_base + steps_at(i, STEPS(row)) + steps_at(j, STEPS(col)));
    const ulong part_size = (ulong)rows * cols;
    float sum = 0;
    if (parts == 0) {
        sum = *out;
    } else {
        for (uint part = 0; part < parts; part++) {
            sum += t[t_base + part * part_size + (ulong)i * cols + j];
        }
        if (accumulate) {
            sum += *out;
        }
    }
    if (bias_axis != 0) {
        sum += bias[bias_base + (bias_axis == 1 ? i : j)];
    }
    *out = relu && !(sum > 0 || isnan(sum)) ? 0 : sum;
}
