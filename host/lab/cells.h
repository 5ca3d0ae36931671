/* The columns of the tables and their words, the same in table.md, on the terminal and in
 * report.html. */
#ifndef RP_LAB_CELLS_H
#define RP_LAB_CELLS_H

#include "lab/table.h"

enum { RP_LAB_CELL_BYTES = 192 };

/* A column of a number of summary.json is one row of the table, with `number`; table.json has its
 * mean and deviation, as `key`. Others have a function of their own, and tablejson.c knows them. */
typedef struct {
    const char *title;
    const char *hint; /* one line that explains it, "" when the title does */
    bool (*shown)(const rp_lab_table *table); /* in table.json a `key` always is */
    void (*write)(const rp_lab_table *table, const rp_lab_row *row,
                  char *text); /* NULL: `number` */
    const char *number, *key;  /* "ledger.lost", "lost" */
    bool share;                /* the number is one: shown in percent, without a deviation */
    bool main;    /* what methods are compared by: the first such column that is shown */
    bool verdict; /* the cell says better or worse */
    double (*size)(const rp_lab_row *row); /* for a small bar in the cell, or NULL */
    bool below;                            /* on a page it is a second line of the cell before */
} rp_lab_column;

/* One row a method; ends with a title of NULL. */
extern const rp_lab_column rp_lab_columns[];

void rp_lab_write_cell(const rp_lab_column *column, const rp_lab_table *table,
                       const rp_lab_row *row, char *text);
/* Of a column with a `number`: over the row's finished runs. */
rp_stats rp_lab_column_stats(const rp_lab_column *column, const rp_lab_row *row);
bool rp_lab_column_is_main(const rp_lab_column *column, const rp_lab_table *table);

/* One line a stage; ends with a title of NULL. */
typedef struct {
    const char *title, *hint;
    bool predicted; /* shown only where something was predicted */
    void (*write)(const rp_lab_row *row, uint32_t stage, char *text);
} rp_lab_stage_column;
extern const rp_lab_stage_column rp_lab_stage_columns[];

/* One line a wire; ends with a title of NULL. */
typedef struct {
    const char *title, *hint;
    void (*write)(const rp_lab_wire *wire, char *text);
} rp_lab_wire_column;
extern const rp_lab_wire_column rp_lab_wire_columns[];

/* Text of RP_LAB_CELL_BYTES each; "–" for what there is none of. */
void rp_lab_write_mean(const rp_stats *stats, double scale, char *text); /* "97.31 ± 0.12" */
void rp_lab_write_number(double value, char *text);                      /* four digits */
void rp_lab_write_duration(double seconds, char *text);                  /* "1:02:03", "12 s" */
/* "finished", "diverged", "failed", "interrupted", "not run". */
const char *rp_lab_write_status(const rp_lab_result *result);
/* "better", "worse", "no clear difference", "" for the baseline and without one. */
const char *rp_lab_write_verdict(const rp_lab_table *table, const rp_lab_row *row);

#endif
