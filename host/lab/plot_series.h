/* Input of a plot: series and texts. */
#ifndef RP_LAB_PLOT_SERIES_H
#define RP_LAB_PLOT_SERIES_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    RP_PLOT_CURVES,
    RP_PLOT_BARS,       /* y[i] is the bar of group i; NaN: no bar */
    RP_PLOT_DIFFERENCES /* a row per series: values x, mean y[0], interval low[0] to high[0] */
} rp_plot_kind;

/* A y that is not finite interrupts a curve. */
typedef struct {
    const char *name;
    uint32_t line;
    bool dashed;
    const double *x, *y;
    const double *low, *high; /* CURVES: a band around y; NULL: none */
    uint32_t count;           /* of values or groups */
    uint32_t marked;          /* point with a ring; >= count: none */
    int verdict;              /* DIFFERENCES: 1 better, -1 worse */
} rp_series;

typedef struct {
    rp_plot_kind kind;
    const char *title, *note;      /* note: small text below; "": none */
    const char *x_label, *y_label; /* BARS: groups are x_label 0, x_label 1, ... */
    bool log_x, log_y;
    bool percent;    /* y is a share; show percent */
    bool names;      /* next to the last point of each curve; else a legend when standalone */
    bool x_from_low; /* the x axis begins at the least x, not at 0 */
    bool whole_x;    /* ticks at whole numbers only */
    const rp_series *series;
    uint32_t count;
} rp_plot;

#endif
