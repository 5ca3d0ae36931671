/* The drawings of a comparison, made from its table. report.html contains them, and each is a file
 * of curves/. */
#ifndef RP_LAB_FIGURES_H
#define RP_LAB_FIGURES_H

#include "lab/plot.h"
#include "lab/table.h"

/* Parts of a model's chapter, in order. */
typedef enum {
    RP_LAB_RESULT_PART,
    RP_LAB_LEARNING_PART,
    RP_LAB_WEIGHTS_PART, /* memory, predictions */
    RP_LAB_SWEEP_PART,
    RP_LAB_PARTS
} rp_lab_part;

typedef struct {
    const char *file; /* "mlp-accuracy.svg" */
    uint32_t model;
    rp_lab_part part;
    rp_plot plot;
} rp_lab_figure;

typedef struct {
    rp_lab_figure *figure;
    uint32_t count;
} rp_lab_figures;

/* Makes all drawings that have values. */
rp_err rp_lab_figures_make(rp_arena *arena, const rp_lab_table *table,
                           rp_lab_figures *out) RP_MUST_CHECK;

#endif
