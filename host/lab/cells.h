/* The columns of the tables and their words, the same in table.md, on the terminal and in
 * report.html. */
#ifndef RP_LAB_CELLS_H
#define RP_LAB_CELLS_H

#include "lab/table.h"

enum { RP_LAB_CELL_BYTES = 192 };

typedef struct {
    const char *title;
    const char *hint; /* one line that explains it, "" when the title does */
    bool (*shown)(const rp_lab_table *table);
    void (*say)(const rp_lab_table *table, const rp_lab_row *row, char *text);
    bool verdict;                          /* the cell says better or worse */
    double (*size)(const rp_lab_row *row); /* for a small bar in the cell, or NULL */
    bool below;                            /* on a page it is a second line of the cell before */
} rp_lab_column;

/* One row a method; ends with a title of NULL. */
extern const rp_lab_column rp_lab_columns[];

/* One line a stage; ends with a title of NULL. */
typedef struct {
    const char *title, *hint;
    bool predicted; /* shown only where something was predicted */
    void (*say)(const rp_lab_row *row, uint32_t stage, char *text);
} rp_lab_stage_column;
extern const rp_lab_stage_column rp_lab_stage_columns[];

/* Text of RP_LAB_CELL_BYTES each; "–" for what there is none of. */
void rp_lab_say_mean(const rp_stats *stats, double scale, char *text); /* "97.31 ± 0.12" */
void rp_lab_say_number(double value, char *text);                      /* four digits */
void rp_lab_say_duration(double seconds, char *text);                  /* "1:02:03", "12 s" */
/* "finished", "diverged", "failed", "interrupted", "not run". */
const char *rp_lab_say_status(const rp_lab_result *result);
/* "better", "worse", "no clear difference", "" for the baseline and without one. */
const char *rp_lab_say_verdict(const rp_lab_table *table, const rp_lab_row *row);

#endif
