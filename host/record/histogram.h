/* Histogram of the values of a tensor, in TensorBoard's buckets.
 *
 * source  tensorflow/core/lib/histogram/histogram.cc: limits from 1e-12 to 1e20, each 1.1 times the
 * one before, then the largest double; mirrored below 0, and 0 itself. Bucket i has the values v
 *         with limit[i - 1] <= v < limit[i] */
#ifndef RP_RECORD_HISTOGRAM_H
#define RP_RECORD_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { RP_HISTOGRAM_SIDE = 774, RP_HISTOGRAM_BUCKETS = 2 * RP_HISTOGRAM_SIDE + 3 };

/* All zeros: empty. */
typedef struct {
    uint64_t count;                    /* of finite values */
    double min, max, sum, sum_squares; /* of finite values; 0 without any */
    uint64_t bucket[RP_HISTOGRAM_BUCKETS];
    uint64_t nan, infinite;
} rp_histogram;

void rp_histogram_limits(double limit[RP_HISTOGRAM_BUCKETS]);
/* Adds `count` floats, which may be unaligned. `limit`: of rp_histogram_limits(). */
void rp_histogram_add(rp_histogram *histogram, const double limit[RP_HISTOGRAM_BUCKETS],
                      const void *floats, size_t count);

#endif
