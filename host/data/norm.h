/* Normalisation: (x - mean) / deviation, by groups of consecutive values of a sample: channels of
 * an image, columns of a table.
 *
 * Bytes (k / 255) are normalised in floats, with the same bits as on a board. All further values
 * are doubles until they are normalised, because a column far from zero would lose digits as
 * floats.
 *
 * source  torchvision's Normalize; measured: mean and deviation (of all samples, not n - 1) in
 *         doubles, joined sample by sample as Chan, Golub, LeVeque 1979 */
#ifndef RP_DATA_NORM_H
#define RP_DATA_NORM_H

#include "base/arena.h"

/* groups 0: no normalisation. The number of values in a sample is a multiple of `groups`. */
typedef struct {
    uint32_t groups;
    bool known; /* false: mean and deviation are not set, so values are not changed */
    double *mean, *deviation;
} rp_norm;

/* Copies the numbers, [groups] each; mean NULL: not known yet. errors MEMORY */
rp_err rp_norm_set(rp_arena *arena, rp_norm *norm, uint32_t groups, const double *mean,
                   const double *deviation) RP_MUST_CHECK;

/* Normalises in floats, in place. */
void rp_norm_apply(const rp_norm *norm, float *x, size_t count);
/* Normalises in doubles, then rounds to floats. */
void rp_norm_round(const rp_norm *norm, const double *value, float *x, size_t count);

/* Running sums for measured means and deviations. */
typedef struct {
    uint64_t samples;
    double *mean, *square; /* [groups]: square is the sum of squared distances from the mean */
} rp_norm_sums;
rp_err rp_norm_open_sums(rp_arena *arena, const rp_norm *norm, rp_norm_sums *out) RP_MUST_CHECK;
void rp_norm_add(const rp_norm *norm, rp_norm_sums *sums, const double *value, size_t count);
/* Sets the norm from the sums. A group with one constant value gets deviation 1. */
void rp_norm_finish(rp_norm *norm, const rp_norm_sums *sums, size_t count);

#endif
