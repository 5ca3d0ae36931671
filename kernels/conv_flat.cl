/* Convolutions of few channels whose result is as large as the image (stride 1, pad R / 2), on
 * devices with wide vectors (CPUs). No columns are packed.
 *
 * Every plane is first copied with a border of PAD zeros. Pixel (y, x) of a result is at t = y *
 * wide + x, wide = w + 2 PAD, and
 *
 *       out[t] = sum over the taps (r, s) of weight * padded[t + r * wide + s]
 *
 * holds for every t. So vectors may extend beyond the ends of rows, and the results in the 2 PAD
 * columns between two rows are dropped.
 *
 * R  size of the kernel, odd; everything else is an argument, because each build takes a second */
#include "gemm_tile.clh"
#include "vec16.clh"

#ifndef R
#define R 3
#endif
#define PAD (R / 2)
#define OUTS 8 /* results at once, of SPAN pixels each: 16 wide registers */
#define SPAN 32
#define PLANES (R > 3 ? 1 : 2) /* planes of x at once, for dw: R R sums each */

#define FOR_OUTS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

static uint plane_floats(uint h, uint w) {
    return (h + 2 * PAD) * (w + 2 * PAD);
}

static global float *put_zeros(global float *to, uint count) {
    for (uint i = 0; i < count; i += 16) {
        store16((float16)0.0f, to + i, count - i);
    }
    return to + count;
}

/* Plane p of padded = plane p of source [planes, h, w]. Grid: one item for each plane. */
kernel void pad_planes(global float *restrict work, ulong padded_first,
                       global const float *restrict source, ulong source_first, uint planes, uint h,
                       uint w) {
    const uint plane = (uint)get_global_id(0);
    if (plane >= planes) {
        return;
    }
    global float *to = work + padded_first + (ulong)plane * plane_floats(h, w);
    global const float *from = source + source_first + (ulong)plane * h * w;
    to = put_zeros(to, PAD * (w + 2 * PAD) + PAD);
    for (uint y = 0; y < h; y++) {
        for (uint x = 0; x < w; x += 16) {
            store16(load16(from + x, w - x, 0.0f), to + x, w - x);
        }
        to = put_zeros(to + w, 2 * PAD);
        from += w;
    }
    put_zeros(to, PAD * (w + 2 * PAD) - PAD);
}

/* taps[(block * sources + c) * R R + tap][o] = the weight from source c to result block * OUTS + o,
 * 0 after the last one. weight: [outs, sources, R R]; if turned, for the gradient of x where the
 * source is dy, [sources, outs, R R] with the taps in reverse order. Grid: (blocks, sources). */
kernel void pack_taps(global float *restrict work, ulong taps_first,
                      global const float *restrict weight, uint outs, uint turned) {
    const uint block = (uint)get_global_id(0);
    const uint c = (uint)get_global_id(1);
    const uint sources = (uint)get_global_size(1);
    global float *to = work + taps_first + ((ulong)block * sources + c) * (R * R * OUTS);
    for (uint tap = 0; tap < R * R; tap++) {
        for (uint o = 0; o < OUTS; o++) {
            const uint out = block * OUTS + o;
            const ulong at = turned ? ((ulong)c * outs + out) * (R * R) + (R * R - 1 - tap)
                                    : ((ulong)out * sources + c) * (R * R) + tap;
            to[tap * OUTS + o] = out < outs ? weight[at] : 0.0f;
        }
    }
}

/* SPAN results of OUTS channels; from[0] belongs to tap (0, 0) of the first result. Channel o is
 * written to lines[o * line]. */
static void correlate_span(local float *restrict lines, uint line,
                           global const float *restrict from, uint plane, uint wide,
                           global const float *restrict taps, uint sources, const float *start) {
#define BEGIN(o) float16 l##o = start[o], h##o = start[o];
    FOR_OUTS(BEGIN)
    for (uint c = 0; c < sources; c++) {
        for (uint r = 0; r < R; r++) {
#pragma unroll
            for (uint s = 0; s < R; s++) {
                const float16 left = vload16(0, from + r * wide + s);
                const float16 right = vload16(0, from + r * wide + s + 16);
#define STEP(o)                                                                                    \
    l##o = fma((float16)taps[o], left, l##o);                                                      \
    h##o = fma((float16)taps[o], right, h##o);
                FOR_OUTS(STEP)
                taps += OUTS;
            }
        }
        from += plane;
    }
#define END(o)                                                                                     \
    vstore16(l##o, 0, lines + o * line);                                                           \
    vstore16(h##o, 0, lines + o * line + 16);
    FOR_OUTS(END)
}

static void put_row(global float *to, local const float *from, uint count, uint add, uint relu) {
    for (uint j = 0; j < count; j += 16) {
        float16 sum = vload16(0, from + j);
        if (add) {
            sum += load16(to + j, count - j, 0.0f);
        }
        if (relu) {
            sum = select(sum, (float16)0.0f, sum <= 0.0f);
        }
        store16(sum, to + j, count - j);
    }
}

/* out[image][o] (+)= bias[o] (0 without) + sum over sources and taps, then relu.
 *
 *   out     [n, outs, h, w], from out_first on
 *   padded  [n, sources] planes, and taps as packed; both in work
 *   lines   OUTS times `line` floats, with room for `strip` rows and SPAN more
 *
 * Grid: (blocks of OUTS channels, n), groups of one. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
correlate_flat(global float *restrict out, ulong out_first, global const float *restrict work,
               ulong padded_first, ulong taps_first, global const float *restrict bias, uint outs,
               uint sources, uint h, uint w, uint strip, uint line, uint add, uint relu,
               local float *restrict lines) {
    const uint first = (uint)get_group_id(0) * OUTS;
    const ulong image = get_group_id(1);
    const uint wide = w + 2 * PAD;
    const uint plane = plane_floats(h, w);
    global const float *from = work + padded_first + image * sources * plane;
    global const float *taps = work + taps_first + (ulong)first * sources * (R * R);
    const uint live = min(outs - first, (uint)OUTS);
    float start[OUTS];
    for (uint o = 0; o < OUTS; o++) {
        start[o] = bias && o < live ? bias[first + o] : 0.0f;
    }
    for (uint y = 0; y < h; y += strip) {
        const uint rows = min(strip, h - y);
        for (uint t = 0; t < (rows - 1) * wide + w; t += SPAN) {
            correlate_span(lines + t, line, from + y * wide + t, plane, wide, taps, sources, start);
        }
        for (uint o = 0; o < live; o++) {
            global float *to = out + out_first + ((image * outs + first + o) * h + y) * w;
            for (uint i = 0; i < rows; i++) {
                put_row(to + i * w, lines + o * line + i * wide, w, add, relu);
            }
        }
    }
}

/* turned[(image blocks + block) pixels + pixel][k] = dy[image][16 block + k][pixel], 0 after the
 * last channel: the channels of a pixel are contiguous. dy [n, outs, pixels]. Grid: (blocks of 16
 * channels, n), groups of one. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
turn_planes(global float *restrict work, ulong turned_first, global const float *restrict dy,
            ulong dy_first, uint outs, uint pixels) {
    const uint block = (uint)get_group_id(0);
    const ulong image = get_group_id(1);
    const uint live = min(outs - block * 16, 16u);
    global const float *from = dy + dy_first + (image * outs + block * 16) * pixels;
    global float *to =
        work + turned_first + (image * get_num_groups(0) + block) * (ulong)pixels * 16;
    const uint whole = pixels - pixels % 16;
    for (uint pixel = 0; pixel < whole; pixel += 16) {
        float16 x[16];
#pragma unroll
        for (uint k = 0; k < 16; k++) {
            x[k] = k < live ? vload16(0, from + (ulong)k * pixels + pixel) : (float16)0.0f;
        }
        transpose16(x);
#pragma unroll
        for (uint i = 0; i < 16; i++, to += 16) {
            vstore16(x[i], 0, to);
        }
    }
    for (uint pixel = whole; pixel < pixels; pixel++, to += 16) {
        for (uint k = 0; k < 16; k++) {
            to[k] = k < live ? from[(ulong)k * pixels + pixel] : 0.0f;
        }
    }
}

/* part[part_first + ((chunk K + k) C + c) R R + r R + s] = sum over a chunk of `images` samples,
 * row after row, of dy[k][y][x] * padded[c][y + r][x + s]. dy is turned; both are in work, images
 * [0, n). Grid: (chunks, blocks of 16 channels of dy, blocks of PLANES channels of x), groups of
 * one. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
correlate_weight(global float *restrict work, ulong part_first, ulong turned_first, ulong x_first,
                 uint n, uint images, uint outs, uint sources, uint h, uint w) {
    const uint chunk = (uint)get_group_id(0);
    const uint block = (uint)get_group_id(1);
    const uint c = (uint)get_group_id(2) * PLANES;
    const uint end = min((chunk + 1) * images, n);
    const uint wide = w + 2 * PAD;
    const uint plane = plane_floats(h, w);
    float16 sum[PLANES][R][R];
#pragma unroll
    for (uint i = 0; i < PLANES * R * R; i++) {
        sum[i / (R * R)][i / R % R][i % R] = (float16)0.0f;
    }
    for (ulong image = chunk * images; image < end; image++) {
        global const float *d =
            work + turned_first + (image * get_num_groups(1) + block) * (ulong)(h * w) * 16;
        global const float *x = work + x_first + (image * sources + c) * plane;
        for (uint i = 0; i < h; i++, x += wide) {
            for (uint j = 0; j < w; j++, d += 16) {
                const float16 v = vload16(0, d);
#pragma unroll
                for (uint p = 0; p < PLANES; p++) {
#pragma unroll
                    for (uint tap = 0; tap < R * R; tap++) {
                        const float pixel =
                            x[min(p, sources - 1 - c) * plane + tap / R * wide + tap % R + j];
                        sum[p][tap / R][tap % R] = fma((float16)pixel, v, sum[p][tap / R][tap % R]);
                    }
                }
            }
        }
    }
    const uint live = min(outs - block * 16, 16u);
    global float *part = work + part_first + ((ulong)chunk * outs + block * 16) * sources * (R * R);
#pragma unroll
    for (uint i = 0; i < PLANES * R * R; i++) {
        const uint p = i / (R * R);
        const uint tap = i % (R * R);
        float each[16];
        vstore16(sum[p][tap / R][tap % R], 0, each);
        for (uint k = 0; k < live && c + p < sources; k++) {
            part[((ulong)k * sources + c + p) * (R * R) + tap] = each[k];
        }
    }
}
