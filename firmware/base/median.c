#include "base/median.h"

static void sort_values(double *value, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        const double moved = value[i];
        uint32_t at = i;
        for (; at > 0 && value[at - 1] > moved; at--) {
            value[at] = value[at - 1];
        }
        value[at] = moved;
    }
}

/* Interpolates linearly between neighbouring values. */
static double quantile_of(const double *sorted, uint32_t count, double share) {
    const double place = share * (count - 1);
    const uint32_t below = (uint32_t)place;
    const uint32_t above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (sorted[above] - sorted[below]) * (place - below);
}

void rp_median(double *repeats, uint32_t count, double *median, double *spread) {
    sort_values(repeats, count);
    *median = count > 0 ? quantile_of(repeats, count, 0.5) : 0;
    *spread =
        count < 3 ? 1
        : *median > 0
            ? (quantile_of(repeats, count, 0.75) - quantile_of(repeats, count, 0.25)) / *median
            : 0;
}
