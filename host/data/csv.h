/* Reads a CSV file row by row with libcsv: quotes, three delimiters, `#` comment lines, blank
 * lines. Private to the room.
 *
 * source  RFC 4180; blanks around fields are dropped, lines end with \n or \r\n */
#ifndef RP_DATA_CSV_H
#define RP_DATA_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    RP_CSV_FIELD_BYTES_MAX = 65535,
    RP_CSV_FIELDS_MAX = 1 << 20, /* in a row */
    RP_CSV_ROWS_MAX = 100 * 1000 * 1000
};

/* A row, borrowed until the callback returns. Fields have no blanks around them and no zero bytes.
 */
typedef struct {
    const char *path;
    uint32_t line;  /* first line of the row, from 1 */
    uint32_t count; /* number of fields, at least 1 */
    const char *const *field;
} rp_csv_row;

/* Calls `on_row` for every row; an error of it ends the reading.
 * errors  IO; FORMAT with file, line and column: invalid quotes, a zero byte; LIMIT; those of
 *         on_row */
rp_err rp_csv_read(const char *path, char delimiter,
                   rp_err (*on_row)(void *context, const rp_csv_row *row),
                   void *context) RP_MUST_CHECK;

/* Guesses the delimiter from the first row, outside of quotes: semicolon or tab if the row has only
 * that one and no comma, else comma. errors IO */
rp_err rp_csv_guess_delimiter(const char *path, char *out) RP_MUST_CHECK;
/* "comma", "semicolon", "tab" */
const char *rp_csv_delimiter_name(char delimiter);

/* FORMAT error "path:line:column: expected ..., found '...'". `column`: from 0; `name`: of the
 * column, or NULL. */
rp_err rp_csv_fail(const rp_csv_row *row, uint32_t column, const char *name, const char *expected);

#endif
