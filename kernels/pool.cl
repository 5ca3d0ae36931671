/* Pooling of planes; x [planes, h, w], y [planes, p, q], windows of R x S every STRIDE_Y rows and
 * STRIDE_X columns. The pad_y rows and pad_x columns around the image are ignored (max) or count as
 * zero (average). The last windows may reach over the padding's end (ceil_mode). Element 0 of each
 * tensor is at `<name>_first` of its buffer.
 *
 * Row kernels have one work-item for each row. It computes LANES windows at once if they are inside
 * the image, otherwise one at a time. A backward item gathers its row of dx from all windows that
 * cover it, in the order p, q, so no two items write the same element. */
#ifndef R
#define R 2
#define S 2
#endif
#ifndef STRIDE_Y
#define STRIDE_Y 2
#define STRIDE_X 2
#endif
#ifndef INDEX
#define INDEX uchar /* holds R * S - 1 */
#endif
/* By what the sum of a window is divided: 0 its size, 1 its cells in the image and its padding
 * (another number only for windows that reach over the end), 2 its cells in the image. */
#ifndef COUNT
#define COUNT 0
#endif
#include "lanes.clh"
#include "vec16.clh"

#define INDICES CAT(INDEX, LANES)
#define TO_INDICES CAT(convert_, INDICES)
#define TO_INTS CAT(convert_, VECINT)
#if STRIDE_X == 2
#define READ (2 * LANES + ((S - 1) & ~1)) /* elements of a row that LANES windows read */
#else
#define READ ((LANES - 1) * STRIDE_X + S)
#endif
/* windows of 2 x 2, side by side */
#define TILES (R == 2 && S == 2 && STRIDE_Y == 2 && STRIDE_X == 2)

/* Windows [first, end) that are completely inside a row of `size` pixels. */
static int2 inside(int size, int count, int pad) {
    int end = size - S + pad < 0 ? 0 : (size - S + pad) / STRIDE_X + 1;
    int first = (pad + STRIDE_X - 1) / STRIDE_X;
    return (int2)(min(first, count), clamp(end, min(first, count), count));
}

/* Start of the next LANES windows of a row that can be read at once, or -1. It is j, or earlier, so
 * that the last windows of the row are computed twice instead of one at a time. */
static int lanes_from(int j, int2 in, int w, int pad) {
    int last = min(in.y - LANES, (w + pad - READ) / STRIDE_X);
    return j >= in.y || w + pad < READ || last < in.x || last + LANES <= j ? -1 : min(j, last);
}

/* Column s of LANES windows; the first window begins at x. */
static VEC load_column(global const float *x, int s) {
#if STRIDE_X == 1
    return VLOAD(0, x + s);
#elif STRIDE_X == 2
    VEC a = VLOAD(0, x + (s & ~1));
    VEC b = VLOAD(0, x + (s & ~1) + LANES);
    return s & 1 ? (VEC)(a.odd, b.odd) : (VEC)(a.even, b.even);
#else
    float lane[LANES];
    for (int l = 0; l < LANES; l++) {
        lane[l] = x[l * STRIDE_X + s];
    }
    return VLOAD(0, lane);
#endif
}

/* ---- max ------------------------------------------------------------------------------------ */

/* One window with tests for borders. As in PyTorch the first of equal elements counts, and the last
 * NaN. */
static void max_one(global float *y, global INDEX *arg, global const float *x, int h, int w,
                    int top, int left) {
    float most = -INFINITY;
    int at = max(-top, 0) * S + max(-left, 0);
    for (int r = max(-top, 0); r < R && top + r < h; r++) {
        for (int s = max(-left, 0); s < S && left + s < w; s++) {
            float v = x[(top + r) * w + left + s];
            bool better = v > most || v != v;
            most = better ? v : most;
            at = better ? r * S + s : at;
        }
    }
    *y = most;
    if (arg) {
        *arg = (INDEX)at;
    }
}

/* LANES windows with all columns inside the image, and rows [r_first, r_end). */
static void max_lanes(global float *y, global INDEX *arg, global const float *x, int w, int r_first,
                      int r_end) {
    VEC most = (VEC)-INFINITY;
    VECINT at = (VECINT)(r_first * S);
    for (int r = 0; r < R; r++) {
        if (r < r_first || r >= r_end) {
            continue;
        }
        for (int s = 0; s < S; s++) {
            VEC v = load_column(x + r * w, s);
            VECINT better = (v > most) | (v != v);
            most = select(most, v, better);
            at = select(at, (VECINT)(r * S + s), better);
        }
    }
    VSTORE(most, 0, y);
    if (arg) {
        VSTORE(TO_INDICES(at), 0, arg);
    }
}

/* arg: NULL if no backward follows. */
kernel void max_forward(global float *restrict y, ulong y_first, global INDEX *restrict arg,
                        ulong arg_first, global const float *restrict x, ulong x_first, uint rows,
                        int h, int w, int p, int q, int pad_y, int pad_x) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    int top = (int)(row % (uint)p) * STRIDE_Y - pad_y;
    global const float *plane = x + x_first + (ulong)(row / (uint)p) * (ulong)(h * w);
    global float *out = y + y_first + (ulong)row * (ulong)q;
    global INDEX *index = arg ? arg + arg_first + (ulong)row * (ulong)q : 0;
    int2 in = inside(w, q, pad_x);
    int j = 0;
    while (j < q) {
        int from = j < in.x ? -1 : lanes_from(j, in, w, pad_x);
        if (from >= 0) {
            max_lanes(out + from, index ? index + from : 0,
                      plane + top * w + from * STRIDE_X - pad_x, w, max(-top, 0), min(R, h - top));
            j = from + LANES;
        } else {
            max_one(out + j, index ? index + j : 0, plane, h, w, top, j * STRIDE_X - pad_x);
            j++;
        }
    }
}

/* The rows of windows [first, end) that cover row `yy` of the image. */
static int2 covering(int yy, int p, int pad) {
    int first = yy + pad - R + 1;
    return (int2)(first <= 0 ? 0 : (first + STRIDE_Y - 1) / STRIDE_Y,
                  min(p, (yy + pad) / STRIDE_Y + 1));
}

static void clear_row(global float *row, int w, uint add) {
    for (int i = 0; i < w && !add; i++) {
        row[i] = 0.0f;
    }
}

#if TILES
/* Non-overlapping windows: writes both columns of LANES windows to a row of dx. */
static void put_pairs(global float *dx, VEC left, VEC right, uint add) {
    VEC low;
    VEC high;
    low.even = left.lo;
    low.odd = right.lo;
    high.even = left.hi;
    high.odd = right.hi;
    VSTORE(add ? VLOAD(0, dx) + low : low, 0, dx);
    VSTORE(add ? VLOAD(0, dx + LANES) + high : high, 0, dx + LANES);
}
#endif

kernel void max_backward(global float *restrict dx, ulong dx_first, global const float *restrict dy,
                         ulong dy_first, global const INDEX *restrict arg, ulong arg_first,
                         uint rows, int h, int w, int p, int q, int pad_y, int pad_x, uint add) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    int yy = (int)(row % (uint)h);
    ulong plane = row / (uint)h;
    global float *to = dx + dx_first + (ulong)row * (ulong)w;
    dy += dy_first;
    arg += arg_first;
    int2 over = covering(yy, p, pad_y);
    int done = 0; /* windows of the row */
#if TILES
    if (pad_y == 0 && pad_x == 0 && over.x < over.y) {
        ulong first = (plane * (ulong)p + (ulong)over.x) * (ulong)q;
        int whole = min(q, w / 2); /* windows that end inside of the row */
        int here = (yy - over.x * STRIDE_Y) * S;
        for (; done + LANES <= whole; done += LANES) {
            VEC d = VLOAD(0, dy + first + done);
            VECINT a = TO_INTS(VLOAD(0, arg + first + done));
            put_pairs(to + done * 2, select((VEC)0.0f, d, a == here),
                      select((VEC)0.0f, d, a == here + 1), add);
        }
    }
#endif
    clear_row(to + done * STRIDE_X, w - done * STRIDE_X, add);
    for (int i = over.x; i < over.y; i++) {
        global const float *d = dy + (plane * (ulong)p + (ulong)i) * (ulong)q;
        global const INDEX *a = arg + (plane * (ulong)p + (ulong)i) * (ulong)q;
        int here = (yy + pad_y - i * STRIDE_Y) * S;
        for (int j = done; j < q; j++) {
            int s = (int)a[j] - here;
            if (s >= 0 && s < S) {
                to[j * STRIDE_X - pad_x + s] += d[j];
            }
        }
    }
}

/* ---- average -------------------------------------------------------------------------------- */

/* By what the sum of the window at (top, left) is divided. */
static float cells(int top, int left, int h, int w, int pad_y, int pad_x) {
#if COUNT == 0
    return (float)(R * S);
#elif COUNT == 1
    return (float)((min(top + R, h + pad_y) - top) * (min(left + S, w + pad_x) - left));
#else
    return (float)((min(top + R, h) - max(top, 0)) * (min(left + S, w) - max(left, 0)));
#endif
}

kernel void average_forward(global float *restrict y, ulong y_first, global const float *restrict x,
                            ulong x_first, uint rows, int h, int w, int p, int q, int pad_y,
                            int pad_x) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    int top = (int)(row % (uint)p) * STRIDE_Y - pad_y;
    global const float *plane = x + x_first + (ulong)(row / (uint)p) * (ulong)(h * w);
    global float *out = y + y_first + (ulong)row * (ulong)q;
    int r_first = max(-top, 0);
    int r_end = min(R, h - top);
    int2 in = inside(w, q, pad_x);
    int j = 0;
    while (j < q) {
        int from = j < in.x ? -1 : lanes_from(j, in, w, pad_x);
        if (from >= 0) {
            VEC sum = (VEC)0.0f;
            for (int r = r_first; r < r_end; r++) {
                for (int s = 0; s < S; s++) {
                    sum += load_column(plane + (top + r) * w + from * STRIDE_X - pad_x, s);
                }
            }
            VSTORE(sum / cells(top, from * STRIDE_X - pad_x, h, w, pad_y, pad_x), 0, out + from);
            j = from + LANES;
        } else {
            int left = j * STRIDE_X - pad_x;
            float sum = 0.0f;
            for (int r = r_first; r < r_end; r++) {
                for (int s = max(-left, 0); s < S && left + s < w; s++) {
                    sum += plane[(top + r) * w + left + s];
                }
            }
            out[j++] = sum / cells(top, left, h, w, pad_y, pad_x);
        }
    }
}

kernel void average_backward(global float *restrict dx, ulong dx_first,
                             global const float *restrict dy, ulong dy_first, uint rows, int h,
                             int w, int p, int q, int pad_y, int pad_x, uint add) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    int yy = (int)(row % (uint)h);
    ulong plane = row / (uint)h;
    global float *to = dx + dx_first + (ulong)row * (ulong)w;
    dy += dy_first;
    int2 over = covering(yy, p, pad_y);
    int done = 0; /* windows of the row */
#if TILES
    if (pad_y == 0 && pad_x == 0 && over.x < over.y) {
        global const float *d = dy + (plane * (ulong)p + (ulong)over.x) * (ulong)q;
        float count = cells(over.x * STRIDE_Y, 0, h, w, pad_y, pad_x);
        int whole = min(q, w / 2); /* windows that end inside of the row */
        for (; done + LANES <= whole; done += LANES) {
            VEC share = VLOAD(0, d + done) / count;
            put_pairs(to + done * 2, share, share, add);
        }
    }
#endif
    clear_row(to + done * STRIDE_X, w - done * STRIDE_X, add);
    for (int i = over.x; i < over.y; i++) {
        global const float *d = dy + (plane * (ulong)p + (ulong)i) * (ulong)q;
        for (int j = done; j < q; j++) {
            int left = j * STRIDE_X - pad_x;
            float share = d[j] / cells(i * STRIDE_Y - pad_y, left, h, w, pad_y, pad_x);
            for (int s = max(-left, 0); s < S && left + s < w; s++) {
                to[left + s] += share;
            }
        }
    }
}

/* y[i] = mean of plane i. Grid: planes. */
kernel void global_forward(global float *restrict y, ulong y_first, global const float *restrict x,
                           ulong x_first, uint planes, uint pixels) {
    uint i = (uint)get_global_id(0);
    if (i < planes) {
        global const float *plane = x + x_first + (ulong)i * pixels;
        float16 sum = (float16)0.0f;
        for (uint v = 0; v < pixels; v += 16) {
            sum += load16(plane + v, pixels - v, 0.0f);
        }
        y[y_first + i] = sum16(sum) / (float)pixels;
    }
}

/* dx[i][...] (+)= dy[i] / pixels. Grid: planes. */
kernel void global_backward(global float *restrict dx, ulong dx_first,
                            global const float *restrict dy, ulong dy_first, uint planes,
                            uint pixels, uint add) {
    uint i = (uint)get_global_id(0);
    if (i < planes) {
        float16 share = (float16)(dy[dy_first + i] / (float)pixels);
        for (uint v = 0; v < pixels; v += 16) {
            put16(share, dx + dx_first + (ulong)i * pixels + v, pixels - v, add);
        }
    }
}
