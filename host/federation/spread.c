#include "federation/spread.h"

#include <math.h>
#include <stdlib.h>

static int by_size(const void *left, const void *right) {
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

static double mean_of(const double *value, uint32_t count) {
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += value[i];
    }
    return sum / count;
}

rp_spread rp_spread_of(double *value, uint32_t count) {
    const double none = (double)NAN;
    rp_spread out = {.mean = none, .worst_decile = none, .deviation = none};
    double squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (isfinite(value[i])) {
            value[out.count++] = value[i];
        }
    }
    if (out.count == 0) {
        return out;
    }
    qsort(value, out.count, sizeof *value, by_size);
    out.mean = mean_of(value, out.count);
    out.worst_decile = mean_of(value, (out.count + 9) / 10);
    for (uint32_t i = 0; i < out.count; i++) {
        squares += (value[i] - out.mean) * (value[i] - out.mean);
    }
    out.deviation = sqrt(squares / out.count);
    return out;
}
