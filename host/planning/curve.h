/* The cost of an op by its samples: measured points, and straight lines between them. */
#ifndef RP_PLANNING_CURVE_H
#define RP_PLANNING_CURVE_H

#include <stdint.h>

#include "base/err.h"

enum { RP_CURVE_POINTS_MAX = 8 };

typedef struct {
    double samples; /* > 0 */
    double seconds; /* of an op with that many samples */
    double spread;  /* of repeated measurements, relative to `seconds`; 1: unknown */
} rp_curve_point;

/* Points by rising samples, with seconds that never fall. Zeros: an op takes no time. */
typedef struct {
    uint32_t count;
    rp_curve_point point[RP_CURVE_POINTS_MAX];
} rp_curve;

/* Replaces values by the nearest ones, by weighted least squares, that never fall. `weight`:
 * [count] > 0, or NULL for equal weights.
 * errors  USAGE: a value or a weight is not finite; then nothing is changed
 * source  pool adjacent violators: Ayer, Brunk, Ewing, Reid, Silverman, "An empirical distribution
 *         function for sampling with incomplete information", 1955 */
rp_err rp_isotonic(double *value, const double *weight, uint32_t count) RP_MUST_CHECK;

/* Makes a curve of measured points in any order. Points with less spread weigh more.
 * errors  USAGE: no points or too many, two points with equal samples, a time that is negative or
 *         not finite */
rp_err rp_curve_fit(const rp_curve_point *point, uint32_t count, rp_curve *out) RP_MUST_CHECK;

/* Seconds of an op on `samples`: on the line between two points, or on the line of the first two or
 * the last two points, but never below 0. With one point, proportional to the samples. 0 for no
 * samples. */
double rp_curve_at(const rp_curve *curve, double samples);

#endif
