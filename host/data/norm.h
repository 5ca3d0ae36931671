/* Normalisation: (x - mean) / deviation, by groups of consecutive values of a sample: the channels
 * of an image, the columns of a table.
 *
 * Bytes (k / 255) are normalised in floats, to the bit as a board does it. Any other values are
 * doubles until they are normalised, because a column far from zero has few values left as floats.
 *
 * source  torchvision's Normalize; measured: mean and deviation (of all samples, not n - 1) in
 *         doubles, joined sample by sample as Chan, Golub, LeVeque 1979 */
#ifndef RP_DATA_NORM_H
#define RP_DATA_NORM_H

#include "base/arena.h"

/* groups 0: values stay as they are. A sample's values are a multiple of the groups. */
typedef struct {
    uint32_t groups;
    bool known; /* otherwise the groups are there and values stay */
    double *mean, *deviation;
} rp_norm;

/* Copies; mean NULL: values stay until the groups' are given or measured. */
rp_err rp_norm_set(rp_arena *arena, rp_norm *norm, uint32_t groups, const double *mean,
                   const double *deviation) RP_MUST_CHECK;

/* In floats. */
void rp_norm_apply(const rp_norm *norm, float *x, size_t count);
/* In doubles, rounded afterwards. */
void rp_norm_round(const rp_norm *norm, const double *value, float *x, size_t count);

/* Sums on the way to measured means and deviations. */
typedef struct {
    uint64_t samples;
    double *mean, *square; /* [groups]: square is the sum of squared distances from the mean */
} rp_norm_sums;
rp_err rp_norm_open_sums(rp_arena *arena, const rp_norm *norm, rp_norm_sums *out) RP_MUST_CHECK;
void rp_norm_add(const rp_norm *norm, rp_norm_sums *sums, const double *value, size_t count);
/* The norm is then what was measured. A group that is the same everywhere keeps deviation 1. */
void rp_norm_finish(rp_norm *norm, const rp_norm_sums *sums, size_t count);

#endif
