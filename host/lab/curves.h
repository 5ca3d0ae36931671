/* Curves with bands, as SVG. No script, no fonts. A method has one colour, that of its `line`, in
 * every drawing. */
#ifndef RP_LAB_CURVES_H
#define RP_LAB_CURVES_H

#include <stdio.h>

#include "lab/axis.h"

/* Points of one line; a y that is not finite interrupts it. */
typedef struct {
    const char *name;
    uint32_t line;
    bool dashed;
    const double *x, *y;
    const double *low, *high; /* band round y, NULL: none */
    uint32_t count;
    uint32_t marked; /* a point with a ring round it; >= count: none */
} rp_curve;

typedef struct {
    const char *title, *note; /* note: a small line below, or "" */
    const char *x_label, *y_label;
    bool log_x, log_y;
    bool percent;    /* y is a share, shown in percent */
    bool names;      /* beside the last point of each curve; else a legend when standalone */
    bool x_from_low; /* the x axis begins at the least x, not at 0 */
    bool whole_x;    /* no ticks between whole numbers */
    const rp_curve *curve;
    uint32_t count;
} rp_chart;

/* `standalone`: a file of its own, with style and legend; otherwise part of a page. */
void rp_chart_write(FILE *file, const rp_chart *chart, bool standalone);

#endif
