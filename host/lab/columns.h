/* The tables of a comparison: their lines and columns. table.md, the terminal, report.html and
 * table.json use the same columns. */
#ifndef RP_LAB_COLUMNS_H
#define RP_LAB_COLUMNS_H

#include "lab/cells.h"
#include "lab/table.h"

typedef enum {
    RP_LAB_METHODS, /* a line is a row of the table: its item is rp_lab_row */
    RP_LAB_STAGES,  /* one stage of a row: rp_lab_stage */
    RP_LAB_WIRES,   /* rp_lab_wire */
    RP_LAB_POINTS,  /* one point of a tuned method: rp_lab_trial */
    RP_LAB_RUNS,    /* rp_lab_run */
    RP_LAB_SHEETS
} rp_lab_sheet_kind;

typedef struct {
    rp_lab_sheet_kind kind;
    const rp_lab_table *table;
    const rp_lab_row *row; /* first of `row_count`; NULL: lines have no rows */
    uint32_t row_count;
    const rp_lab_tuning *tuning; /* POINTS only */
} rp_lab_sheet;

/* `index`: model (METHODS, STAGES, WIRES), tuning (POINTS) or 0 (RUNS). */
rp_lab_sheet rp_lab_sheet_of(const rp_lab_table *table, rp_lab_sheet_kind kind, uint32_t index);
/* A sheet with the lines of one row only. */
rp_lab_sheet rp_lab_sheet_of_row(const rp_lab_table *table, rp_lab_sheet_kind kind,
                                 const rp_lab_row *row);

typedef struct {
    const rp_lab_sheet *sheet;
    const rp_lab_row *row;
    const void *item;
    uint32_t index;          /* of the item in its row, tuning or plan */
    uint32_t next_row, next; /* position of rp_lab_sheet_next() */
} rp_lab_line;

/* Goes to the next line; starts with {.sheet = sheet}. False: no more lines. */
bool rp_lab_sheet_next(rp_lab_line *line);

typedef enum {
    RP_LAB_NOTHING, /* "–", null */
    RP_LAB_TEXT,
    RP_LAB_WHOLE,
    RP_LAB_TRUTH,
    RP_LAB_REAL,
    RP_LAB_STATS,
    RP_LAB_PAIRED /* only in table.json */
} rp_lab_value_kind;

typedef struct {
    rp_lab_value_kind kind;
    const char *text;
    uint64_t whole; /* TRUTH: 0 or 1 */
    rp_stats stats; /* REAL: a mean without deviation */
    rp_stats_paired paired;
} rp_lab_value;

typedef struct rp_lab_column rp_lab_column;
struct rp_lab_column {
    const char *title; /* NULL: only in table.json */
    const char *key;   /* in table.json; NULL: only in tables */
    const char *hint;  /* one line that explains the title; or NULL */

    /* Source of the value: `value` if set; else `path` in summary.json, as mean and deviation over
     * the row's finished runs; else the field at offset `at` of the item. */
    rp_lab_value_kind kind;
    size_t at;
    const char *path;
    rp_lab_value (*value)(const rp_lab_line *line);
    /* Text for a cell without a value, which is null in table.json; it returns NULL for a value. */
    const char *(*missing)(const rp_lab_line *line);

    /* Replaces the number format of the kind, or writes the whole cell. */
    const rp_lab_format *format;
    void (*write)(const rp_lab_line *line, char *text);

    bool (*shown)(const rp_lab_sheet *sheet); /* NULL: always */
    bool always;                              /* in table.json even if not shown */
    bool optional;                            /* left out of table.json if null */

    bool left;    /* words, not numbers */
    bool main;    /* methods are compared by the first such column that is shown */
    bool verdict; /* coloured as better or worse */
    /* in report.html only: */
    bool meter;                                        /* has a small bar */
    bool below;                                        /* is a second line in the cell before */
    bool mark;                                         /* has the colour of the method */
    const char *(*look)(const rp_lab_line *line);      /* CSS class: "good", "bad", "" ... */
    void (*link)(const rp_lab_line *line, char *text); /* address, or "" */
};

/* By kind of sheet; each list ends with a column without title and key. */
extern const rp_lab_column *const rp_lab_columns[RP_LAB_SHEETS];

/* Iterate over the columns of a sheet that tables show. */
const rp_lab_column *rp_lab_column_first(const rp_lab_sheet *sheet);
const rp_lab_column *rp_lab_column_next(const rp_lab_sheet *sheet, const rp_lab_column *column);

rp_lab_value rp_lab_column_value(const rp_lab_column *column, const rp_lab_line *line);
void rp_lab_write_cell(const rp_lab_column *column, const rp_lab_line *line, char *text);
/* The column by which methods are compared; NULL: the sheet is not METHODS. */
const rp_lab_column *rp_lab_column_main(const rp_lab_sheet *sheet);

/* "finished", "diverged", "failed", "interrupted", "not run". */
const char *rp_lab_status_word(const rp_lab_result *result);

#endif
