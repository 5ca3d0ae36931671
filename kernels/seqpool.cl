/* One row of each sequence x [n, steps, columns]. `ids` [n, steps] are the token ids of the steps,
 * or NULL; a step whose id is `padding` does not count. Element 0 of x, y, ids, dx and dy is at
 * `<name>_first` of its buffer, element 0 of `saved` at saved_first.
 *
 * A forward saves for the backward, unless `saved` is NULL:
 *   mean          saved[s * steps + t] = the share of step t, 0 if it does not count
 *   max and ends  saved[s * columns + i] = the step that y[s][i] is from, -1 if no step counts
 *
 * Grid of a forward: one item for each 16 columns of a sample, one dimension for all samples.
 * Grid of a backward: one item for each 16 columns of a step, one dimension for all steps. */
#include "vec16.clh"

static bool counts(global const int *ids, ulong at, int padding) {
    return !ids || ids[at] != padding;
}

/* The first 16 columns of a sample also save the shares. */
kernel void seqpool_mean(global float *y, ulong y_first, global const float *x, ulong x_first,
                         global const int *ids, ulong ids_first, global float *saved,
                         ulong saved_first, uint n, uint steps, uint columns, int padding) {
    uint item = (uint)get_global_id(0);
    uint pieces = (columns + 15) / 16;
    uint s = item / pieces;
    uint i = item % pieces * 16;
    if (s >= n) {
        return;
    }
    ulong row = (ulong)s * steps;
    float16 sum = (float16)0.0f;
    uint counted = 0;
    for (uint t = 0; t < steps; t++) {
        if (counts(ids, ids_first + row + t, padding)) {
            sum += load16(x + x_first + (row + t) * columns + i, columns - i, 0.0f);
            counted++;
        }
    }
    float divisor = (float)max(counted, 1u);
    store16(sum / divisor, y + y_first + (ulong)s * columns + i, columns - i);
    for (uint t = 0; t < steps && saved && i == 0; t++) {
        bool some = counts(ids, ids_first + row + t, padding);
        saved[saved_first + row + t] = some ? 1.0f / divisor : 0.0f;
    }
}

/* dx[s][t] (+)= dy[s] saved[s][t], or dy[s] / steps without `saved`. */
kernel void seqpool_spread(global float *dx, ulong dx_first, global const float *dy, ulong dy_first,
                           global const float *saved, ulong saved_first, uint n, uint steps,
                           uint columns, uint add) {
    uint item = (uint)get_global_id(0);
    uint pieces = (columns + 15) / 16;
    uint row = item / pieces;
    uint i = item % pieces * 16;
    if (row >= n * steps) {
        return;
    }
    float share = saved ? saved[saved_first + row] : 1.0f / (float)steps;
    float16 d = load16(dy + dy_first + (ulong)(row / steps) * columns + i, columns - i, 0.0f);
    d = share > 0.0f ? d * share : (float16)0.0f;
    put16(d, dx + dx_first + (ulong)row * columns + i, columns - i, add);
}

/* The first of equal elements counts, and the first NaN before all else. */
kernel void seqpool_max(global float *y, ulong y_first, global const float *x, ulong x_first,
                        global const int *ids, ulong ids_first, global float *saved,
                        ulong saved_first, uint n, uint steps, uint columns, int padding) {
    uint item = (uint)get_global_id(0);
    uint pieces = (columns + 15) / 16;
    uint s = item / pieces;
    uint i = item % pieces * 16;
    if (s >= n) {
        return;
    }
    float16 most = (float16)0.0f;
    float16 from = (float16)-1.0f;
    for (uint t = 0; t < steps; t++) {
        ulong row = (ulong)s * steps + t;
        if (counts(ids, ids_first + row, padding)) {
            float16 v = load16(x + x_first + row * columns + i, columns - i, 0.0f);
            int16 better = (from < 0.0f) | (v > most) | ((v != v) & (most == most));
            most = select(most, v, better);
            from = select(from, (float16)(float)t, better);
        }
    }
    store16(most, y + y_first + (ulong)s * columns + i, columns - i);
    if (saved) {
        store16(from, saved + saved_first + (ulong)s * columns + i, columns - i);
    }
}

/* The first step that counts, or the last one. */
kernel void seqpool_end(global float *y, ulong y_first, global const float *x, ulong x_first,
                        global const int *ids, ulong ids_first, global float *saved,
                        ulong saved_first, uint n, uint steps, uint columns, int padding,
                        uint last) {
    uint item = (uint)get_global_id(0);
    uint pieces = (columns + 15) / 16;
    uint s = item / pieces;
    uint i = item % pieces * 16;
    if (s >= n) {
        return;
    }
    ulong row = (ulong)s * steps;
    int from = -1;
    for (uint k = 0; k < steps && from < 0; k++) {
        uint t = last ? steps - 1 - k : k;
        from = counts(ids, ids_first + row + t, padding) ? (int)t : -1;
    }
    float16 v = (float16)0.0f;
    if (from >= 0) {
        v = load16(x + x_first + (row + (ulong)from) * columns + i, columns - i, 0.0f);
    }
    store16(v, y + y_first + (ulong)s * columns + i, columns - i);
    if (saved) {
        store16((float16)(float)from, saved + saved_first + (ulong)s * columns + i, columns - i);
    }
}

/* dx[s][t][i] (+)= dy[s][i] for the step that y[s][i] is from, otherwise 0. */
kernel void seqpool_place(global float *dx, ulong dx_first, global const float *dy, ulong dy_first,
                          global const float *saved, ulong saved_first, uint n, uint steps,
                          uint columns, uint add) {
    uint item = (uint)get_global_id(0);
    uint pieces = (columns + 15) / 16;
    uint row = item / pieces;
    uint i = item % pieces * 16;
    if (row >= n * steps) {
        return;
    }
    ulong at = (ulong)(row / steps) * columns + i;
    float16 d = load16(dy + dy_first + at, columns - i, 0.0f);
    float16 from = load16(saved + saved_first + at, columns - i, -1.0f);
    d = select((float16)0.0f, d, from == (float)(row % steps));
    put16(d, dx + dx_first + (ulong)row * columns + i, columns - i, add);
}
