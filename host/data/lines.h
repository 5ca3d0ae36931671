/* Lines of a text file with columns between tabs, without quotes. Private to the room. */
#ifndef RP_DATA_LINES_H
#define RP_DATA_LINES_H

#include "base/config.h"
#include "data/text_file.h"

enum { RP_LINE_FIELDS_MAX = 1024 };

typedef struct {
    const char *at; /* not zero-terminated */
    size_t bytes;
} rp_line_field;

typedef struct {
    const rp_text_file *file;
    const char *next; /* beginning of the next line */
    uint32_t number;  /* of the current line, from 1 */
    uint32_t count;   /* columns of the current line */
    rp_line_field field[RP_LINE_FIELDS_MAX];
} rp_lines;

void rp_lines_begin(rp_lines *lines, const rp_text_file *file);
/* Reads the next line that is not empty. It ends with \n or \r\n. *more: there was one.
 * errors  FORMAT naming file and line: too many columns, or not as many as in the line before */
rp_err rp_lines_next(rp_lines *lines, bool *more) RP_MUST_CHECK;

/* FORMAT error "path:line:column: expected ..., found '...'". `column`: from 0. */
rp_err rp_lines_fail(const rp_lines *lines, uint32_t column, const char *expected);

#endif
