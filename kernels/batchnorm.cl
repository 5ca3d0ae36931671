/* Batch normalisation over samples and pixels of each channel; x [n, channels, pixels].
 *
 * Every sum has two levels: over a chunk by one work-group, then over the chunks of a channel by
 * one work-item, so the order depends only on the shapes. A chunk is `images` samples by `piece`
 * pixels (a multiple of 16, or all pixels); chunk k of a channel is image group k / pieces, piece k
 * % pieces.
 *
 * Kernels named *_columns are for pixels == 1, where neighbours in memory are channels. A work-item
 * processes 16 channels and `images` rows, which are its chunk.
 *
 *   stats  [c] = mean, [channels + c] = 1 / sqrt(variance + eps): saved, or in evaluation the first
 *          part of the workspace
 *   work   the workspace: stats [2 channels], coef [3 channels], partial sums
 *   coef   [c], [channels + c], [2 channels + c] = a, b, d of dx = a dy + b (x - mean) + d
 *
 * source  Ioffe & Szegedy 2015; the combination of chunks: Chan, Golub, LeVeque 1983 */
#ifndef WG
#define WG 1
#endif
#include "vec16.clh"

/* This item's share of its group's chunk: image rows, and 16-wide columns of the piece. The group's
 * WG items are arranged in `lanes` columns (a power of two) and WG / lanes rows. */
typedef struct {
    uint channel, chunk;
    uint row, row_end, row_step;
    uint v, v_end, v_step; /* pixels */
    float count;           /* elements of the whole chunk */
} tile;

static tile tile_here(uint n, uint pixels, uint images, uint piece, uint lanes) {
    uint item = (uint)get_local_id(0);
    uint pieces = (pixels + piece - 1) / piece;
    uint chunk = (uint)get_group_id(0);
    uint row = chunk / pieces * images;
    uint row_end = min(row + images, n);
    uint first = chunk % pieces * piece;
    uint first_end = min(first + piece, pixels);
    return (tile){.channel = (uint)get_group_id(1),
                  .chunk = chunk,
                  .row = row + item / lanes,
                  .row_end = row_end,
                  .row_step = WG / lanes,
                  .v = first + item % lanes * 16,
                  .v_end = first_end,
                  .v_step = lanes * 16,
                  .count = (float)((row_end - row) * (first_end - first))};
}

#define COEF(work) ((work) + 2 * channels)
#define PART(work) ((work) + 5 * channels)
#define FOR_ROWS(t) for (uint r = (t).row; r < (t).row_end; r += (t).row_step)
#define FOR_PIXELS(t) for (uint v = (t).v; v < (t).v_end; v += (t).v_step)
#define RUN(t) (((ulong)r * channels + (t).channel) * pixels)

/* PART[(channel * chunks + chunk) * 3] = count, mean, sum of (x - mean)^2 of the chunk.
 * Two passes over a chunk that the cache holds; the second also corrects the mean's rounding.
 * Grid: (chunks * WG, channels), local (WG, 1). */
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
moments(global float *work, global const float *x, ulong x_first, uint n, uint channels,
        uint pixels, uint images, uint piece, uint lanes) {
    local float scratch[WG];
    x += x_first;
    tile t = tile_here(n, pixels, images, piece, lanes);
    float16 sums = (float16)0.0f;
    FOR_ROWS(t) {
        FOR_PIXELS(t) {
            sums += load16(x + RUN(t) + v, t.v_end - v, 0.0f);
        }
    }
    float mean = group_sum(sum16(sums), scratch) / t.count;
    float16 rest = (float16)0.0f;
    float16 squares = (float16)0.0f;
    FOR_ROWS(t) {
        FOR_PIXELS(t) {
            float16 d = load16(x + RUN(t) + v, t.v_end - v, mean) - mean;
            rest += d;
            squares += d * d;
        }
    }
    float left = group_sum(sum16(rest), scratch);
    float square = group_sum(sum16(squares), scratch);
    if (get_local_id(0) == 0) {
        global float *to = PART(work) + (t.channel * (uint)get_num_groups(0) + t.chunk) * 3;
        to[0] = t.count;
        to[1] = mean + left / t.count;
        to[2] = square - left * left / t.count;
    }
}

/* moments for pixels == 1. Grid: (channels / 16, chunks). */
kernel void moments_columns(global float *work, global const float *x, ulong x_first, uint n,
                            uint channels, uint images) {
    uint c = (uint)get_global_id(0) * 16;
    x += x_first;
    uint chunk = (uint)get_global_id(1);
    if (c >= channels) {
        return;
    }
    uint row = chunk * images;
    uint row_end = min(row + images, n);
    float count = (float)(row_end - row);
    float16 sums = (float16)0.0f;
    for (uint r = row; r < row_end; r++) {
        sums += load16(x + (ulong)r * channels + c, channels - c, 0.0f);
    }
    float16 mean = sums / count;
    float16 rest = (float16)0.0f;
    float16 squares = (float16)0.0f;
    for (uint r = row; r < row_end; r++) {
        float16 d = load16(x + (ulong)r * channels + c, channels - c, 0.0f) - mean;
        rest += d;
        squares += d * d;
    }
    float means[16], square[16];
    vstore16(mean + rest / count, 0, means);
    vstore16(squares - rest * rest / count, 0, square);
    for (uint i = 0; i < 16 && c + i < channels; i++) {
        global float *to = PART(work) + ((c + i) * (uint)get_global_size(1) + chunk) * 3;
        to[0] = count;
        to[1] = means[i];
        to[2] = square[i];
    }
}

/* With momentum 1 the old value is dropped, even if it is not finite. */
static float moved(float running, float statistic, float momentum) {
    return momentum < 1.0f ? (1.0f - momentum) * running + momentum * statistic : statistic;
}

/* Combines chunks to stats, and updates the running statistics:
 *   DIRECT    running = (1 - momentum) * running + momentum * statistic, the variance unbiased; a
 *             single element has no variance, so running_var is unchanged
 *   DEFERRED  merges the batch's mean, sum of squares and count into step_* [channels]
 *   KEEP      leaves them unchanged
 * Statistics that are not finite change nothing: the gradient may be finite, since 1 / stddev is 0.
 * Grid: one item for each channel. */
#define DIRECT 0
#define DEFERRED 1
#define KEEP 2
kernel void combine(global float *stats, global float *running_mean, global float *running_var,
                    global float *step_mean, global float *step_square, global float *step_count,
                    global const float *work, uint channels, uint chunks, float eps, float momentum,
                    uint mode) {
    uint c = (uint)get_global_id(0);
    if (c >= channels) {
        return;
    }
    global const float *from = PART(work) + c * chunks * 3;
    float origin = from[1];
    float count = 0.0f;
    float shift = 0.0f;
    for (uint k = 0; k < chunks; k++) {
        count += from[3 * k];
        shift += from[3 * k] * (from[3 * k + 1] - origin);
    }
    float mean = origin + shift / count;
    float square = 0.0f;
    for (uint k = 0; k < chunks; k++) {
        float d = from[3 * k + 1] - mean;
        square += from[3 * k + 2] + from[3 * k] * d * d;
    }
    stats[c] = mean;
    stats[channels + c] = 1.0f / sqrt(square / count + eps);
    if (!isfinite(mean) || !isfinite(square)) {
        return;
    }
    if (mode == DIRECT) {
        running_mean[c] = moved(running_mean[c], mean, momentum);
        if (count > 1.0f) {
            running_var[c] = moved(running_var[c], square / (count - 1.0f), momentum);
        }
    } else if (mode == DEFERRED) {
        float before = step_count[c];
        float total = before + count;
        float d = mean - step_mean[c];
        step_mean[c] += d * (count / total);
        step_square[c] += square + d * d * (before * (count / total));
        step_count[c] = total;
    }
}

/* End of a step in DEFERRED mode: updates the running statistics with the whole step's, with the
 * biased variance, and zeroes step_*. Grid: one item for each channel. */
kernel void commit(global float *running_mean, global float *running_var, global float *step_mean,
                   global float *step_square, global float *step_count, uint channels,
                   float momentum) {
    uint c = (uint)get_global_id(0);
    if (c >= channels || step_count[c] == 0.0f) {
        return;
    }
    running_mean[c] = moved(running_mean[c], step_mean[c], momentum);
    if (step_count[c] > 1.0f) {
        float variance = step_square[c] / step_count[c];
        running_var[c] = moved(running_var[c], variance, momentum);
    }
    step_mean[c] = 0.0f;
    step_square[c] = 0.0f;
    step_count[c] = 0.0f;
}

/* Computes stats for evaluation. Grid: one item for each channel. */
kernel void stats_of_running(global float *stats, global const float *running_mean,
                             global const float *running_var, uint channels, float eps) {
    uint c = (uint)get_global_id(0);
    if (c < channels) {
        stats[c] = running_mean[c];
        stats[channels + c] = 1.0f / sqrt(running_var[c] + eps);
    }
}

/* y = (x - mean) * invstd * weight + bias. Grid: as moments. */
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
normalise(global float *y, ulong y_first, global const float *x, ulong x_first,
          global const float *stats, global const float *weight, global const float *bias, uint n,
          uint channels, uint pixels, uint images, uint piece, uint lanes) {
    y += y_first;
    x += x_first;
    tile t = tile_here(n, pixels, images, piece, lanes);
    float mean = stats[t.channel];
    float scale = stats[channels + t.channel] * weight[t.channel];
    float shift = bias[t.channel];
    FOR_ROWS(t) {
        FOR_PIXELS(t) {
            float16 d = load16(x + RUN(t) + v, t.v_end - v, 0.0f) - mean;
            store16(d * scale + shift, y + RUN(t) + v, t.v_end - v);
        }
    }
}

/* Grid: as moments_columns. */
kernel void normalise_columns(global float *y, ulong y_first, global const float *x, ulong x_first,
                              global const float *stats, global const float *weight,
                              global const float *bias, uint n, uint channels, uint images) {
    y += y_first;
    x += x_first;
    uint c = (uint)get_global_id(0) * 16;
    uint row = (uint)get_global_id(1) * images;
    if (c >= channels) {
        return;
    }
    uint left = channels - c;
    float16 mean = load16(stats + c, left, 0.0f);
    float16 scale = load16(stats + channels + c, left, 0.0f) * load16(weight + c, left, 0.0f);
    float16 shift = load16(bias + c, left, 0.0f);
    for (uint r = row; r < min(row + images, n); r++) {
        ulong at = (ulong)r * channels + c;
        store16((load16(x + at, left, 0.0f) - mean) * scale + shift, y + at, left);
    }
}

/* PART[(channel * chunks + chunk) * 2] = sum of dy, sum of dy * (x - mean). Grid: as moments. */
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gradient_sums(global float *work, global const float *dy, ulong dy_first, global const float *x,
              ulong x_first, global const float *stats, uint n, uint channels, uint pixels,
              uint images, uint piece, uint lanes) {
    local float scratch[WG];
    dy += dy_first;
    x += x_first;
    tile t = tile_here(n, pixels, images, piece, lanes);
    float mean = stats[t.channel];
    float16 sums = (float16)0.0f;
    float16 products = (float16)0.0f;
    FOR_ROWS(t) {
        FOR_PIXELS(t) {
            float16 d = load16(dy + RUN(t) + v, t.v_end - v, 0.0f);
            sums += d;
            products += d * (load16(x + RUN(t) + v, t.v_end - v, mean) - mean);
        }
    }
    float sum = group_sum(sum16(sums), scratch);
    float product = group_sum(sum16(products), scratch);
    if (get_local_id(0) == 0) {
        global float *to = PART(work) + (t.channel * (uint)get_num_groups(0) + t.chunk) * 2;
        to[0] = sum;
        to[1] = product;
    }
}

/* Grid: as moments_columns. */
kernel void gradient_sums_columns(global float *work, global const float *dy, ulong dy_first,
                                  global const float *x, ulong x_first, global const float *stats,
                                  uint n, uint channels, uint images) {
    dy += dy_first;
    x += x_first;
    uint c = (uint)get_global_id(0) * 16;
    uint chunk = (uint)get_global_id(1);
    if (c >= channels) {
        return;
    }
    uint left = channels - c;
    float16 mean = load16(stats + c, left, 0.0f);
    float16 sums = (float16)0.0f;
    float16 products = (float16)0.0f;
    for (uint r = chunk * images; r < min((chunk + 1) * images, n); r++) {
        ulong at = (ulong)r * channels + c;
        float16 d = load16(dy + at, left, 0.0f);
        sums += d;
        products += d * (load16(x + at, left, 0.0f) - mean);
    }
    float sum[16], product[16];
    vstore16(sums, 0, sum);
    vstore16(products, 0, product);
    for (uint i = 0; i < 16 && i < left; i++) {
        global float *to = PART(work) + ((c + i) * (uint)get_global_size(1) + chunk) * 2;
        to[0] = sum[i];
        to[1] = product[i];
    }
}

/* Combines chunks to dw (+)= sum dy * xhat, db (+)= sum dy (both NULL: not requested), and to coef.
 * count = n * pixels. batch 0: the statistics were constants (evaluation). Grid: one item for each
 * channel. */
kernel void gradient_combine(global float *work, global float *dw, global float *db,
                             global const float *stats,
                             global const float *weight, uint channels, uint chunks, float count,
                             uint batch, uint add) {
    uint c = (uint)get_global_id(0);
    if (c >= channels) {
        return;
    }
    global const float *from = PART(work) + c * chunks * 2;
    global float *coef = COEF(work);
    float sum = 0.0f;
    float product = 0.0f;
    for (uint k = 0; k < chunks; k++) {
        sum += from[2 * k];
        product += from[2 * k + 1];
    }
    float invstd = stats[channels + c];
    product *= invstd;
    if (dw) {
        dw[c] = (add ? dw[c] : 0.0f) + product;
        db[c] = (add ? db[c] : 0.0f) + sum;
    }
    float a = weight[c] * invstd;
    coef[c] = a;
    coef[channels + c] = batch ? -a * invstd * (product / count) : 0.0f;
    coef[2 * channels + c] = batch ? -a * (sum / count) : 0.0f;
}

/* dx (+)= a dy + b (x - mean) + d. Grid: as moments. */
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gradient(global float *dx, ulong dx_first, global const float *dy, ulong dy_first,
         global const float *x, ulong x_first, global const float *stats, global const float *work,
         uint n, uint channels, uint pixels, uint images, uint piece, uint lanes, uint add) {
    dx += dx_first;
    dy += dy_first;
    x += x_first;
    tile t = tile_here(n, pixels, images, piece, lanes);
    float mean = stats[t.channel];
    float a = COEF(work)[t.channel];
    float b = COEF(work)[channels + t.channel];
    float d = COEF(work)[2 * channels + t.channel];
    FOR_ROWS(t) {
        FOR_PIXELS(t) {
            uint left = t.v_end - v;
            float16 centred = load16(x + RUN(t) + v, left, 0.0f) - mean;
            float16 out = a * load16(dy + RUN(t) + v, left, 0.0f) + b * centred + d;
            put16(out, dx + RUN(t) + v, left, add);
        }
    }
}

/* Grid: as moments_columns. */
kernel void gradient_columns(global float *dx, ulong dx_first, global const float *dy,
                             ulong dy_first, global const float *x, ulong x_first,
                             global const float *stats, global const float *work, uint n,
                             uint channels, uint images, uint add) {
    dx += dx_first;
    dy += dy_first;
    x += x_first;
    uint c = (uint)get_global_id(0) * 16;
    uint row = (uint)get_global_id(1) * images;
    if (c >= channels) {
        return;
    }
    uint left = channels - c;
    float16 mean = load16(stats + c, left, 0.0f);
    float16 a = load16(COEF(work) + c, left, 0.0f);
    float16 b = load16(COEF(work) + channels + c, left, 0.0f);
    float16 d = load16(COEF(work) + 2 * channels + c, left, 0.0f);
    for (uint r = row; r < min(row + images, n); r++) {
        ulong at = (ulong)r * channels + c;
        float16 centred = load16(x + at, left, 0.0f) - mean;
        put16(a * load16(dy + at, left, 0.0f) + b * centred + d, dx + at, left, add);
    }
}

/* Frozen layer: dx (+)= dy / sqrt(variance + eps) * weight. Grid: as moments. */
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
scale_gradient(global float *dx, ulong dx_first, global const float *dy, ulong dy_first,
               global const float *stats, global const float *weight, uint n, uint channels,
               uint pixels, uint images, uint piece, uint lanes, uint add) {
    dx += dx_first;
    dy += dy_first;
    tile t = tile_here(n, pixels, images, piece, lanes);
    float a = weight[t.channel] * stats[channels + t.channel];
    FOR_ROWS(t) {
        FOR_PIXELS(t) {
            uint left = t.v_end - v;
            put16(a * load16(dy + RUN(t) + v, left, 0.0f), dx + RUN(t) + v, left, add);
        }
    }
}

/* Grid: as moments_columns. */
kernel void scale_gradient_columns(global float *dx, ulong dx_first, global const float *dy,
                                   ulong dy_first, global const float *stats,
                                   global const float *weight, uint n, uint channels, uint images,
                                   uint add) {
    dx += dx_first;
    dy += dy_first;
    uint c = (uint)get_global_id(0) * 16;
    uint row = (uint)get_global_id(1) * images;
    if (c >= channels) {
        return;
    }
    uint left = channels - c;
    float16 a = load16(weight + c, left, 0.0f) * load16(stats + channels + c, left, 0.0f);
    for (uint r = row; r < min(row + images, n); r++) {
        ulong at = (ulong)r * channels + c;
        put16(a * load16(dy + at, left, 0.0f), dx + at, left, add);
    }
}
