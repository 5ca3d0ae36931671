/* Normalisation of each sample over groups of its channels; x [n, channels, pixels].
 *
 * Group g of a sample is the `wide` channels from g * wide on: wide * pixels contiguous floats,
 * which one work-item processes. There is separate code for pixels == 1, where neighbours in memory
 * are channels, so weight and bias are also vectors.
 *
 * stats[2 (s * groups + g)] = mean, [.. + 1] = 1 / sqrt(variance + eps), from sample stats_first on
 *
 * With RMS the mean counts as 0, so the scale is 1 / sqrt(mean of x^2 + eps). There is no bias, and
 * stats[s * groups + g] is the scale.
 *
 * source  Wu & He 2018 (groupnorm); Ba, Kiros & Hinton 2016 (layernorm: one group); Zhang &
 *         Sennrich 2019 (rmsnorm) */
#include "vec16.clh"

#define CHANNELS (groups * wide)
#define RUN ((ulong)item * wide * pixels) /* item = s * groups + g */

#ifdef RMS

static float2 load_stats(global const float *stats, ulong index) {
    return (float2)(0.0f, stats[index]);
}

static void store_stats(float2 m, global float *stats, ulong index) {
    stats[index] = m.y;
}

static float16 load_bias(global const float *bias, uint left) {
    return (float16)0.0f;
}

/* (0, 1 / sqrt(mean of x^2 + eps)) */
static float2 moments_of(global const float *x, uint count, float eps) {
    float16 squares = (float16)0.0f;
    for (uint v = 0; v < count; v += 16) {
        float16 value = load16(x + v, count - v, 0.0f);
        squares += value * value;
    }
    return (float2)(0.0f, 1.0f / sqrt(sum16(squares) / (float)count + eps));
}

#else

static float2 load_stats(global const float *stats, ulong index) {
    return vload2(index, stats);
}

static void store_stats(float2 m, global float *stats, ulong index) {
    vstore2(m, index, stats);
}

static float16 load_bias(global const float *bias, uint left) {
    return load16(bias, left, 0.0f);
}

static float mean_of(global const float *x, uint count) {
    float16 sums = (float16)0.0f;
    for (uint v = 0; v < count; v += 16) {
        sums += load16(x + v, count - v, 0.0f);
    }
    return sum16(sums) / (float)count;
}

/* (mean, 1 / sqrt(variance + eps)). The second pass also corrects the rounding of the mean. */
static float2 moments_of(global const float *x, uint count, float eps) {
    float mean = mean_of(x, count);
    float16 rest = (float16)0.0f;
    float16 squares = (float16)0.0f;
    for (uint v = 0; v < count; v += 16) {
        float16 d = load16(x + v, count - v, mean) - mean;
        rest += d;
        squares += d * d;
    }
    float left = sum16(rest);
    float square = sum16(squares) - left * left / (float)count;
    return (float2)(mean + left / (float)count, 1.0f / sqrt(square / (float)count + eps));
}

#endif

/* y = (x - mean) * invstd * weight + bias. stats may be NULL. Grid: n * groups items. */
kernel void group_forward(global float *y, ulong y_first, global const float *x, ulong x_first,
                          global float *stats, uint stats_first, global const float *weight,
                          global const float *bias, uint n, uint groups, uint wide, uint pixels,
                          float eps) {
    uint item = (uint)get_global_id(0);
    if (item >= n * groups) {
        return;
    }
    uint first = item % groups * wide;
    x += x_first + RUN;
    y += y_first + RUN;
    float2 m = moments_of(x, wide * pixels, eps);
    if (stats) {
        store_stats(m, stats, (ulong)stats_first * groups + item);
    }
    if (pixels == 1) {
        for (uint c = 0; c < wide; c += 16) {
            float16 scale = load16(weight + first + c, wide - c, 0.0f) * m.y;
            float16 shift = load_bias(bias + first + c, wide - c);
            store16((load16(x + c, wide - c, 0.0f) - m.x) * scale + shift, y + c, wide - c);
        }
        return;
    }
    for (uint c = 0; c < wide; c++, x += pixels, y += pixels) {
        float scale = weight[first + c] * m.y;
        float shift = load_bias(bias + first + c, 1).s0;
        for (uint v = 0; v < pixels; v += 16) {
            store16((load16(x + v, pixels - v, 0.0f) - m.x) * scale + shift, y + v, pixels - v);
        }
    }
}

/* (mean of dy w, mean of dy w xhat) over a group; the first is not needed with RMS and 0. */
static float2 gradient_means(global const float *dy, global const float *x,
                             global const float *weight, float2 m, uint wide, uint pixels) {
    float16 sums = (float16)0.0f;
    float16 products = (float16)0.0f;
    if (pixels == 1) {
        for (uint c = 0; c < wide; c += 16) {
            float16 d = load16(dy + c, wide - c, 0.0f) * load16(weight + c, wide - c, 0.0f);
            sums += d;
            products += d * (load16(x + c, wide - c, m.x) - m.x);
        }
    } else {
        for (uint c = 0; c < wide; c++, x += pixels, dy += pixels) {
            for (uint v = 0; v < pixels; v += 16) {
                float16 d = load16(dy + v, pixels - v, 0.0f) * weight[c];
                sums += d;
                products += d * (load16(x + v, pixels - v, m.x) - m.x);
            }
        }
    }
    float count = (float)(wide * pixels);
#ifdef RMS
    return (float2)(0.0f, sum16(products) * m.y / count);
#else
    return (float2)(sum16(sums) / count, sum16(products) * m.y / count);
#endif
}

/* dx (+)= invstd (dy w - mean of dy w - xhat * mean of dy w xhat). Grid: n * groups items. */
kernel void group_backward(global float *dx, ulong dx_first, global const float *dy, ulong dy_first,
                           global const float *x, ulong x_first, global const float *stats,
                           uint stats_first, global const float *weight, uint n, uint groups,
                           uint wide, uint pixels, uint add) {
    uint item = (uint)get_global_id(0);
    if (item >= n * groups) {
        return;
    }
    weight += item % groups * wide;
    dx += dx_first + RUN;
    dy += dy_first + RUN;
    x += x_first + RUN;
    float2 m = load_stats(stats, (ulong)stats_first * groups + item);
    float2 g = gradient_means(dy, x, weight, m, wide, pixels);
    float slope = m.y * m.y * g.y; /* factor of x - mean */
    float shift = m.y * g.x;
    if (pixels == 1) {
        for (uint c = 0; c < wide; c += 16) {
            uint left = wide - c;
            float16 d = load16(dy + c, left, 0.0f) * load16(weight + c, left, 0.0f) * m.y;
            put16(d - (load16(x + c, left, 0.0f) - m.x) * slope - shift, dx + c, left, add);
        }
        return;
    }
    for (uint c = 0; c < wide; c++, x += pixels, dy += pixels, dx += pixels) {
        float scale = weight[c] * m.y;
        for (uint v = 0; v < pixels; v += 16) {
            uint left = pixels - v;
            float16 d = load16(dy + v, left, 0.0f) * scale;
            put16(d - (load16(x + v, left, 0.0f) - m.x) * slope - shift, dx + v, left, add);
        }
    }
}

/* For chunks of `images` samples: work[chunk * channels + c] = sum of dy xhat; after these, for all
 * chunks, the sums of dy (not with RMS). The order of the sums depends only on the shapes. Grid:
 * (channels, chunks). */
kernel void parameter_planes(global float *work, global const float *dy, ulong dy_first,
                             global const float *x, ulong x_first, global const float *stats,
                             uint stats_first, uint n, uint groups, uint wide, uint pixels,
                             uint images) {
    uint c = (uint)get_global_id(0);
    uint chunk = (uint)get_global_id(1);
    uint chunks = (n + images - 1) / images;
    if (c >= CHANNELS || chunk >= chunks) {
        return;
    }
    float16 sums = (float16)0.0f;
    float16 products = (float16)0.0f;
    for (uint s = chunk * images; s < min((chunk + 1) * images, n); s++) {
        ulong at = ((ulong)s * CHANNELS + c) * pixels;
        float2 m = load_stats(stats, (ulong)(stats_first + s) * groups + c / wide);
        float16 here = (float16)0.0f;
        for (uint v = 0; v < pixels; v += 16) {
            float16 d = load16(dy + dy_first + at + v, pixels - v, 0.0f);
            sums += d;
            here += d * (load16(x + x_first + at + v, pixels - v, m.x) - m.x);
        }
        products += here * m.y;
    }
    work[(ulong)chunk * CHANNELS + c] = sum16(products);
#ifndef RMS
    work[(ulong)(chunks + chunk) * CHANNELS + c] = sum16(sums);
#endif
}

/* For pixels == 1. Grid: (channels / 16 rounded up, chunks). */
kernel void parameter_columns(global float *work, global const float *dy, ulong dy_first,
                              global const float *x, ulong x_first, global const float *stats,
                              uint stats_first, uint n, uint groups, uint wide, uint pixels,
                              uint images) {
    uint c = (uint)get_global_id(0) * 16;
    uint chunk = (uint)get_global_id(1);
    uint chunks = (n + images - 1) / images;
    if (c >= CHANNELS || chunk >= chunks) {
        return;
    }
    uint left = CHANNELS - c;
    float16 sums = (float16)0.0f;
    float16 products = (float16)0.0f;
    for (uint s = chunk * images; s < min((chunk + 1) * images, n); s++) {
        ulong at = (ulong)s * CHANNELS + c;
        ulong row = (ulong)(stats_first + s) * groups;
        float16 mean, scale;
        if (groups == 1) {
            float2 m = load_stats(stats, row);
            mean = (float16)m.x;
            scale = (float16)m.y;
        } else {
            float means[16], scales[16];
            for (uint i = 0; i < 16; i++) {
                float2 m = i < left ? load_stats(stats, row + (c + i) / wide) : (float2)0.0f;
                means[i] = m.x;
                scales[i] = m.y;
            }
            mean = vload16(0, means);
            scale = vload16(0, scales);
        }
        float16 d = load16(dy + dy_first + at, left, 0.0f);
        sums += d;
        products += d * (load16(x + x_first + at, left, 0.0f) - mean) * scale;
    }
    store16(products, work + (ulong)chunk * CHANNELS + c, left);
#ifndef RMS
    store16(sums, work + (ulong)(chunks + chunk) * CHANNELS + c, left);
#endif
}
