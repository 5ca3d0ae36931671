/* How the values of a tensor are spread, in the buckets that TensorBoard's histograms have.
 *
 * source  tensorflow/core/lib/histogram/histogram.cc: limits at 1e-12, each 1.1 times the one
 * before up to 1e20, then the largest double; the same below 0, and 0 itself. Bucket i has the
 *         values from limit i - 1 on that lie below limit i */
#ifndef RP_RECORD_HISTOGRAM_H
#define RP_RECORD_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { RP_HISTOGRAM_SIDE = 774, RP_HISTOGRAM_BUCKETS = 2 * RP_HISTOGRAM_SIDE + 3 };

/* Zeros: nothing was added yet. */
typedef struct {
    uint64_t count;                    /* of finite values: only they are in what follows */
    double min, max, sum, sum_squares; /* 0 where there is none */
    uint64_t bucket[RP_HISTOGRAM_BUCKETS];
    uint64_t nan, infinite;
} rp_histogram;

void rp_histogram_limits(double limit[RP_HISTOGRAM_BUCKETS]);
/* Adds `count` values that need not be aligned. `limit`: of rp_histogram_limits(). */
void rp_histogram_add(rp_histogram *histogram, const double limit[RP_HISTOGRAM_BUCKETS],
                      const void *floats, size_t count);

#endif
