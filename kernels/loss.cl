/* Losses: value and gradient in one pass. One work-item for each row: a sample, or a target of one.
 * cross_entropy_pixels has outputs in another order.
 *
 * result[3 * (result_first + i)] = loss of row i, [.. + 1] = 1 if the arg-max is its class, [.. +
 * 2] = 1 if it counts. dy may be NULL. Row 0 of y and dy is at element y_first and dy_first.
 * grad_scale = 1 / rows of the step. With `ignores` a target that is `ignore` does not count: its
 * loss and gradient are 0; after the `rows` targets of each sample follows how many of the step
 * count. */
#include "vec16.clh"

static void put_result(global float *result, uint row, float loss, bool correct, bool counts) {
    result[3 * (ulong)row] = loss;
    result[3 * (ulong)row + 1] = correct ? 1.0f : 0.0f;
    result[3 * (ulong)row + 2] = counts ? 1.0f : 0.0f;
}

static void fill_zero(global float *row, uint outputs) {
    for (uint j = 0; j < outputs; j += 16) {
        store16((float16)0.0f, row + j, outputs - j);
    }
}

static float row_most(global const float *row, uint outputs) {
    float16 top = (float16)(-INFINITY);
    for (uint j = 0; j < outputs; j += 16) {
        top = fmax(top, load16(row + j, outputs - j, -INFINITY));
    }
    float8 top8 = fmax(top.lo, top.hi);
    float4 top4 = fmax(top8.lo, top8.hi);
    float2 top2 = fmax(top4.lo, top4.hi);
    return fmax(top2.x, top2.y);
}

/* sum exp(y - most) */
static float row_sum(global const float *row, uint outputs, float most) {
    float16 sums = (float16)0.0f;
    for (uint j = 0; j < outputs; j += 16) {
        sums += exp(load16(row + j, outputs - j, -INFINITY) - most);
    }
    return sum16(sums);
}

/* Whether element `wanted` is the first of the largest. */
static bool is_first_most(global const float *row, int wanted, float most) {
    bool correct = row[wanted] == most;
    for (int j = 0; correct && j < wanted; j++) {
        correct = row[j] != most;
    }
    return correct;
}

/* mean of (most - y) */
static float mean_below(global const float *row, uint outputs, float most) {
    float16 sums = (float16)0.0f;
    for (uint j = 0; j < outputs; j += 16) {
        sums += most - load16(row + j, outputs - j, most);
    }
    return sum16(sums) / (float)outputs;
}

/* loss = log(sum exp(y - max)) + max - y[class]; dy = (softmax(y) - onehot) * grad_scale. A class
 * outside [0, outputs) gives NaN. The arg-max is the first of equal maxima. With `smooth` the
 * target is (1 - smooth) onehot + smooth / outputs, and the loss is mixed in the same way. */
kernel void cross_entropy(global float *result, global float *dy, ulong dy_first,
                          global const float *y, ulong y_first, global const int *target, uint n,
                          uint outputs, uint result_first, float grad_scale, float smooth,
                          uint rows, uint ignores, int ignore) {
    uint i = (uint)get_global_id(0);
    if (i >= n) {
        return;
    }
    global const float *row = y + y_first + (ulong)i * outputs;
    global const int *own = target + (ulong)(i / rows) * (rows + ignores);
    int wanted = own[i % rows];
    if (ignores && wanted == ignore) {
        put_result(result, result_first + i, 0.0f, false, false);
        if (dy) {
            fill_zero(dy + dy_first + (ulong)i * outputs, outputs);
        }
        return;
    }
    if (ignores) {
        grad_scale = 1.0f / (float)own[rows];
    }
    bool known = wanted >= 0 && (uint)wanted < outputs;
    float most = row_most(row, outputs);
    float sum = row_sum(row, outputs, most);
    bool correct = known && !isnan(sum) && is_first_most(row, wanted, most);
    float loss = known ? log(sum) + (most - row[wanted]) : NAN;
    if (smooth > 0.0f) {
        loss = (1.0f - smooth) * loss + smooth * (log(sum) + mean_below(row, outputs, most));
    }
    put_result(result, result_first + i, loss, correct, true);

    if (dy) {
        global float *drow = dy + dy_first + (ulong)i * outputs;
        float scale = known ? grad_scale / sum : NAN;
        float share = smooth * grad_scale / (float)outputs;
        for (uint j = 0; j < outputs; j += 16) {
            float16 e = exp(load16(row + j, outputs - j, -INFINITY) - most);
            store16(smooth > 0.0f ? e * scale - share : e * scale, drow + j, outputs - j);
        }
        if (known) {
            drow[wanted] -= smooth > 0.0f ? (1.0f - smooth) * grad_scale : grad_scale;
        }
    }
}

/* Targets are rows t of probabilities, smoothed in the same way: loss = sum t (log(sum exp(y -
 * max)) + max - y); dy = (softmax(y) sum t - t) * grad_scale. Correct: y and t have the same
 * arg-max. */
kernel void cross_entropy_soft(global float *result, global float *dy, ulong dy_first,
                               global const float *y, ulong y_first, global const float *target,
                               uint n, uint outputs, uint result_first, float grad_scale,
                               float smooth, uint rows, uint ignores, int ignore) {
    uint i = (uint)get_global_id(0);
    if (i >= n) {
        return;
    }
    global const float *row = y + y_first + (ulong)i * outputs;
    global const float *wanted = target + (ulong)i * outputs;
    float keep = 1.0f - smooth;
    float share = smooth / (float)outputs;
    float most = row_most(row, outputs);
    float sum = row_sum(row, outputs, most);
    float likely = row_most(wanted, outputs);
    float16 below = (float16)0.0f;
    float16 weights = (float16)0.0f;
    for (uint j = 0; j < outputs; j += 16) {
        uint left = outputs - j;
        float16 t = load16(wanted + j, left, 0.0f) * keep;
        below += t * (most - load16(row + j, left, most));
        weights += t;
    }
    float weight = sum16(weights) + smooth;
    float loss = weight * log(sum) + sum16(below);
    if (smooth > 0.0f) {
        loss += smooth * mean_below(row, outputs, most);
    }
    int best = 0;
    while ((uint)best + 1 < outputs && wanted[best] != likely) {
        best++;
    }
    bool correct = !isnan(loss) && is_first_most(row, best, most);
    put_result(result, result_first + i, loss, correct, true);

    if (dy) {
        global float *drow = dy + dy_first + (ulong)i * outputs;
        float scale = weight * grad_scale / sum;
        for (uint j = 0; j < outputs; j += 16) {
            uint left = outputs - j;
            float16 e = exp(load16(row + j, left, -INFINITY) - most);
            float16 t = load16(wanted + j, left, 0.0f) * keep + share;
            store16(e * scale - t * grad_scale, drow + j, left);
        }
    }
}

/* loss = mean over outputs of (y - t)^2; dy = 2 (y - t) / outputs * grad_scale; `smooth` must be
 * 0. */
kernel void mse(global float *result, global float *dy, ulong dy_first, global const float *y,
                ulong y_first, global const float *target, uint n, uint outputs, uint result_first,
                float grad_scale, float smooth, uint rows, uint ignores, int ignore) {
    uint i = (uint)get_global_id(0);
    if (i >= n) {
        return;
    }
    ulong at = (ulong)i * outputs;
    float scale = 2.0f * grad_scale / (float)outputs;
    float16 sums = (float16)0.0f;
    for (uint j = 0; j < outputs; j += 16) {
        uint left = outputs - j;
        float16 d = load16(y + y_first + at + j, left, 0.0f) - load16(target + at + j, left, 0.0f);
        sums += d * d;
        if (dy) {
            store16(d * scale, dy + dy_first + at + j, left);
        }
    }
    put_result(result, result_first + i, sum16(sums) / (float)outputs, false, true);
}

/* p[0 .. 16), of which only the first `left` exist; all further lanes are -1. */
static int16 load_classes(global const int *p, uint left) {
    int lane[16];
    for (uint i = 0; i < 16; i++) {
        lane[i] = i < left ? p[i] : -1;
    }
    return vload16(0, lane);
}

/* Sums of 16 pixels of an image y [outputs, pixels], and what their gradient needs. */
typedef struct {
    float16 most, sum, below, wanted; /* wanted: the output of the target's class */
    int16 best;                       /* the first class of the largest output */
} pixel_sums;

static pixel_sums sum_pixels(global const float *y, uint pixels, uint left, uint outputs,
                             int16 target) {
    pixel_sums s = {.most = load16(y, left, 0.0f), .best = 0};
    for (uint c = 1; c < outputs; c++) {
        float16 v = load16(y + (ulong)c * pixels, left, 0.0f);
        s.best = select(s.best, (int16)(int)c, v > s.most);
        s.most = fmax(s.most, v);
    }
    s.sum = s.below = s.wanted = (float16)0.0f;
    for (uint c = 0; c < outputs; c++) {
        float16 v = load16(y + (ulong)c * pixels, left, 0.0f);
        s.sum += exp(v - s.most);
        s.below += s.most - v;
        s.wanted = select(s.wanted, v, target == (int)c);
    }
    return s;
}

/* As cross_entropy() for images y [outputs, pixels] with a target for each pixel. One work-item
 * for 16 pixels of a sample. result[3 * (result_first + sample * pieces + piece)]: its sums of
 * losses, of right targets and of targets that count. grad_scale = 1 / pixels of the step. */
kernel void cross_entropy_pixels(global float *result, global float *dy, ulong dy_first,
                                 global const float *y, ulong y_first, global const int *target,
                                 uint n, uint outputs, uint result_first, float grad_scale,
                                 float smooth, uint pixels, uint ignores, int ignore) {
    const uint pieces = (pixels + 15) / 16;
    const uint item = (uint)get_global_id(0);
    const uint sample = item / pieces;
    const uint first = item % pieces * 16;
    const uint left = pixels - first;
    if (sample >= n) {
        return;
    }
    const ulong at = (ulong)sample * outputs * pixels + first;
    global const int *own = target + (ulong)sample * (pixels + ignores);
    const int16 wanted = load_classes(own + first, left);
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    int16 counts = lane < (int)min(left, 16u);
    if (ignores) {
        counts &= wanted != ignore;
        grad_scale = 1.0f / (float)own[pixels];
    }
    const pixel_sums s = sum_pixels(y + y_first + at, pixels, left, outputs, wanted);
    const int16 known = (wanted >= 0) & (wanted < (int)outputs);
    float16 loss = select((float16)NAN, log(s.sum) + (s.most - s.wanted), known);
    if (smooth > 0.0f) {
        loss = (1.0f - smooth) * loss + smooth * (log(s.sum) + s.below / (float)outputs);
    }
    const int16 correct = counts & (s.best == wanted) & isequal(s.sum, s.sum);
    global float *sums = result + 3 * ((ulong)result_first + item);
    sums[0] = sum16(select((float16)0.0f, loss, counts));
    sums[1] = sum16(select((float16)0.0f, (float16)1.0f, correct));
    sums[2] = sum16(select((float16)0.0f, (float16)1.0f, counts));

    if (dy) {
        const float16 scale = select((float16)NAN, grad_scale / s.sum, known);
        const float share = smooth * grad_scale / (float)outputs;
        for (uint c = 0; c < outputs; c++) {
            const ulong plane = (ulong)c * pixels;
            float16 d = exp(load16(y + y_first + at + plane, left, 0.0f) - s.most) * scale - share;
            d -= select((float16)0.0f, (float16)((1.0f - smooth) * grad_scale), wanted == (int)c);
            store16(select((float16)0.0f, d, counts), dy + dy_first + at + plane, left);
        }
    }
}

/* result of sample i = sums over its rows, in order. One work-item for each sample. */
kernel void sum_rows(global float *result, global const float *row_result, uint n, uint rows,
                     uint result_first) {
    uint i = (uint)get_global_id(0);
    if (i >= n) {
        return;
    }
    float sums[3] = {0.0f, 0.0f, 0.0f};
    for (uint r = 0; r < rows; r++) {
        global const float *row = row_result + 3 * ((ulong)i * rows + r);
        sums[0] += row[0];
        sums[1] += row[1];
        sums[2] += row[2];
    }
    global float *to = result + 3 * (ulong)(result_first + i);
    to[0] = sums[0];
    to[1] = sums[1];
    to[2] = sums[2];
}

/* Counts, for images y [outputs, pixels] with a target for each pixel, the pixels of each class
 * that have it as target and as answer, and those that have it as one of the two; the answer is the
 * first of the largest outputs, and a pixel with a NaN has none. overlap[2 * outputs *
 * (result_first + sample)]: the first count of each class, then the second; both are 0 before.
 * Pixels that do not count are left out. One work-item for each pixel. */
kernel void class_overlap(global uint *overlap, global const float *y, ulong y_first,
                          global const int *target, uint n, uint outputs, uint result_first,
                          uint pixels, uint ignores, int ignore) {
    const uint sample = (uint)get_global_id(0) / pixels;
    const uint pixel = (uint)get_global_id(0) % pixels;
    if (sample >= n) {
        return;
    }
    const int wanted = target[(ulong)sample * (pixels + ignores) + pixel];
    if (wanted < 0 || (uint)wanted >= outputs || (ignores && wanted == ignore)) {
        return;
    }
    global const float *of = y + y_first + (ulong)sample * outputs * pixels + pixel;
    float most = of[0];
    bool known = !isnan(most);
    int best = 0;
    for (uint c = 1; c < outputs; c++) {
        const float v = of[(ulong)c * pixels];
        known = known && !isnan(v);
        best = v > most ? (int)c : best;
        most = fmax(most, v);
    }
    global uint *both = overlap + 2 * (ulong)outputs * (result_first + sample);
    global uint *either = both + outputs;
    atomic_inc(&either[wanted]);
    if (known && best == wanted) {
        atomic_inc(&both[wanted]);
    } else if (known) {
        atomic_inc(&either[best]);
    }
}
