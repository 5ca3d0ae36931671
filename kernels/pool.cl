/* Pooling of planes; x [planes, h, w], y [planes, p, q], windows of R x R every STRIDE pixels, `pad`
 * pixels around that count as nothing (max) or zero (average).
 *
 * Row kernels: one work-item a row, so that the loop along the row has no divisions and constant
 * steps and a compiler turns it into vectors. Grid: rows. A backward item gathers its row of dx from
 * the windows above it, in the order p, q: no two items write the same place. */
#ifndef R
#define R 2
#endif
#ifndef STRIDE
#define STRIDE 2
#endif
#ifndef INDEX
#define INDEX uchar /* holds R * R - 1 */
#endif
#include "vec16.clh"

/* Windows [first, end) along a row of `size` pixels that lie inside it. */
static int2 inside(int size, int count, int pad) {
    int end = size - R + pad < 0 ? 0 : (size - R + pad) / STRIDE + 1;
    int first = (pad + STRIDE - 1) / STRIDE;
    return (int2)(min(first, count), clamp(end, min(first, count), count));
}

/* One window, column by column checked. PyTorch's rule: the first of equal ones, the last NaN. */
static void max_edge(global float *y, global INDEX *arg, global const float *x, int h, int w, int top,
                     int left) {
    float most = -INFINITY;
    uint at = (uint)(max(-top, 0) * R + max(-left, 0));
    for (int r = max(-top, 0); r < R && top + r < h; r++) {
        for (int s = max(-left, 0); s < R && left + s < w; s++) {
            float v = x[(top + r) * w + left + s];
            bool better = v > most || v != v;
            most = better ? v : most;
            at = better ? (uint)(r * R + s) : at;
        }
    }
    *y = most;
    *arg = (INDEX)at;
}

kernel void max_forward(global float *restrict y, global INDEX *restrict arg,
                        global const float *restrict x, uint rows, int h, int w, int p, int q,
                        int pad) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    int top = (int)(row % (uint)p) * STRIDE - pad;
    global const float *plane = x + (ulong)(row / (uint)p) * (ulong)(h * w);
    global float *out = y + (ulong)row * (ulong)q;
    global INDEX *index = arg + (ulong)row * (ulong)q;
    int2 in = top >= 0 && top + R <= h ? inside(w, q, pad) : (int2)(0, 0);
    global const float *from = plane + top * w - pad;
    for (int j = in.x; j < in.y; j++) {
        float most = -INFINITY;
        uint at = 0;
        for (int r = 0; r < R; r++) {
            for (int s = 0; s < R; s++) {
                float v = from[r * w + j * STRIDE + s];
                bool better = v > most || v != v;
                most = better ? v : most;
                at = better ? (uint)(r * R + s) : at;
            }
        }
        out[j] = most;
        index[j] = (INDEX)at;
    }
    for (int j = 0; j < q; j++) {
        if (j == in.x) {
            j = in.y;
        }
        if (j < q) {
            max_edge(out + j, index + j, plane, h, w, top, j * STRIDE - pad);
        }
    }
}

kernel void average_forward(global float *restrict y, global const float *restrict x, uint rows,
                            int h, int w, int p, int q, int pad) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    int top = (int)(row % (uint)p) * STRIDE - pad;
    global const float *plane = x + (ulong)(row / (uint)p) * (ulong)(h * w);
    global float *out = y + (ulong)row * (ulong)q;
    int r_first = max(-top, 0);
    int r_end = min(R, h - top);
    int2 in = inside(w, q, pad);
    for (int j = in.x; j < in.y; j++) {
        float sum = 0.0f;
        for (int r = r_first; r < r_end; r++) {
            for (int s = 0; s < R; s++) {
                sum += plane[(top + r) * w + j * STRIDE - pad + s];
            }
        }
        out[j] = sum / (float)(R * R);
    }
    for (int j = 0; j < q; j++) {
        j = j == in.x ? in.y : j;
        int left = j * STRIDE - pad;
        float sum = 0.0f;
        for (int r = r_first; r < r_end && j < q; r++) {
            for (int s = max(-left, 0); s < R && left + s < w; s++) {
                sum += plane[(top + r) * w + left + s];
            }
        }
        if (j < q) {
            out[j] = sum / (float)(R * R);
        }
    }
}

/* The rows of windows [first, end) that cover row `yy` of the image. */
static int2 covering(int yy, int p, int pad) {
    int first = yy + pad - R + 1;
    return (int2)(first <= 0 ? 0 : (first + STRIDE - 1) / STRIDE, min(p, (yy + pad) / STRIDE + 1));
}

static void clear_row(global float *row, int w, uint add) {
    for (int i = 0; i < w && !add; i++) {
        row[i] = 0.0f;
    }
}

kernel void max_backward(global float *restrict dx, global const float *restrict dy,
                         global const INDEX *restrict arg, uint rows, int h, int w, int p, int q,
                         int pad, uint add) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    int yy = (int)(row % (uint)h);
    ulong plane = row / (uint)h;
    global float *to = dx + (ulong)row * (ulong)w;
    int2 in = inside(w, q, pad);
    int2 over = covering(yy, p, pad);
    clear_row(to, w, add);
    for (int i = over.x; i < over.y; i++) {
        global const float *d = dy + (plane * (ulong)p + (ulong)i) * (ulong)q;
        global const INDEX *a = arg + (plane * (ulong)p + (ulong)i) * (ulong)q;
        int here = (yy + pad - i * STRIDE) * R;
        for (int j = 0; j < in.x; j++) {
            int s = (int)a[j] - here;
            if (s >= 0 && s < R) {
                to[j * STRIDE - pad + s] += d[j];
            }
        }
        for (int j = in.x; j < in.y; j++) {
            for (int s = 0; s < R; s++) {
                to[j * STRIDE - pad + s] += (int)a[j] == here + s ? d[j] : 0.0f;
            }
        }
        for (int j = in.y; j < q; j++) {
            int s = (int)a[j] - here;
            if (s >= 0 && s < R) {
                to[j * STRIDE - pad + s] += d[j];
            }
        }
    }
}

kernel void average_backward(global float *restrict dx, global const float *restrict dy, uint rows,
                             int h, int w, int p, int q, int pad, uint add) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    int yy = (int)(row % (uint)h);
    ulong plane = row / (uint)h;
    global float *to = dx + (ulong)row * (ulong)w;
    int2 over = covering(yy, p, pad);
    clear_row(to, w, add);
    for (int i = over.x; i < over.y; i++) {
        global const float *d = dy + (plane * (ulong)p + (ulong)i) * (ulong)q;
        for (int j = 0; j < q; j++) {
            float share = d[j] / (float)(R * R);
            int left = j * STRIDE - pad;
            for (int s = max(-left, 0); s < R && left + s < w; s++) {
                to[left + s] += share;
            }
        }
    }
}

/* y[i] = mean of plane i. Grid: planes. */
kernel void global_forward(global float *restrict y, global const float *restrict x, uint planes,
                           uint pixels) {
    uint i = (uint)get_global_id(0);
    if (i < planes) {
        global const float *plane = x + (ulong)i * pixels;
        float16 sum = (float16)0.0f;
        for (uint v = 0; v < pixels; v += 16) {
            sum += load16(plane + v, pixels - v, 0.0f);
        }
        y[i] = sum16(sum) / (float)pixels;
    }
}

/* dx[i][...] (+)= dy[i] / pixels. Grid: planes. */
kernel void global_backward(global float *restrict dx, global const float *restrict dy, uint planes,
                            uint pixels, uint add) {
    uint i = (uint)get_global_id(0);
    if (i < planes) {
        float16 share = (float16)(dy[i] / (float)pixels);
        for (uint v = 0; v < pixels; v += 16) {
            put16(share, dx + (ulong)i * pixels + v, pixels - v, add);
        }
    }
}
