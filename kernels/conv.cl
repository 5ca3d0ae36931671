/* Convolutions that are not matrix products: groups of a few channels, done directly; and the
 * gathering of a gradient from columns (col2im).
 *
 * x [n, C, h, w], y [n, K, p, q], weight [K, CG, R, R] with CG = C / groups, KG = K / groups.
 * Row kernels: one work-item a row, whose inner loops run along it with constant steps, no divisions
 * and no two items writing the same place. Offsets in elements. */
#ifndef R
#define R 3
#endif
#ifndef STRIDE
#define STRIDE 1
#endif
#ifndef DILATION
#define DILATION 1
#endif
#include "vec16.clh"

/* Outputs [x, y) of a row for which pixel j * STRIDE + left lies inside a row of w. */
static int2 inside(int left, int w, int q) {
    int first = left < 0 ? (-left + STRIDE - 1) / STRIDE : 0;
    int end = left < w ? (w - 1 - left) / STRIDE + 1 : 0;
    return (int2)(min(first, q), clamp(end, min(first, q), q));
}

/* y[j] += sum over s of weight[s] x[j STRIDE + s DILATION - pad], pixels outside are 0. */
static void gather_row(global float *restrict y, global const float *restrict x,
                       global const float *restrict weight, int w, int q, int pad) {
    int first = inside(-pad, w, q).x;
    int end = max(first, inside((R - 1) * DILATION - pad, w, q).y);
    for (int j = first; j < end; j++) {
        float sum = 0.0f;
        for (int s = 0; s < R; s++) {
            sum += weight[s] * x[j * STRIDE + s * DILATION - pad];
        }
        y[j] += sum;
    }
    for (int j = 0; j < q; j++) {
        j = j == first ? end : j;
        for (int s = 0; s < R && j < q; s++) {
            int at = j * STRIDE + s * DILATION - pad;
            if (at >= 0 && at < w) {
                y[j] += weight[s] * x[at];
            }
        }
    }
}

/* dx[j STRIDE + left] += weight dy[j]. */
static void scatter_row(global float *restrict dx, global const float *restrict dy, float weight,
                        int left, int w, int q) {
    int2 in = inside(left, w, q);
    for (int j = in.x; j < in.y; j++) {
        dx[j * STRIDE + left] += weight * dy[j];
    }
}

static void fill_row(global float *row, int w, float value) {
    for (int i = 0; i < w; i++) {
        row[i] = value;
    }
}

/* y = conv(x, weight) + bias, then max(., 0) when `relu`. Grid: n * K * p rows. */
kernel void direct_forward(global float *restrict y, global const float *restrict x,
                           global const float *restrict weight, global const float *restrict bias,
                           uint rows, uint channels, uint cg, uint out, uint kg, int h, int w, int p,
                           int q, int pad, uint relu) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    int top = (int)(row % (uint)p) * STRIDE - pad;
    uint k = row / (uint)p % out;
    uint image = row / (uint)p / out;
    global float *to = y + (ulong)row * (ulong)q;
    global const float *from = x + ((ulong)image * channels + k / kg * cg) * (ulong)(h * w);
    fill_row(to, q, bias ? bias[k] : 0.0f);
    for (uint c = 0; c < cg; c++) {
        for (int r = 0; r < R; r++) {
            int yy = top + r * DILATION;
            if (yy >= 0 && yy < h) {
                gather_row(to, from + (ulong)c * (ulong)(h * w) + yy * w,
                           weight + ((ulong)k * cg + c) * (R * R) + r * R, w, q, pad);
            }
        }
    }
    for (int j = 0; j < q && relu; j++) {
        to[j] = to[j] <= 0.0f ? 0.0f : to[j];
    }
}

/* dx (+)= the transposed convolution of dy. Grid: n * C * h rows. */
kernel void direct_input(global float *restrict dx, global const float *restrict dy, ulong dy_first,
                         global const float *restrict weight, uint rows, uint channels, uint cg,
                         uint out, uint kg, int h, int w, int p, int q, int pad, uint add) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    int yy = (int)(row % (uint)h);
    uint c = row / (uint)h % channels;
    uint image = row / (uint)h / channels;
    uint group = c / cg;
    global float *to = dx + (ulong)row * (ulong)w;
    if (!add) {
        fill_row(to, w, 0.0f);
    }
    for (uint k = group * kg; k < (group + 1) * kg; k++) {
        global const float *from = dy + dy_first + ((ulong)image * out + k) * (ulong)(p * q);
        global const float *taps = weight + ((ulong)k * cg + c % cg) * (R * R);
        for (int r = 0; r < R; r++) {
            int t = yy + pad - r * DILATION;
            if (t >= 0 && t % STRIDE == 0 && t / STRIDE < p) {
                for (int s = 0; s < R; s++) {
                    scatter_row(to, from + t / STRIDE * q, taps[r * R + s], s * DILATION - pad, w,
                                q);
                }
            }
        }
    }
}

/* x[first + l STRIDE] for the 16 lanes l, 0 outside [0, w). */
static float16 load_steps(global const float *x, int first, int w) {
    if (first >= 0 && first + 15 * STRIDE < w) {
#if STRIDE == 1
        return vload16(0, x + first);
#elif STRIDE == 2
        if (first + 31 < w) {
            return (float16)(vload16(0, x + first).even, vload16(0, x + first + 16).even);
        }
#endif
    }
    float lane[16];
    for (int l = 0; l < 16; l++) {
        int at = first + l * STRIDE;
        lane[l] = at >= 0 && at < w ? x[at] : 0.0f;
    }
    return vload16(0, lane);
}

/* part[part_first + chunk K CG R R + ((k CG + c) R + r) R + s] = sum of dy[k][i][j] x[c][..][..] over
 * a chunk of `images` samples. Grid: (K * CG * R, chunks). */
kernel void direct_weight(global float *restrict part, ulong part_first,
                          global const float *restrict dy, ulong dy_first,
                          global const float *restrict x, uint n, uint images, uint channels, uint cg,
                          uint out, uint kg, int h, int w, int p, int q, int pad) {
    uint item = (uint)get_global_id(0);
    uint chunk = (uint)get_global_id(1);
    if (item >= out * cg * R || chunk * images >= n) {
        return;
    }
    int r = (int)(item % R);
    uint c = item / R % cg;
    uint k = item / R / cg;
    uint end = min((chunk + 1) * images, n);
    float16 sum[R];
    for (int s = 0; s < R; s++) {
        sum[s] = (float16)0.0f;
    }
    for (uint image = chunk * images; image < end; image++) {
        global const float *d = dy + dy_first + ((ulong)image * out + k) * (ulong)(p * q);
        global const float *plane =
            x + ((ulong)image * channels + k / kg * cg + c) * (ulong)(h * w);
        for (int i = 0; i < p; i++) {
            int yy = i * STRIDE + r * DILATION - pad;
            if (yy < 0 || yy >= h) {
                continue;
            }
            for (int j = 0; j < q; j += 16) {
                float16 v = load16(d + i * q + j, (uint)(q - j), 0.0f);
                for (int s = 0; s < R; s++) {
                    sum[s] += v * load_steps(plane + yy * w, j * STRIDE + s * DILATION - pad, w);
                }
            }
        }
    }
    for (int s = 0; s < R; s++) {
        part[part_first + ((ulong)chunk * out * cg * R + item) * R + (ulong)s] = sum16(sum[s]);
    }
}

/* dx (+)= for each pixel the sum of the columns it was copied into by im2col, in the order r, s.
 * columns [C R R, images p q] begin at columns_first; image 0 of the grid is image_first of dx, whose
 * channels [channel_first, + count) of `channels` are meant. Grid: images * count * h rows. */
kernel void gather_columns(global float *restrict dx, global const float *restrict columns,
                           ulong columns_first, uint rows, uint images, uint image_first,
                           uint channels, uint channel_first, uint count, int h, int w, int p, int q,
                           int pad, uint add) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    int yy = (int)(row % (uint)h);
    uint c = row / (uint)h % count;
    uint image = row / (uint)h / count;
    global float *to = dx + (((ulong)(image_first + image) * channels + channel_first + c) *
                                 (ulong)h + (ulong)yy) * (ulong)w;
    ulong pixels = (ulong)(p * q);
    if (!add) {
        fill_row(to, w, 0.0f);
    }
    for (int r = 0; r < R; r++) {
        int t = yy + pad - r * DILATION;
        if (t < 0 || t % STRIDE != 0 || t / STRIDE >= p) {
            continue;
        }
        for (int s = 0; s < R; s++) {
            ulong line = (((ulong)c * R + (ulong)r) * R + (ulong)s) * images + image;
            scatter_row(to, columns + columns_first + line * pixels + (ulong)(t / STRIDE * q), 1.0f,
                        s * DILATION - pad, w, q);
        }
    }
}
