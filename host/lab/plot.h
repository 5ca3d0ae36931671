/* Curves with bands, bars by group, and differences with intervals, as SVG without scripts and
 * fonts. A method has the colour of its `line` in every plot. */
#ifndef RP_LAB_PLOT_H
#define RP_LAB_PLOT_H

#include <stdio.h>

#include "lab/plot_series.h"

/* `standalone`: a separate file with style and legend; otherwise part of a page. */
void rp_plot_write(FILE *file, const rp_plot *plot, bool standalone);

#endif
