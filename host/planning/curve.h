/* What an op costs by the samples that it has: measured points, and straight lines between them. */
#ifndef RP_PLANNING_CURVE_H
#define RP_PLANNING_CURVE_H

#include <stdint.h>

#include "base/err.h"

enum { RP_CURVE_POINTS_MAX = 8 };

typedef struct {
    double samples; /* > 0 */
    double seconds; /* of an op on so many */
    double spread;  /* of its repeats, relative to `seconds`; 1: not known */
} rp_curve_point;

/* Rising in samples, and never falling in seconds. Zeros: an op takes no time. */
typedef struct {
    uint32_t count;
    rp_curve_point point[RP_CURVE_POINTS_MAX];
} rp_curve;

/* The nearest values, by least squares, that never fall; in place. `weight`: [count] > 0, or NULL:
 * all alike.
 * errors  USAGE: a value or a weight is not finite; then nothing is changed
 * source  pool adjacent violators: Ayer, Brunk, Ewing, Reid, Silverman, "An empirical distribution
 *         function for sampling with incomplete information", 1955 */
rp_err rp_isotonic(double *value, const double *weight, uint32_t count) RP_MUST_CHECK;

/* Of measured points in any order; they are made monotone, those that repeats agree on count more.
 * errors  USAGE: none or too many, two of one size, a time that is negative or not finite */
rp_err rp_curve_fit(const rp_curve_point *point, uint32_t count, rp_curve *out) RP_MUST_CHECK;

/* Seconds of an op on so many samples: between points on the line between them, behind the last one
 * on the last line. Below the first one on the line of the first two, but what any op costs is
 * never less than nothing. With one point, in proportion. 0 samples are no op: 0. */
double rp_curve_at(const rp_curve *curve, double samples);

#endif
