#include "lab/plot_range.h"

#include <math.h>

static const double none = (double)NAN;

static void widen_range(rp_plot_range *r, double value) {
    if (isfinite(value)) {
        r->low = !(value >= r->low) ? value : r->low;
        r->high = !(value <= r->high) ? value : r->high;
    }
}

static double first_of(const rp_series *curve) {
    for (uint32_t i = 0; i < curve->count; i++) {
        if (isfinite(curve->y[i])) {
            return curve->y[i];
        }
    }
    return none;
}

/* Approximate median of the curve, by bisection, so that no sorted copy is needed. */
static double middle_of(const rp_series *curve) {
    rp_plot_range all = {none, none};
    for (uint32_t i = 0; i < curve->count; i++) {
        widen_range(&all, curve->y[i]);
    }
    for (int halvings = 0; halvings < 40 && isfinite(all.low); halvings++) {
        double guess = (all.low + all.high) / 2;
        uint32_t below = 0;
        uint32_t above = 0;
        for (uint32_t i = 0; i < curve->count; i++) {
            below += isfinite(curve->y[i]) && curve->y[i] <= guess;
            above += isfinite(curve->y[i]) && curve->y[i] > guess;
        }
        if (below < above) {
            all.low = guess;
        } else {
            all.high = guess;
        }
    }
    return all.high;
}

/* Value above which a curve is cut: 1.5 times its start or 4 times its median, the larger one. */
static double ceiling_of(const rp_series *curve) {
    double start = 1.5 * first_of(curve);
    double middle = 4 * middle_of(curve);
    return middle > start ? middle : start;
}

/* Upper limit of the plot. Ignores curves whose ceiling is more than ten times the least one, so
 * that a diverging curve does not flatten the rest. */
static double limit_of(const rp_plot *plot) {
    double least = none;
    double limit = none;
    for (uint32_t c = 0; c < plot->count; c++) {
        double ceiling = ceiling_of(&plot->series[c]);
        least = ceiling > 0 && !(ceiling >= least) ? ceiling : least;
    }
    for (uint32_t c = 0; c < plot->count; c++) {
        double ceiling = ceiling_of(&plot->series[c]);
        limit = ceiling <= 10 * least && !(ceiling <= limit) ? ceiling : limit;
    }
    return limit;
}

static void widen_by(rp_plot_range *r, const rp_plot *plot, const rp_series *curve, double limit) {
    for (uint32_t i = 0; i < curve->count; i++) {
        if (plot->log_y && !(curve->y[i] > 0)) {
            continue;
        }
        widen_range(r, curve->y[i]);
        if (curve->low && !plot->log_y && !(curve->high[i] > limit)) {
            widen_range(r, curve->y[i] >= 0 && curve->low[i] < 0 ? 0 : curve->low[i]);
            widen_range(r, curve->high[i]);
        }
    }
}

static rp_plot_range bars_range(const rp_plot *plot) {
    rp_plot_range r = {0, 0};
    for (uint32_t s = 0; s < plot->count; s++) {
        for (uint32_t i = 0; i < plot->series[s].count; i++) {
            widen_range(&r, 1.04 * plot->series[s].y[i]);
        }
    }
    r.low = 0;
    return r;
}

/* Wide enough for all values; the wide interval of two values may extend beyond. */
static rp_plot_range differences_range(const rp_plot *plot) {
    double reach = 0;
    for (uint32_t r = 0; r < plot->count; r++) {
        const rp_series *row = &plot->series[r];
        for (uint32_t i = 0; i < row->count; i++) {
            reach = fmax(reach, fabs(row->x[i]));
        }
        const double end = fmax(fabs(row->low[0]), fabs(row->high[0]));
        reach = end < 3 * fabs(row->y[0]) + 1e-12 ? fmax(reach, end) : reach;
    }
    reach = reach > 0 ? 1.3 * reach : 1;
    return (rp_plot_range){-reach, reach};
}

rp_plot_range rp_plot_range_y(const rp_plot *plot, bool *cut) {
    rp_plot_range r = {none, none};
    *cut = false;
    if (plot->kind != RP_PLOT_CURVES) {
        return plot->kind == RP_PLOT_BARS ? bars_range(plot) : r;
    }
    double limit = plot->log_y || plot->percent ? none : limit_of(plot);
    for (uint32_t c = 0; c < plot->count; c++) {
        widen_by(&r, plot, &plot->series[c], limit);
    }
    *cut = r.high > limit;
    r.high = *cut ? limit : r.high;
    double room = 0.04 * (r.high - r.low);
    if (!plot->log_y) {
        r.low = r.low >= 0 && r.low < 0.35 * r.high ? 0 : r.low - room;
        r.high += room;
    }
    if (plot->percent) { /* within 0 to 100 %, with room around a single value */
        const double more = r.high - r.low < 1e-9 ? 0.05 : 0;
        r.low -= more;
        r.high += more;
        r.low = r.low < 0 ? 0 : r.low;
        r.high = r.high > 1 ? 1 : r.high;
    }
    return r;
}

rp_plot_range rp_plot_range_x(const rp_plot *plot) {
    rp_plot_range r = {none, none};
    if (plot->kind != RP_PLOT_CURVES) {
        return plot->kind == RP_PLOT_BARS ? r : differences_range(plot);
    }
    if (!plot->x_from_low && !plot->log_x) {
        widen_range(&r, 0);
    }
    for (uint32_t c = 0; c < plot->count; c++) {
        for (uint32_t i = 0; i < plot->series[c].count; i++) {
            const double x = plot->series[c].x[i];
            widen_range(&r, plot->log_x && x <= 0 ? none : x);
        }
    }
    if (plot->x_from_low && !plot->log_x) { /* keep points off the edge */
        double room = 0.08 * (r.high - r.low);
        r.low -= r.low - room < 0 && r.low >= 0 ? r.low : room;
        r.high += room;
    } else if (plot->log_x) {
        r.low /= 1.25;
        r.high *= 1.25;
    }
    return r;
}
