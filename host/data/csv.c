#include "data/csv.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <csv.h>

#include "base/arena.h"
#include "base/input.h"
#include "base/utf8.h"

enum { PIECE_BYTES = 16384, SHOWN_BYTES = 40 };

typedef struct {
    const char *path;
    FILE *file;
    struct csv_parser parser;
    rp_err (*on_row)(void *context, const rp_csv_row *row);
    void *context;
    rp_err err; /* of a callback, which cannot stop the parser */
    uint32_t line;
    uint32_t row_line; /* first line of the row */
    bool row_ended;    /* on this line */
    uint32_t rows;

    /* The present row. */
    rp_arena arena;
    char *text; /* texts of the fields, each zero-terminated */
    size_t used, room;
    size_t *start; /* offset of each field in `text` */
    const char **field;
    uint32_t count, field_room;
} reader;

rp_err rp_csv_fail(const rp_csv_row *row, uint32_t column, const char *name, const char *expected) {
    const char *found = column < row->count ? row->field[column] : "";
    char shown[4 * SHOWN_BYTES + 1];
    return rp_fail(RP_ERR_FORMAT, "%s:%u:%u: %s%s%sexpected %s, found '%s%s'", row->path, row->line,
                   column + 1, name ? "column '" : "", name ? name : "", name ? "': " : "",
                   expected, rp_utf8_show(found, SHOWN_BYTES, shown, sizeof shown),
                   strlen(found) > SHOWN_BYTES ? "..." : "");
}

static rp_err fail_here(const reader *r, const char *problem) {
    return rp_fail(RP_ERR_FORMAT, "%s:%u:%u: %s", r->path, r->row_line, r->count + 1, problem);
}

/* Makes room for one more field of `bytes`. Sizes double, so the arena keeps at most twice the
 * final size. */
static rp_err make_room(reader *r, size_t bytes) {
    rp_err err = RP_OK;
    if (r->used + bytes + 1 > r->room) {
        char *text;
        r->room = 2 * (r->used + bytes + 1);
        RP_TRY(RP_ARENA_NEW(&r->arena, r->room, &text));
        if (r->used > 0) {
            memcpy(text, r->text, r->used);
        }
        r->text = text;
    }
    if (r->count == r->field_room) {
        size_t *start;
        r->field_room = r->field_room ? 2 * r->field_room : 64;
        RP_TRY(RP_ARENA_NEW(&r->arena, r->field_room, &start));
        RP_TRY(RP_ARENA_NEW(&r->arena, r->field_room, &r->field));
        if (r->count > 0) {
            memcpy(start, r->start, r->count * sizeof *start);
        }
        r->start = start;
    }
fail:
    return err;
}

static void take_field(void *bytes, size_t count, void *context) {
    reader *r = context;
    if (r->err != RP_OK) {
        return;
    }
    if (r->count == RP_CSV_FIELDS_MAX) {
        r->err = rp_fail(RP_ERR_LIMIT, "%s:%u: the row has more than %d fields", r->path,
                         r->row_line, RP_CSV_FIELDS_MAX);
    } else if (count > 0 && memchr(bytes, '\0', count)) {
        r->err = fail_here(r, "expected text, found a zero byte");
    } else {
        r->err = make_room(r, count);
    }
    if (r->err == RP_OK) {
        r->start[r->count++] = r->used;
        if (count > 0) {
            memcpy(r->text + r->used, bytes, count);
        }
        r->text[r->used + count] = '\0';
        r->used += count + 1;
    }
}

static void take_row(int end, void *context) {
    reader *r = context;
    (void)end;
    r->row_ended = true;
    if (r->err == RP_OK && r->rows == RP_CSV_ROWS_MAX) {
        r->err =
            rp_fail(RP_ERR_LIMIT, "%s: the file has more than %d rows", r->path, RP_CSV_ROWS_MAX);
    }
    if (r->err == RP_OK) {
        for (uint32_t i = 0; i < r->count; i++) {
            r->field[i] = r->text + r->start[i];
        }
        const rp_csv_row row = {r->path, r->row_line, r->count, r->field};
        r->err = r->on_row(r->context, &row);
        r->rows++;
    }
    r->used = r->count = 0;
}

static int is_blank(unsigned char c) {
    return c == ' ';
}

/* Parses a part of a line. *pending: bytes of a field that is not complete. */
static rp_err parse_piece(reader *r, const char *piece, size_t bytes, size_t *pending) {
    const uint32_t fields = r->count;
    const uint32_t rows = r->rows;
    if (csv_parse(&r->parser, piece, bytes, take_field, take_row, r) != bytes && r->err == RP_OK) {
        return csv_error(&r->parser) == CSV_EPARSE
                   ? fail_here(r, "misplaced quote: expected quotes only around a whole field, and "
                                  "doubled inside of a quoted field")
                   : rp_fail(RP_ERR_MEMORY, "%s: %s", r->path, csv_strerror(csv_error(&r->parser)));
    }
    *pending = r->count != fields || r->rows != rows ? 0 : *pending + bytes;
    if (r->err == RP_OK && *pending > RP_CSV_FIELD_BYTES_MAX) {
        return rp_fail(
            RP_ERR_LIMIT,
            "%s:%u:%u: the field is longer than %d bytes; a closing quote may be missing", r->path,
            r->row_line, r->count + 1, RP_CSV_FIELD_BYTES_MAX);
    }
    return r->err;
}

/* Reads up to the end of the line, or as many bytes as fit. Returns their number; 0: end of file.
 */
static size_t read_piece(FILE *file, char *piece) {
    size_t used = 0;
    int c = 0;
    while (used < PIECE_BYTES && c != '\n' && (c = getc_unlocked(file)) != EOF) {
        piece[used++] = (char)c;
    }
    return used;
}

/* Is the line blank or a comment? */
static bool is_ignored(const char *piece, size_t bytes) {
    size_t i = 0;
    while (i < bytes && strchr(" \t\r\n", piece[i]) && piece[i] != '\0') {
        i++;
    }
    return i == bytes || piece[i] == '#';
}

static rp_err read_lines(reader *r) {
    char piece[PIECE_BYTES];
    size_t bytes;
    size_t pending = 0;
    bool line_begins = true;
    bool skips = false;
    bool in_quotes = false;
    r->line = 1;
    while ((bytes = read_piece(r->file, piece)) > 0) {
        const bool marked = r->line == 1 && line_begins && bytes >= 3 &&
                            memcmp(piece, "\xef\xbb\xbf", 3) == 0; /* byte order mark of Excel */
        const char *from = marked ? piece + 3 : piece;
        bytes -= marked ? 3 : 0;
        if (line_begins) {
            skips = !in_quotes && is_ignored(from, bytes);
            r->row_ended = false;
            r->row_line = in_quotes ? r->row_line : r->line;
        }
        rp_err err = skips ? RP_OK : parse_piece(r, from, bytes, &pending);
        if (err != RP_OK) {
            return err;
        }
        line_begins = bytes == 0 || from[bytes - 1] == '\n';
        if (line_begins) {
            in_quotes = !skips && !r->row_ended;
            r->line++;
        }
    }
    if (ferror(r->file)) {
        return rp_fail(RP_ERR_IO, "%s: cannot be read: %s", r->path, strerror(errno));
    }
    if (csv_fini(&r->parser, take_field, take_row, r) != 0) {
        return fail_here(r, "the closing quote of this field is missing");
    }
    return r->err;
}

const char *rp_csv_delimiter_name(char delimiter) {
    return delimiter == ';' ? "semicolon" : delimiter == '\t' ? "tab" : "comma";
}

/* Counts delimiters in the first row, which may continue over lines inside of quotes. */
static void count_delimiters(FILE *file, uint32_t *comma, uint32_t *semicolon, uint32_t *tab) {
    char piece[PIECE_BYTES];
    size_t bytes;
    bool line_begins = true;
    bool silent = true;
    bool quoted = false;
    while ((silent || !line_begins || quoted) && (bytes = read_piece(file, piece)) > 0) {
        silent = line_begins ? silent && is_ignored(piece, bytes) : silent;
        line_begins = piece[bytes - 1] == '\n';
        for (size_t i = 0; i < bytes && !silent; i++) {
            quoted = quoted != (piece[i] == '"');
            *comma += !quoted && piece[i] == ',';
            *semicolon += !quoted && piece[i] == ';';
            *tab += !quoted && piece[i] == '\t';
        }
    }
}

rp_err rp_csv_guess_delimiter(const char *path, char *out) {
    uint32_t comma = 0;
    uint32_t semicolon = 0;
    uint32_t tab = 0;
    const char *why;
    FILE *file = rp_input_fopen(path, &why);
    if (!file) {
        return rp_fail(RP_ERR_IO, "%s: cannot be opened: %s", path, why);
    }
    count_delimiters(file, &comma, &semicolon, &tab);
    (void)fclose(file); /* rp_csv_read() reports errors */
    *out = comma > 0 || (semicolon > 0) == (tab > 0) ? ',' : semicolon > 0 ? ';' : '\t';
    return RP_OK;
}

rp_err rp_csv_read(const char *path, char delimiter,
                   rp_err (*on_row)(void *context, const rp_csv_row *row), void *context) {
    reader r = {.path = path, .on_row = on_row, .context = context};
    const char *why;
    r.file = rp_input_fopen(path, &why);
    if (!r.file) {
        return rp_fail(RP_ERR_IO, "%s: cannot be opened: %s", path, why);
    }
    if (csv_init(&r.parser, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL) != 0) {
        (void)fclose(r.file);
        return rp_fail(RP_ERR_MEMORY, "%s: no memory for libcsv", path);
    }
    rp_arena_init(&r.arena, "csv", 0);
    csv_set_delim(&r.parser, (unsigned char)delimiter);
    if (delimiter == '\t') {
        csv_set_space_func(&r.parser, is_blank);
    }
    rp_err err = read_lines(&r);
    csv_free(&r.parser);
    rp_arena_finish(&r.arena);
    (void)fclose(r.file);
    return err;
}
