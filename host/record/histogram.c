#include "record/histogram.h"

#include <float.h>
#include <math.h>
#include <string.h>

void rp_histogram_limits(double limit[RP_HISTOGRAM_BUCKETS]) {
    const uint32_t zero = RP_HISTOGRAM_SIDE + 1;
    double at = 1e-12;
    limit[zero] = 0;
    for (uint32_t i = 1; i <= RP_HISTOGRAM_SIDE; i++) {
        limit[zero + i] = at;
        limit[zero - i] = -at;
        at *= 1.1;
    }
    limit[0] = -DBL_MAX;
    limit[RP_HISTOGRAM_BUCKETS - 1] = DBL_MAX;
}

/* Index of the first limit above the value; every float is below the last limit. */
static uint32_t find_bucket(const double limit[RP_HISTOGRAM_BUCKETS], double value) {
    uint32_t first = 0;
    uint32_t last = RP_HISTOGRAM_BUCKETS - 1;
    while (first < last) {
        const uint32_t middle = first + (last - first) / 2;
        if (limit[middle] > value) {
            last = middle;
        } else {
            first = middle + 1;
        }
    }
    return first;
}

void rp_histogram_add(rp_histogram *histogram, const double limit[RP_HISTOGRAM_BUCKETS],
                      const void *floats, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float one;
        memcpy(&one, (const unsigned char *)floats + i * sizeof one, sizeof one);
        const double value = (double)one;
        if (!isfinite(value)) {
            *(isnan(value) ? &histogram->nan : &histogram->infinite) += 1;
            continue;
        }
        histogram->min = histogram->count == 0 || value < histogram->min ? value : histogram->min;
        histogram->max = histogram->count == 0 || value > histogram->max ? value : histogram->max;
        histogram->sum += value;
        histogram->sum_squares += value * value;
        histogram->bucket[find_bucket(limit, value)]++;
        histogram->count++;
    }
}
