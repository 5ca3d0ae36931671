/* Which range of values a plot shows: pure functions of its series. */
#ifndef RP_LAB_PLOT_RANGE_H
#define RP_LAB_PLOT_RANGE_H

#include "lab/plot_series.h"

/* NaN: nothing is finite. */
typedef struct {
    double low, high;
} rp_plot_range;

rp_plot_range rp_plot_range_x(const rp_plot *plot);
/* *cut: values above the range are cut off. */
rp_plot_range rp_plot_range_y(const rp_plot *plot, bool *cut);

#endif
