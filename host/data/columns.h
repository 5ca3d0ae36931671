/* Roles of a table's columns: inputs, targets, dropped. Private to the room. */
#ifndef RP_DATA_COLUMNS_H
#define RP_DATA_COLUMNS_H

#include "base/arena.h"
#include "base/config.h"
#include "data/csv.h"

typedef enum { RP_COLUMN_X, RP_COLUMN_Y, RP_COLUMN_DROPPED } rp_column_role;

typedef struct {
    rp_column_role role;
    uint32_t index;   /* among the columns of its role */
    const char *name; /* NULL without a header */
} rp_column;

/* Keys of a run file about columns. */
typedef struct {
    enum { RP_HEADER_AUTO, RP_HEADER_NO, RP_HEADER_YES } header;
    rp_node *target, *drop, *columns; /* a name or a list; NULL: not set */
} rp_column_keys;

/* Sorted index of a header's names; borrows from the row. */
typedef struct {
    const rp_csv_row *header;
    uint32_t *at; /* [header->count] */
} rp_column_names;

typedef struct {
    bool header;
    rp_column *column; /* [count], in the order of the file */
    uint32_t count, x_count, y_count;
} rp_columns;

/* Reads `header: auto | true | false`, `target:`, `drop:`, `columns:`. errors USAGE */
rp_err rp_columns_read_keys(rp_node *node, rp_column_keys *out) RP_MUST_CHECK;

/* Is the first row a header? With `auto`: if it has a name and no number. */
bool rp_columns_is_header(const rp_column_keys *keys, const rp_csv_row *first);

/* Are the fields of the row consecutive numbers from 0 or 1? */
bool rp_columns_are_counted(const rp_csv_row *row);

/* errors  MEMORY */
rp_err rp_column_names_sort(rp_arena *arena, const rp_csv_row *header,
                            rp_column_names *out) RP_MUST_CHECK;
/* Number of columns with this name; *first: index of the first. */
uint32_t rp_column_names_count(const rp_column_names *names, const char *name, uint32_t *first);
/* Finds a column of the training file in a further file. errors  FORMAT: missing, or there twice */
rp_err rp_column_names_find(const rp_column_names *names, const char *name,
                            uint32_t *at) RP_MUST_CHECK;

/* Chooses the roles of a training file's columns. Columns are named by the header or, without one,
 * by their numbers from 1. Without `target` the targets are the columns after the first x_wanted
 * ones, or the last column if x_wanted is 0. `first`: the first row.
 * errors  USAGE with the key's line: unknown column; FORMAT with file and line: a column that is
 * not dropped has a repeated name, or one that is not UTF-8 */
rp_err rp_columns_choose(rp_arena *arena, const rp_column_keys *keys, const rp_csv_row *first,
                         bool header, uint32_t x_wanted, rp_columns *out) RP_MUST_CHECK;

/* Finds the columns of the training file in the test file: by name if both have a header, else by
 * position. errors  FORMAT: a column is missing or there twice, or the numbers of columns differ */
rp_err rp_columns_match(rp_arena *arena, const rp_columns *train, const rp_csv_row *first,
                        bool header, rp_columns *out) RP_MUST_CHECK;

/* Is the whole text a finite decimal number? */
bool rp_columns_is_number(const char *text, double *out);
/* Reads the number in a field of the row. `name`: that of its column, or NULL.
 * errors  FORMAT: not a number, or not finite as a float */
rp_err rp_columns_read_real(const rp_csv_row *row, uint32_t at, const char *name,
                            double *out) RP_MUST_CHECK;

#endif
