/* Losses: value and gradient in one pass. One work-item per sample.
 *
 * result[2 * (result_first + i)] = loss of sample i, [.. + 1] = 1 when the arg-max is its class.
 * dy may be NULL. grad_scale = 1 / samples of the step. Sample 0 of y and dy is at element y_first
 * and dy_first. */
#include "vec16.clh"

/* loss = log(sum exp(y - max)) + max - y[class]; dy = (softmax(y) - onehot) * grad_scale.
 * A class outside [0, outputs) gives NaN. The first of equal maxima is the arg-max. */
kernel void cross_entropy(global float *result, global float *dy, ulong dy_first,
                          global const float *y, ulong y_first, global const int *target, uint n,
                          uint outputs, uint result_first, float grad_scale) {
    uint i = (uint)get_global_id(0);
    if (i >= n) {
        return;
    }
    global const float *row = y + y_first + (ulong)i * outputs;
    int wanted = target[i];
    bool known = wanted >= 0 && (uint)wanted < outputs;

    float16 top = (float16)(-INFINITY);
    for (uint j = 0; j < outputs; j += 16) {
        top = fmax(top, load16(row + j, outputs - j, -INFINITY));
    }
    float8 top8 = fmax(top.lo, top.hi);
    float4 top4 = fmax(top8.lo, top8.hi);
    float2 top2 = fmax(top4.lo, top4.hi);
    float most = fmax(top2.x, top2.y);

    float16 sums = (float16)0.0f;
    for (uint j = 0; j < outputs; j += 16) {
        sums += exp(load16(row + j, outputs - j, -INFINITY) - most);
    }
    float sum = sum16(sums);

    bool correct = known && !isnan(sum) && row[known ? wanted : 0] == most;
    for (int j = 0; correct && j < wanted; j++) {
        correct = row[j] != most;
    }
    float loss = known ? log(sum) + (most - row[wanted]) : NAN;
    result[2 * (result_first + i)] = loss;
    result[2 * (result_first + i) + 1] = correct ? 1.0f : 0.0f;

    if (dy) {
        global float *drow = dy + dy_first + (ulong)i * outputs;
        float scale = known ? grad_scale / sum : NAN;
        for (uint j = 0; j < outputs; j += 16) {
            float16 e = exp(load16(row + j, outputs - j, -INFINITY) - most);
            store16(e * scale, drow + j, outputs - j);
        }
        if (known) {
            drow[wanted] -= grad_scale;
        }
    }
}

/* loss = mean over outputs of (y - t)^2; dy = 2 (y - t) / outputs * grad_scale. */
kernel void mse(global float *result, global float *dy, ulong dy_first, global const float *y,
                ulong y_first, global const float *target, uint n, uint outputs, uint result_first,
                float grad_scale) {
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
    result[2 * (result_first + i)] = sum16(sums) / (float)outputs;
    result[2 * (result_first + i) + 1] = 0.0f;
}
