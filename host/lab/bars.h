/* Paired differences with their intervals, and bars by stage, as SVG. */
#ifndef RP_LAB_BARS_H
#define RP_LAB_BARS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* One method against the baseline. */
typedef struct {
    const char *name;
    uint32_t line;
    const double *difference; /* by seed, NaN: none */
    uint32_t count;
    double mean, low, high;
    int verdict; /* 1 better, -1 worse */
} rp_forest_row;

typedef struct {
    const char *title, *note, *x_label;
    const rp_forest_row *row;
    uint32_t count;
} rp_forest;

void rp_forest_write(FILE *file, const rp_forest *forest, bool standalone);

/* value[series * group_count + group]; NaN: no bar. */
typedef struct {
    const char *title, *note, *y_label, *group_label; /* groups are "stage 0", "stage 1", ... */
    const char *const *name;                          /* of series */
    const uint32_t *line;
    const double *value;
    uint32_t series_count, group_count;
} rp_bars;

void rp_bars_write(FILE *file, const rp_bars *bars, bool standalone);

#endif
