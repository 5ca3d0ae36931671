/* An axis: a range, round ticks, and the positions of values. Pure functions. */
#ifndef RP_LAB_AXIS_H
#define RP_LAB_AXIS_H

#include <stdbool.h>
#include <stdint.h>

enum { RP_AXIS_TICKS_MAX = 16, RP_AXIS_TEXT_BYTES = 24 };

typedef struct {
    double low, high;
    bool log;
    double tick[RP_AXIS_TICKS_MAX];
    uint32_t tick_count;
} rp_axis;

/* Round ticks between low and high: multiples of 1, 2 or 5 times a power of ten, about `wanted` of
 * them; on a log axis powers of ten, and 2 and 5 times them when there are few. An invalid
 * range (not finite, empty, not above 0 on a log axis) becomes 0 to 1 (0.1 to 1). */
rp_axis rp_axis_make(double low, double high, bool log, uint32_t wanted);

/* 0 at low, 1 at high; NaN: not finite, or not above 0 on a log axis. */
double rp_axis_position(const rp_axis *axis, double value);

/* The label of a tick: as many digits as the ticks differ in, never "1e+06" below a million. */
void rp_axis_text(const rp_axis *axis, double tick, char text[RP_AXIS_TEXT_BYTES]);

#endif
