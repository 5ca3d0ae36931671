#include "data/lines.h"

#include <string.h>

#include "base/utf8.h"

enum { SHOWN_BYTES = 40 };

void rp_lines_begin(rp_lines *lines, const rp_text_file *file) {
    lines->file = file;
    lines->next = file->text;
    lines->number = 0;
    lines->count = 0;
}

static const char *end_of(const char *at, const char *end, char mark) {
    const char *found = memchr(at, mark, (size_t)(end - at));
    return found ? found : end;
}

/* Splits [at, end) at tabs. */
static rp_err split_line(rp_lines *lines, const char *at, const char *end) {
    lines->count = 0;
    for (bool more = true; more;) {
        const char *tab = end_of(at, end, '\t');
        if (lines->count == RP_LINE_FIELDS_MAX) {
            return rp_fail(RP_ERR_LIMIT, "%s:%u: the line has more than %d columns",
                           lines->file->path, lines->number, RP_LINE_FIELDS_MAX);
        }
        lines->field[lines->count++] = (rp_line_field){at, (size_t)(tab - at)};
        more = tab < end;
        at = tab + 1;
    }
    return RP_OK;
}

rp_err rp_lines_next(rp_lines *lines, bool *more) {
    const char *end = lines->file->text + lines->file->bytes;
    const uint32_t before = lines->count;
    const char *at;
    const char *last;
    do {
        if (lines->next >= end) {
            *more = false;
            return RP_OK;
        }
        at = lines->next;
        last = end_of(at, end, '\n');
        lines->next = last + 1;
        lines->number++;
        last -= last > at && last[-1] == '\r';
    } while (last == at);
    *more = true;
    rp_err err = split_line(lines, at, last);
    if (err == RP_OK && before > 0 && lines->count != before) {
        err = rp_fail(RP_ERR_FORMAT,
                      "%s:%u: expected %u columns between tabs as in the lines before, found %u",
                      lines->file->path, lines->number, before, lines->count);
    }
    return err;
}

rp_err rp_lines_fail(const rp_lines *lines, uint32_t column, const char *expected) {
    const rp_line_field *field = &lines->field[column];
    char found[SHOWN_BYTES + 1] = "";
    char shown[4 * SHOWN_BYTES + 1];
    const bool cut = field->bytes > SHOWN_BYTES;
    memcpy(found, field->at, cut ? SHOWN_BYTES : field->bytes);
    return rp_fail(RP_ERR_FORMAT, "%s:%u:%u: expected %s, found '%s%s'", lines->file->path,
                   lines->number, column + 1, expected,
                   rp_utf8_show(found, SHOWN_BYTES, shown, sizeof shown), cut ? "..." : "");
}
