/* Convolutions of groups of a few channels, without matrix products; and the gradient of x from
 * columns (col2im).
 *
 * A work-group copies a part of a plane with its padding into local memory (the tile), so the loops
 * over the taps need no tests for borders and compute LANES results at once. Offsets in elements.
 *
 *   R, S        height and width of the kernel; DILATION_Y, _X: distance of its taps
 *   STEP_Y, _X  pixels of the tile between two results: the stride of a forward
 *   UP_Y, _X    the tile has zeros between the pixels: the stride, for the gradient of x, which is
 *               the correlation of dy, spread in this way, with the rotated kernel (TURNED)
 *   LANES       results at once */
#ifndef R
#define R 3
#define S 3
#endif
#ifndef STEP_Y
#define STEP_Y 1
#define STEP_X 1
#endif
#ifndef UP_Y
#define UP_Y 1
#define UP_X 1
#endif
#ifndef DILATION_Y
#define DILATION_Y 1
#define DILATION_X 1
#endif
#ifndef TURNED
#define TURNED 0
#endif
#include "lanes.clh"

/* tile[t][u] = pixel ((t + top) / UP_Y, (u + left) / UP_X) of the plane if it is divisible and
 * exists, otherwise 0; t < tile_h, u < tile_w. */
static void fill_tile(local float *restrict tile, global const float *restrict plane, int h, int w,
                      int top, int left, int tile_h, int tile_w) {
    for (int t = 0; t < tile_h; t++) {
        local float *row = tile + t * tile_w;
        int y = t + top;
        bool exists = y >= 0 && y % UP_Y == 0 && y / UP_Y < h;
        global const float *from = plane + y / UP_Y * w;
        int u = 0;
#if UP_X == 1
        if (exists) {
            int first = clamp(-left, 0, tile_w);
            int end = clamp(w - left, first, tile_w);
            for (; u < first; u++) {
                row[u] = 0.0f;
            }
            for (; u + LANES <= end; u += LANES) {
                VSTORE(VLOAD(0, from + u + left), 0, row + u);
            }
            for (; u < end; u++) {
                row[u] = from[u + left];
            }
        }
#endif
        for (; u + LANES <= tile_w; u += LANES) {
            VSTORE((VEC)0.0f, 0, row + u);
        }
        for (; u < tile_w; u++) {
            row[u] = 0.0f;
        }
#if UP_X > 1
        for (int x = left > 0 ? (left + UP_X - 1) / UP_X : 0;
             exists && x < w && x * UP_X - left < tile_w; x++) {
            row[x * UP_X - left] = from[x];
        }
#endif
    }
}

/* p[0], p[STEP_X], p[2 STEP_X] ...; of step 2 it reads 2 LANES elements. */
static VEC load_steps(local const float *p) {
#if STEP_X == 1
    return VLOAD(0, p);
#elif STEP_X == 2
    return (VEC)(VLOAD(0, p).even, VLOAD(0, p + LANES).even);
#else
    float lane[LANES];
    for (int l = 0; l < LANES; l++) {
        lane[l] = p[l * STEP_X];
    }
    return VLOAD(0, lane);
#endif
}

/* out[image][o][i][j] = bias[o] (0 without) + sum over the channels c of its group and the taps of
 * weight * tile_c[i STEP_Y + r DILATION_Y][j STEP_X + s DILATION_X]; added to `out` if `add`.
 *
 *   out     [n, outs, h_out, w_out]; a group of channels has og of the outs
 *   source  [n, sources, h, w]; a group has sg of the sources
 *   weight  [outs, sg, R, S], or if TURNED [sources, og, R, S]
 *
 * Tile row 0 is row -pad_y of the source spread by UP_Y; columns alike. Grid: (strips of `strip`
 * rows of out, outs, n), groups of one. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
correlate(global float *restrict out, ulong out_first, global const float *restrict source,
          ulong source_first, global const float *restrict weight,
          global const float *restrict bias, uint og, uint sg, int h_out, int w_out, int h, int w,
          int pad_y, int pad_x, int strip, int tile_w, uint add, uint relu,
          local float *restrict tile) {
    uint o = (uint)get_group_id(1);
    uint outs = (uint)get_num_groups(1);
    ulong image = get_group_id(2);
    uint group = o / og;
    int row_first = (int)get_group_id(0) * strip;
    int rows = min(strip, h_out - row_first);
    global float *to =
        out + out_first + ((image * outs + o) * (ulong)h_out + (ulong)row_first) * (ulong)w_out;
    for (uint c = 0; c < sg; c++) {
        ulong channel = image * (outs / og * sg) + group * sg + c;
#if TURNED
        global const float *taps = weight + ((ulong)(group * sg + c) * og + o % og) * (R * S);
#else
        global const float *taps = weight + ((ulong)o * sg + c) * (R * S);
#endif
        fill_tile(tile, source + source_first + channel * (ulong)(h * w), h, w,
                  row_first * STEP_Y - pad_y, -pad_x,
                  (rows - 1) * STEP_Y + (R - 1) * DILATION_Y + 1, tile_w);
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < w_out; j += LANES) {
                global float *at = to + i * w_out + j;
                VEC sum = (VEC)(bias ? bias[o] : 0.0f);
                if (add || c > 0) {
                    sum = load_lanes(at, w_out - j);
                }
                for (int tap = 0; tap < R * S; tap++) {
                    int r = tap / S * DILATION_Y;
                    int s = tap % S * DILATION_X;
                    sum += taps[TURNED ? R * S - 1 - tap : tap] *
                           load_steps(tile + (i * STEP_Y + r) * tile_w + j * STEP_X + s);
                }
                sum = relu && c + 1 == sg ? select(sum, (VEC)0.0f, sum <= 0.0f) : sum;
                store_lanes(sum, at, w_out - j);
            }
        }
    }
}

/* part[part_first + (chunk K CG + k CG + c) R S + r S + s] = sum over a chunk of `images` samples
 * of dy[k][i][j] * tile_c[i STEP_Y + r DILATION_Y][j STEP_X + s DILATION_X].
 * x [n, K / kg cg, h, w], dy [n, K, p, q]. Grid: (chunks, K * CG, 1), groups of one. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
correlate_weight(global float *restrict part, ulong part_first, global const float *restrict dy,
                 ulong dy_first, global const float *restrict x, ulong x_first, uint n, uint images,
                 uint kg, uint cg, int p, int q, int h, int w, int pad_y, int pad_x, int strip,
                 int tile_w, local float *restrict tile) {
    uint item = (uint)get_group_id(1);
    uint items = (uint)get_num_groups(1);
    uint chunk = (uint)get_group_id(0);
    uint k = item / cg;
    uint outs = items / cg;
    uint channel = k / kg * cg + item % cg;
    uint end = min((chunk + 1) * images, n);
    VEC sum[R * S];
    for (int tap = 0; tap < R * S; tap++) {
        sum[tap] = (VEC)0.0f;
    }
    for (ulong image = chunk * images; image < end; image++) {
        global const float *plane =
            x + x_first + (image * (outs / kg * cg) + channel) * (ulong)(h * w);
        global const float *d = dy + dy_first + (image * outs + k) * (ulong)(p * q);
        for (int first = 0; first < p; first += strip) {
            int rows = min(strip, p - first);
            fill_tile(tile, plane, h, w, first * STEP_Y - pad_y, -pad_x,
                      (rows - 1) * STEP_Y + (R - 1) * DILATION_Y + 1, tile_w);
            for (int i = 0; i < rows; i++) {
                for (int j = 0; j < q; j += LANES) {
                    VEC v = load_lanes(d + (first + i) * q + j, q - j);
                    for (int tap = 0; tap < R * S; tap++) {
                        int r = tap / S * DILATION_Y;
                        int s = tap % S * DILATION_X;
                        sum[tap] +=
                            v * load_steps(tile + (i * STEP_Y + r) * tile_w + j * STEP_X + s);
                    }
                }
            }
        }
    }
    for (int tap = 0; tap < R * S; tap++) {
        float lane[LANES];
        VSTORE(sum[tap], 0, lane);
        float total = 0.0f;
        for (int l = 0; l < LANES; l++) {
            total += lane[l];
        }
        part[part_first + ((ulong)chunk * items + item) * (R * S) + (ulong)tap] = total;
    }
}

/* dx (+)= for each pixel the sum of the columns into which im2col has copied it, in the order r, s.
 *
 *   columns  [C R S, images p q], from columns_first on
 *   dx       from dx_first on; image 0 of the grid is image_first, and of the `channels` only
 *            [channel_first, + count) are written
 *
 * STEP_Y and STEP_X are the stride. Grid: one item for each of the images * count * h rows, so no
 * two items write the same element. */
kernel void gather_columns(global float *restrict dx, ulong dx_first,
                           global const float *restrict columns, ulong columns_first, uint rows,
                           uint images, uint image_first, uint channels, uint channel_first,
                           uint count, int h, int w, int p, int q, int pad_y, int pad_x, uint add) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    int yy = (int)(row % (uint)h);
    uint c = row / (uint)h % count;
    uint image = row / (uint)h / count;
    ulong plane = (ulong)(image_first + image) * channels + channel_first + c;
    global float *to = dx + dx_first + (plane * (ulong)h + (ulong)yy) * (ulong)w;
    ulong pixels = (ulong)(p * q);
    for (int i = 0; i < w && !add; i++) {
        to[i] = 0.0f;
    }
    for (int r = 0; r < R; r++) {
        int t = yy + pad_y - r * DILATION_Y;
        if (t < 0 || t % STEP_Y != 0 || t / STEP_Y >= p) {
            continue;
        }
        for (int s = 0; s < S; s++) {
            int left = s * DILATION_X - pad_x;
            int first = left < 0 ? (-left + STEP_X - 1) / STEP_X : 0;
            int end = left < w ? min(q, (w - 1 - left) / STEP_X + 1) : 0;
            ulong line = (((ulong)c * R + (ulong)r) * S + (ulong)s) * images + image;
            global const float *from =
                columns + columns_first + line * pixels + (ulong)(t / STEP_Y * q);
            for (int j = first; j < end; j++) {
                to[j * STEP_X + left] += from[j];
            }
        }
    }
}
