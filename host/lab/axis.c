#include "lab/axis.h"

#include <math.h>
#include <stdio.h>

/* The smallest of 1, 2 or 5 times a power of ten that is at least `least`. */
static double round_step(double least) {
    double power = pow(10, floor(log10(least)));
    double digit = least / power;
    return power * (digit <= 1 + 1e-9 ? 1 : digit <= 2 + 1e-9 ? 2 : digit <= 5 + 1e-9 ? 5 : 10);
}

static void add_tick(rp_axis *axis, double value) {
    double slack = axis->log ? 1e-9 * value : 1e-9 * (axis->high - axis->low);
    if (axis->tick_count < RP_AXIS_TICKS_MAX && value >= axis->low - slack &&
        value <= axis->high + slack) {
        axis->tick[axis->tick_count++] = value;
    }
}

static void log_ticks(rp_axis *axis, uint32_t wanted) {
    int first = (int)floor(log10(axis->low) + 1e-9);
    int last = (int)ceil(log10(axis->high) - 1e-9);
    int decades = last - first;
    int step = decades > (int)wanted ? (decades + (int)wanted - 1) / (int)wanted : 1;
    for (int exponent = first; exponent <= last; exponent += step) {
        add_tick(axis, pow(10, exponent));
        if (decades <= 2) {
            add_tick(axis, 2 * pow(10, exponent));
            add_tick(axis, 5 * pow(10, exponent));
        }
    }
}

rp_axis rp_axis_make(double low, double high, bool log, uint32_t wanted) {
    rp_axis axis = {.low = low, .high = high, .log = log};
    wanted = wanted < 2 ? 2 : wanted > RP_AXIS_TICKS_MAX / 2 ? RP_AXIS_TICKS_MAX / 2 : wanted;
    if (!isfinite(low) || !isfinite(high) || !(high >= low) || (log && low <= 0)) {
        axis.low = log ? 0.1 : 0;
        axis.high = 1;
    } else if (high - low <=
               1e-12 * fmax(fabs(high), fabs(low))) { /* add room around a single value */
        double room = low == 0 ? 1 : 0.1 * fabs(low);
        axis.low = log ? low / 2 : low - room;
        axis.high = log ? high * 2 : high + room;
    }
    if (log) {
        log_ticks(&axis, wanted);
    }
    if (axis.tick_count >= 2) {
        return axis;
    }
    axis.tick_count = 0; /* a short log axis is almost linear */
    double step = round_step((axis.high - axis.low) / wanted);
    double first = ceil(axis.low / step - 1e-9);
    for (uint32_t i = 0; i < RP_AXIS_TICKS_MAX; i++) {
        double value = (first + i) * step;
        add_tick(&axis, fabs(value) < step * 1e-6 ? 0 : value); /* no -0 */
    }
    return axis;
}

double rp_axis_position(const rp_axis *axis, double value) {
    if (!isfinite(value) || (axis->log && value <= 0)) {
        return (double)NAN;
    }
    return axis->log ? log(value / axis->low) / log(axis->high / axis->low)
                     : (value - axis->low) / (axis->high - axis->low);
}

void rp_axis_text(const rp_axis *axis, double tick, char text[RP_AXIS_TEXT_BYTES]) {
    double step = axis->tick_count > 1 ? axis->tick[1] - axis->tick[0] : fabs(tick);
    double size = fmax(fabs(axis->low), fabs(axis->high));
    if (axis->log || size >= 1e6 || (size > 0 && size < 1e-3)) {
        bool plain = axis->log && fabs(tick) >= 1e-3 && fabs(tick) < 1e6;
        double digits = axis->log || !(step > 0) ? 3 : ceil(log10(size / step)) + 1;
        bool many = digits > 3 && digits < 15;
        (void)snprintf(text, RP_AXIS_TEXT_BYTES, "%.*g", many ? (int)digits : plain ? 6 : 3, tick);
        return;
    }
    int decimals = step > 0 && step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    (void)snprintf(text, RP_AXIS_TEXT_BYTES, "%.*f", decimals > 9 ? 9 : decimals, tick);
}
