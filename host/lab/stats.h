/* Statistics of a comparison. Pure functions. A value that is not finite is counted as absent and
 * left out of means. */
#ifndef RP_LAB_STATS_H
#define RP_LAB_STATS_H

#include <stdint.h>

/* NaN: the mean of no value, the deviation of one. */
typedef struct {
    uint32_t count; /* finite values */
    uint32_t absent;
    double mean;
    double deviation; /* sample deviation, n - 1 */
} rp_stats;

rp_stats rp_stats_of(const double *value, uint32_t count);

/* Differences value[i] - base[i] for all i with two finite values. */
typedef struct {
    uint32_t count;
    double mean, deviation;
    double low, high; /* 95 % interval of the mean; NaN if count < 2 */
} rp_stats_paired;

/* source  paired t interval, mean +- t(0.975, n - 1) * deviation / sqrt(n) */
rp_stats_paired rp_stats_pair(const double *value, const double *base, uint32_t count);

/* Student's t: the 97.5 % quantile, to 0.0005; degrees >= 1.
 * source  table to 30 degrees; above, Cornish-Fisher's expansion (Abramowitz and Stegun 26.7.5) */
double rp_stats_t975(uint32_t degrees);

/* -1: the interval is below zero, 1: above, 0: it contains zero or is missing. */
int rp_stats_sign(const rp_stats_paired *paired);

#endif
