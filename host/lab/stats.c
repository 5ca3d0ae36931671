#include "lab/stats.h"

#include <math.h>

static const double none = (double)NAN;

rp_stats rp_stats_of(const double *value, uint32_t count) {
    rp_stats s = {.mean = none, .deviation = none};
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!isfinite(value[i])) {
            s.absent++;
            continue;
        }
        s.count++;
        sum += value[i];
    }
    if (s.count == 0) {
        return s;
    }
    s.mean = sum / s.count;
    double squares = 0; /* two passes avoid a difference of large numbers */
    for (uint32_t i = 0; i < count; i++) {
        double off = value[i] - s.mean;
        squares += isfinite(value[i]) ? off * off : 0;
    }
    if (s.count > 1) {
        s.deviation = sqrt(squares / (s.count - 1));
    }
    return s;
}

double rp_stats_t975(uint32_t degrees) {
    static const double table[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060,
                                   2.2622,  2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199,
                                   2.1098,  2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639,
                                   2.0595,  2.0555, 2.0518, 2.0484, 2.0452, 2.0423};
    enum { TABLE = sizeof table / sizeof *table };
    if (degrees == 0) {
        return none;
    }
    if (degrees <= TABLE) {
        return table[degrees - 1];
    }
    const double z = 1.959963985; /* of the normal distribution */
    const double n = degrees;
    return z + (z * z * z + z) / (4 * n) + (5 * pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * n * n);
}

rp_stats_paired rp_stats_pair(const double *value, const double *base, uint32_t count) {
    rp_stats_paired p = {.mean = none, .deviation = none, .low = none, .high = none};
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (isfinite(value[i]) && isfinite(base[i])) {
            sum += value[i] - base[i];
            p.count++;
        }
    }
    if (p.count == 0) {
        return p;
    }
    p.mean = sum / p.count;
    double squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (isfinite(value[i]) && isfinite(base[i])) {
            double off = value[i] - base[i] - p.mean;
            squares += off * off;
        }
    }
    if (p.count > 1) {
        p.deviation = sqrt(squares / (p.count - 1));
        double half = rp_stats_t975(p.count - 1) * p.deviation / sqrt(p.count);
        p.low = p.mean - half;
        p.high = p.mean + half;
    }
    return p;
}

int rp_stats_sign(const rp_stats_paired *paired) {
    return paired->low > 0 ? 1 : paired->high < 0 ? -1 : 0;
}
