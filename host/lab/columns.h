/* The tables of a comparison: what a line of each is about, and its columns. table.md, the
 * terminal, report.html and table.json walk the same columns. */
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
    const rp_lab_row *row; /* first of `row_count`; NULL: lines do not belong to rows */
    uint32_t row_count;
    const rp_lab_tuning *tuning; /* of RP_LAB_POINTS */
} rp_lab_sheet;

/* `index`: the model of METHODS, STAGES and WIRES, the tuning of POINTS, 0 of RUNS. */
rp_lab_sheet rp_lab_sheet_of(const rp_lab_table *table, rp_lab_sheet_kind kind, uint32_t index);
/* Lines of one row alone. */
rp_lab_sheet rp_lab_sheet_of_row(const rp_lab_table *table, rp_lab_sheet_kind kind,
                                 const rp_lab_row *row);

typedef struct {
    const rp_lab_sheet *sheet;
    const rp_lab_row *row;
    const void *item;
    uint32_t index;          /* of the item in its row, its tuning or the plan */
    uint32_t next_row, next; /* where rp_lab_sheet_next() goes on */
} rp_lab_line;

/* The next line; the first one after {.sheet = sheet}. False: there is no more. */
bool rp_lab_sheet_next(rp_lab_line *line);

typedef enum {
    RP_LAB_NOTHING, /* "–", null */
    RP_LAB_TEXT,
    RP_LAB_WHOLE,
    RP_LAB_TRUTH,
    RP_LAB_REAL,
    RP_LAB_STATS,
    RP_LAB_PAIRED /* table.json alone */
} rp_lab_value_kind;

typedef struct {
    rp_lab_value_kind kind;
    const char *text;
    uint64_t whole; /* of TRUTH 0 or 1 */
    rp_stats stats; /* of REAL a mean without deviation */
    rp_stats_paired paired;
} rp_lab_value;

typedef struct rp_lab_column rp_lab_column;
struct rp_lab_column {
    const char *title; /* NULL: in table.json alone */
    const char *key;   /* in table.json; NULL: in tables alone */
    const char *hint;  /* one line that explains the title, or NULL */

    /* The value: at an offset in the item, mean and deviation of a number of summary.json over the
     * row's finished runs, or computed. */
    rp_lab_value_kind kind;
    size_t at;
    const char *path;
    rp_lab_value (*value)(const rp_lab_line *line);
    /* The text in place of a value that is null in table.json; NULL: the value counts. */
    const char *(*missing)(const rp_lab_line *line);

    /* How it is shown: a number in another way than its kind's, or the whole cell. */
    const rp_lab_format *format;
    void (*write)(const rp_lab_line *line, char *text);

    bool (*shown)(const rp_lab_sheet *sheet); /* NULL: always */
    bool always;                              /* in table.json even where it is not shown */
    bool optional;                            /* left out of table.json where it is null */

    bool left;    /* words, not numbers */
    bool main;    /* what methods are compared by: the first such column that is shown */
    bool verdict; /* the cell says better or worse */
    bool meter;   /* on a page with a small bar */
    bool below;   /* on a page a second line of the cell before */
    bool mark;    /* on a page with the colour of the method */
    const char *(*look)(const rp_lab_line *line);      /* on a page: "good", "bad", "" ... */
    void (*link)(const rp_lab_line *line, char *text); /* on a page: an address, or "" */
};

/* By kind of sheet; each ends with neither title nor key. */
extern const rp_lab_column *const rp_lab_columns[RP_LAB_SHEETS];

/* To walk the columns of a sheet that have a cell in tables. */
const rp_lab_column *rp_lab_column_first(const rp_lab_sheet *sheet);
const rp_lab_column *rp_lab_column_next(const rp_lab_sheet *sheet, const rp_lab_column *column);

rp_lab_value rp_lab_column_value(const rp_lab_column *column, const rp_lab_line *line);
void rp_lab_write_cell(const rp_lab_column *column, const rp_lab_line *line, char *text);
/* What the methods of a sheet are compared by; NULL: of another sheet. */
const rp_lab_column *rp_lab_column_main(const rp_lab_sheet *sheet);

/* "finished", "diverged", "failed", "interrupted", "not run". */
const char *rp_lab_status_word(const rp_lab_result *result);

#endif
