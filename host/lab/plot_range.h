/* The range of values that a plot shows. Pure functions of its series. */
#ifndef RP_LAB_PLOT_RANGE_H
#define RP_LAB_PLOT_RANGE_H

#include "lab/plot_series.h"

/* NaN: no value is finite. */
typedef struct {
    double low, high;
} rp_plot_range;

rp_plot_range rp_plot_range_x(const rp_plot *plot);
/* *cut: some values are above the range and cut off. */
rp_plot_range rp_plot_range_y(const rp_plot *plot, bool *cut);

#endif
