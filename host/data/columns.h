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
    rp_node *target, *drop; /* a name or a list; NULL: none */
} rp_column_keys;

typedef struct {
    bool header;
    rp_column *column; /* [count], in the order of the file */
    uint32_t count, x_count, y_count;
} rp_columns;

/* `header: auto | true | false`, `target:`, `drop:`. errors USAGE */
rp_err rp_columns_read_keys(rp_node *node, rp_column_keys *out) RP_MUST_CHECK;

/* A header has no field that is a number. */
bool rp_columns_is_header(const rp_column_keys *keys, const rp_csv_row *first);

/* The roles of a training file's columns by its first row. Columns are named by the header, or by
 * their numbers from 1 where there is none. Without `target` the last ones are: those behind
 * x_wanted inputs, or one when x_wanted is 0.
 * errors  USAGE with the key's line, when it names no column; FORMAT with file and line: a name
 *         twice, too few columns */
rp_err rp_columns_choose(rp_arena *arena, const rp_column_keys *keys, const rp_csv_row *first,
                         uint32_t x_wanted, rp_columns *out) RP_MUST_CHECK;

/* The same columns in another file: by name when both have a header, else in the same order.
 * errors  FORMAT: one is missing, or another number of columns */
rp_err rp_columns_match(rp_arena *arena, const rp_columns *train, const rp_csv_row *first,
                        bool header, rp_columns *out) RP_MUST_CHECK;

/* Is the whole text a finite decimal number? */
bool rp_columns_is_number(const char *text, double *out);
/* The number in a field of the row; `name` of its column or NULL.
 * errors  FORMAT: no number, or not finite as a float */
rp_err rp_columns_read_real(const rp_csv_row *row, uint32_t at, const char *name,
                            double *out) RP_MUST_CHECK;

#endif
