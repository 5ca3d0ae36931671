/* Bias of planes, and its gradient: the sum of dy [n, channels, pixels] over samples and pixels. It
 * has two levels, chunks of `images` samples and then the chunks, so the order depends only on the
 * shapes. Partial sums are at part[part_first + chunk * channels + c]. */
#include "vec16.clh"

/* Grid: (channels, chunks). */
kernel void bias_planes(global float *part, ulong part_first, global const float *dy,
                        ulong dy_first, uint n, uint channels, uint pixels, uint images) {
    uint c = (uint)get_global_id(0);
    uint chunk = (uint)get_global_id(1);
    uint end = min((chunk + 1) * images, n);
    if (c >= channels || chunk * images >= n) {
        return;
    }
    float16 sum = (float16)0.0f;
    for (uint i = chunk * images; i < end; i++) {
        global const float *plane = dy + dy_first + ((ulong)i * channels + c) * pixels;
        for (uint v = 0; v < pixels; v += 16) {
            sum += load16(plane + v, pixels - v, 0.0f);
        }
    }
    part[part_first + (ulong)chunk * channels + c] = sum16(sum);
}

/* For pixels == 1. Grid: (channels / 16 rounded up, chunks). */
kernel void bias_columns(global float *part, ulong part_first, global const float *dy,
                         ulong dy_first, uint n, uint channels, uint pixels, uint images) {
    uint c = (uint)get_global_id(0) * 16;
    uint chunk = (uint)get_global_id(1);
    uint end = min((chunk + 1) * images, n);
    if (c >= channels || chunk * images >= n) {
        return;
    }
    float16 sum = (float16)0.0f;
    for (uint i = chunk * images; i < end; i++) {
        sum += load16(dy + dy_first + (ulong)i * channels + c, channels - c, 0.0f);
    }
    store16(sum, part + part_first + (ulong)chunk * channels + c, channels - c);
}

/* out[i] (+)= sum over the chunks of part[part_first + chunk * count + i].
 * Grid: one item per 16 elements. */
kernel void sum_parts(global float *out, global const float *part, ulong part_first, uint count,
                      uint chunks, uint add) {
    uint i = (uint)get_global_id(0) * 16;
    if (i < count) {
        float16 sum = (float16)0.0f;
        for (uint k = 0; k < chunks; k++) {
            sum += load16(part + part_first + (ulong)k * count + i, count - i, 0.0f);
        }
        put16(sum, out + i, count - i, add);
    }
}

/* y[i][c][...] = bias[c] for n samples of `channels` planes.
 * Grid: one item for each 16 pixels of a plane, one dimension for all planes. */
kernel void bias_fill(global float *y, ulong y_first, global const float *bias, uint n,
                      uint channels, uint pixels) {
    uint item = (uint)get_global_id(0);
    uint pieces = (pixels + 15) / 16;
    uint plane = item / pieces;
    uint i = item % pieces * 16;
    if (plane < n * channels) {
        store16((float16)bias[plane % channels], y + y_first + (ulong)plane * pixels + i,
                pixels - i);
    }
}
