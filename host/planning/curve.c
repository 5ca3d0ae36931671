#include "planning/curve.h"

#include <math.h>
#include <string.h>

/* Adjacent values that were replaced by their mean. */
typedef struct {
    double mean, weight;
    uint32_t end; /* index after its last value */
} pool;

static double weight_of(const double *weight, uint32_t i) {
    return weight ? weight[i] : 1;
}

rp_err rp_isotonic(double *value, const double *weight, uint32_t count) {
    pool pools[RP_CURVE_POINTS_MAX];
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!isfinite(value[i]) || !isfinite(weight_of(weight, i)) || !(weight_of(weight, i) > 0)) {
            return rp_fail(
                RP_ERR_USAGE,
                "value %u of %u is %g with weight %g, expected finite ones and a weight above 0", i,
                count, value[i], weight_of(weight, i));
        }
    }
    if (count > RP_CURVE_POINTS_MAX) {
        return rp_fail(RP_ERR_USAGE, "%u values, at most %d", count, RP_CURVE_POINTS_MAX);
    }
    for (uint32_t i = 0; i < count; i++) {
        pools[used++] = (pool){value[i], weight_of(weight, i), i + 1};
        while (used > 1 && pools[used - 2].mean > pools[used - 1].mean) {
            const pool last = pools[--used];
            pool *into = &pools[used - 1];
            const double both = into->weight + last.weight;
            into->mean += (last.mean - into->mean) * (last.weight / both);
            into->weight = both;
            into->end = last.end;
        }
    }
    for (uint32_t p = 0, i = 0; p < used; p++) {
        for (; i < pools[p].end; i++) {
            value[i] = pools[p].mean;
        }
    }
    return RP_OK;
}

static void sort_points(rp_curve *curve) {
    for (uint32_t i = 1; i < curve->count; i++) {
        const rp_curve_point moved = curve->point[i];
        uint32_t at = i;
        for (; at > 0 && curve->point[at - 1].samples > moved.samples; at--) {
            curve->point[at] = curve->point[at - 1];
        }
        curve->point[at] = moved;
    }
}

static rp_err check_points(const rp_curve *curve) {
    for (uint32_t i = 0; i < curve->count; i++) {
        const rp_curve_point *p = &curve->point[i];
        const bool counts = p->samples > 0 && isfinite(p->samples);
        const bool is_time = p->seconds >= 0 && isfinite(p->seconds);
        const bool spreads = p->spread >= 0 && isfinite(p->spread);
        if (!counts || !is_time || !spreads) {
            return rp_fail(RP_ERR_USAGE,
                           "%g samples take %g s with spread %g, expected samples above 0, and a "
                           "finite time and spread of 0 or more",
                           p->samples, p->seconds, p->spread);
        }
        if (i > 0 && !(curve->point[i - 1].samples < p->samples)) {
            return rp_fail(RP_ERR_USAGE, "%g samples have two times", p->samples);
        }
    }
    return RP_OK;
}

rp_err rp_curve_fit(const rp_curve_point *point, uint32_t count, rp_curve *out) {
    rp_curve curve = {.count = count};
    double seconds[RP_CURVE_POINTS_MAX];
    double weight[RP_CURVE_POINTS_MAX];
    rp_err err;
    if (count == 0 || count > RP_CURVE_POINTS_MAX) {
        return rp_fail(RP_ERR_USAGE, "a curve of %u points, expected 1 to %d", count,
                       RP_CURVE_POINTS_MAX);
    }
    memcpy(curve.point, point, count * sizeof *point);
    sort_points(&curve);
    RP_TRY(check_points(&curve));
    for (uint32_t i = 0; i < count; i++) {
        seconds[i] = curve.point[i].seconds;
        weight[i] = 1 / (0.05 + curve.point[i].spread);
    }
    RP_TRY(rp_isotonic(seconds, weight, count));
    for (uint32_t i = 0; i < count; i++) {
        curve.point[i].seconds = seconds[i];
    }
    *out = curve;
fail:
    return err;
}

double rp_curve_at(const rp_curve *curve, double samples) {
    const rp_curve_point *p = curve->point;
    uint32_t i = 1; /* index of the point that ends the line at `samples` */
    if (curve->count == 0 || !(samples > 0)) {
        return 0;
    }
    if (curve->count == 1) {
        return p->seconds * samples / p->samples;
    }
    while (i + 1 < curve->count && p[i].samples < samples) {
        i++;
    }
    const double slope = (p[i].seconds - p[i - 1].seconds) / (p[i].samples - p[i - 1].samples);
    const double seconds = p[i - 1].seconds + slope * (samples - p[i - 1].samples);
    return seconds > 0 ? seconds : 0;
}
