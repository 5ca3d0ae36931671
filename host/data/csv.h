/* A CSV file row by row, by libcsv: quotes, any of three delimiters, `#` comment lines, blank
 * lines. Private to the room.
 *
 * source  RFC 4180, with blanks around fields left out and \n or \r\n as ends of lines */
#ifndef RP_DATA_CSV_H
#define RP_DATA_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    RP_CSV_FIELD_BYTES_MAX = 65535,
    RP_CSV_FIELDS_MAX = 1 << 20, /* of a row */
    RP_CSV_ROWS_MAX = 100 * 1000 * 1000
};

/* Borrowed until the callback returns. Fields have no blanks around them and no zero bytes. */
typedef struct {
    const char *path;
    uint32_t line;  /* on which the row begins, from 1 */
    uint32_t count; /* of fields, at least 1 */
    const char *const *field;
} rp_csv_row;

/* Gives every row to `on_row`, which ends the reading with an error.
 * errors  IO; FORMAT with file, line and column: quotes that are wrong or not closed, a zero byte;
 *         LIMIT; those of on_row */
rp_err rp_csv_read(const char *path, char delimiter,
                   rp_err (*on_row)(void *context, const rp_csv_row *row),
                   void *context) RP_MUST_CHECK;

/* The delimiter of a file's first row outside of quotes: a comma where the row has one, or the only
 * one of semicolon and tab that it has; otherwise a comma. errors IO */
rp_err rp_csv_guess_delimiter(const char *path, char *out) RP_MUST_CHECK;
/* "comma", "semicolon", "tab" */
const char *rp_csv_delimiter_name(char delimiter);

/* FORMAT error "path:line:column: expected ..., found '...'"; `column` from 0, `name` of it or
 * NULL.
 */
rp_err rp_csv_fail(const rp_csv_row *row, uint32_t column, const char *name, const char *expected);

#endif
