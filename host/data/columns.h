/* Columns of a table: which are inputs, which targets, which are left out. Private to the room. */
#ifndef RP_DATA_COLUMNS_H
#define RP_DATA_COLUMNS_H

#include "base/arena.h"
#include "base/config.h"
#include "data/csv.h"

typedef enum { RP_COLUMN_X, RP_COLUMN_Y, RP_COLUMN_DROPPED } rp_column_role;

typedef struct {
    rp_column_role role;
    uint32_t index;   /* among those of its role */
    const char *name; /* NULL without a header */
} rp_column;

/* What a run file says of columns. */
typedef struct {
    enum { RP_HEADER_AUTO, RP_HEADER_NO, RP_HEADER_YES } header;
    rp_node *target, *drop, *columns; /* a name or a list; NULL: none */
} rp_column_keys;

/* The names of a header, sorted; borrowed from the row. */
typedef struct {
    const rp_csv_row *header;
    uint32_t *at; /* [header->count] */
} rp_column_names;

typedef struct {
    bool header;
    rp_column *column; /* [count], in the order of the file */
    uint32_t count, x_count, y_count;
} rp_columns;

/* `header: auto | true | false`, `target:`, `drop:`, `columns:`. errors USAGE */
rp_err rp_columns_read_keys(rp_node *node, rp_column_keys *out) RP_MUST_CHECK;

/* A header has a name and no field that is a number. */
bool rp_columns_is_header(const rp_column_keys *keys, const rp_csv_row *first);

/* Are the fields of the row numbers in turn, from 0 or 1? */
bool rp_columns_are_counted(const rp_csv_row *row);

/* errors  MEMORY */
rp_err rp_column_names_sort(rp_arena *arena, const rp_csv_row *header,
                            rp_column_names *out) RP_MUST_CHECK;
/* How many columns have the name, and the first of them. */
uint32_t rp_column_names_count(const rp_column_names *names, const char *name, uint32_t *first);
/* The column of the name, in a file that has to have it as the training file does.
 * errors  FORMAT: no column, or two */
rp_err rp_column_names_find(const rp_column_names *names, const char *name,
                            uint32_t *at) RP_MUST_CHECK;

/* The roles of a training file's columns by its first row. Columns are named by the header;
 * without one, by their numbers from 1. Without `target` the targets are the columns after the
 * first x_wanted ones, or the last column when x_wanted is 0.
 * errors  USAGE with the key's line, when it names no column; FORMAT with file and line: two
 * columns of a name, or a name that is not UTF-8, of a column that is not dropped */
rp_err rp_columns_choose(rp_arena *arena, const rp_column_keys *keys, const rp_csv_row *first,
                         bool header, uint32_t x_wanted, rp_columns *out) RP_MUST_CHECK;

/* The same columns in another file: by name when both have a header, else in the same order.
 * errors  FORMAT: one is missing or there twice, or another number of columns */
rp_err rp_columns_match(rp_arena *arena, const rp_columns *train, const rp_csv_row *first,
                        bool header, rp_columns *out) RP_MUST_CHECK;

/* Is the whole text a finite decimal number? */
bool rp_columns_is_number(const char *text, double *out);
/* The number in a field of the row; `name` of its column or NULL.
 * errors  FORMAT: no number, or not finite as a float */
rp_err rp_columns_read_real(const rp_csv_row *row, uint32_t at, const char *name,
                            double *out) RP_MUST_CHECK;

#endif
