#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/data.h"

enum { FIELD_BYTES = 64, LABEL_MAX = 65535, TARGETS_MAX = 65536, ROWS_MAX = 100 * 1000 * 1000 };

typedef struct {
    float *x[2];
    float *y[2];
    int32_t *labels[2];
} own;

/* Reads one file, field by field. */
typedef struct {
    const char *path;
    FILE *file;
    uint32_t line, column; /* of the field just read, from 1; column counts fields */
    char text[FIELD_BYTES];
    bool last; /* of its row */
} cursor;

static rp_err fail_at(const cursor *at, const char *expected) {
    return rp_fail(RP_ERR_FORMAT, "%s:%u:%u: expected %s, found '%s'", at->path, at->line,
                   at->column, expected, at->text);
}

/* Goes to the next row that has something to say; false at the end of the file. */
static bool next_row(cursor *at) {
    for (;;) {
        int c;
        at->line++;
        do {
            c = getc_unlocked(at->file);
        } while (c == ' ' || c == '\t' || c == '\r');
        if (c == EOF) {
            return false;
        }
        if (c != '#' && c != '\n') {
            (void)ungetc(c, at->file);
            at->column = 0;
            at->last = false;
            return true;
        }
        while (c != '\n' && c != EOF) {
            c = getc_unlocked(at->file);
        }
    }
}

/* The next field without the blanks around it. */
static rp_err next_field(cursor *at) {
    size_t used = 0;
    int c;
    at->column++;
    while ((c = getc_unlocked(at->file)) != ',' && c != '\n' && c != EOF) {
        if (c == '\0' || used == FIELD_BYTES - 1) {
            at->text[used] = '\0';
            return fail_at(at, "a number");
        }
        if (used > 0 || (c != ' ' && c != '\t')) {
            at->text[used++] = (char)c;
        }
    }
    while (used > 0 && strchr(" \t\r", at->text[used - 1])) {
        used--;
    }
    at->text[used] = '\0';
    at->last = c != ',';
    return RP_OK;
}

static rp_err read_real(const cursor *at, float *out) {
    char *end;
    /* strtod would also take hexadecimal, inf and nan. */
    if (at->text[0] == '\0' || at->text[strspn(at->text, "0123456789+-.eE")] != '\0') {
        return fail_at(at, "a finite number");
    }
    *out = (float)strtod(at->text, &end);
    return *end == '\0' && isfinite(*out) ? RP_OK : fail_at(at, "a finite number");
}

static rp_err read_label(const cursor *at, int32_t *out) {
    if (at->text[0] == '\0' || strlen(at->text) > 5 ||
        at->text[strspn(at->text, "0123456789")] != '\0') {
        return fail_at(at, "a class from 0 to 65535");
    }
    const long label = strtol(at->text, NULL, 10);
    *out = (int32_t)label;
    return label <= LABEL_MAX ? RP_OK : fail_at(at, "a class from 0 to 65535");
}

/* How many rows, and how many fields in the first. */
static rp_err measure_table(cursor *at, uint32_t *rows, uint32_t *fields) {
    *rows = 0;
    while (next_row(at)) {
        if (*rows == 0) {
            while (!at->last) {
                rp_err err = next_field(at);
                if (err != RP_OK) {
                    return err;
                }
            }
            *fields = at->column;
        } else {
            for (int c = 0; c != '\n' && c != EOF;) {
                c = getc_unlocked(at->file);
            }
        }
        if (++*rows > ROWS_MAX) {
            return rp_fail(RP_ERR_LIMIT, "%s: more than %d rows", at->path, ROWS_MAX);
        }
    }
    return RP_OK;
}

static rp_err read_row(cursor *at, uint32_t x_count, uint32_t fields, float *x, float *y,
                       int32_t *label) {
    rp_err err = RP_OK;
    while (!at->last) {
        RP_TRY(next_field(at));
        const uint32_t i = at->column - 1;
        if (i >= fields) {
            return rp_fail(RP_ERR_FORMAT, "%s:%u:%u: expected %u fields in a row", at->path,
                           at->line, at->column, fields);
        }
        if (i < x_count) {
            RP_TRY(read_real(at, &x[i]));
        } else if (label) {
            RP_TRY(read_label(at, label));
        } else {
            RP_TRY(read_real(at, &y[i - x_count]));
        }
    }
    if (at->column != fields) {
        return rp_fail(RP_ERR_FORMAT, "%s:%u:%u: expected %u fields in a row, found %u", at->path,
                       at->line, at->column, fields, at->column);
    }
fail:
    return err;
}

static rp_err check_fields(const cursor *at, const rp_data *data, rp_split split, uint32_t x_count,
                           uint32_t fields, bool class_target) {
    if (fields <= x_count || (class_target && fields != x_count + 1)) {
        return rp_fail(
            RP_ERR_FORMAT, "%s: expected %u x columns (the model's input) and %s, found %u columns",
            at->path, x_count, class_target ? "one class" : "at least one y column", fields);
    }
    if (fields - x_count > TARGETS_MAX ||
        (split == RP_SPLIT_TEST && fields - x_count != data->target_width)) {
        return rp_fail(RP_ERR_FORMAT, "%s: %u y columns, expected %u", at->path, fields - x_count,
                       data->target_width);
    }
    return RP_OK;
}

static rp_err read_rows(rp_arena *arena, rp_data *data, rp_split split, cursor *at,
                        bool class_target) {
    rp_err err = RP_OK;
    own *o = data->own;
    const uint32_t x_count = (uint32_t)rp_shape_count(&data->sample);
    uint32_t rows = 0;
    uint32_t fields = 0;
    RP_TRY(measure_table(at, &rows, &fields));
    if (ferror(at->file)) {
        return rp_fail(RP_ERR_IO, "%s: can not be read: %s", at->path, strerror(errno));
    }
    if (rows == 0) {
        return rp_fail(RP_ERR_FORMAT, "%s: has no rows", at->path);
    }
    RP_TRY(check_fields(at, data, split, x_count, fields, class_target));
    data->target_width = fields - x_count;
    data->count[split] = rows;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)rows * x_count, &o->x[split]));
    if (class_target) {
        RP_TRY(RP_ARENA_NEW(arena, rows, &o->labels[split]));
    } else {
        RP_TRY(RP_ARENA_NEW(arena, (size_t)rows * data->target_width, &o->y[split]));
    }
    rewind(at->file);
    at->line = 0;
    for (uint32_t i = 0; i < rows && next_row(at); i++) {
        int32_t *label = class_target ? &o->labels[split][i] : NULL;
        float *y = class_target ? NULL : o->y[split] + (size_t)i * data->target_width;
        RP_TRY(read_row(at, x_count, fields, o->x[split] + (size_t)i * x_count, y, label));
        if (label && (uint32_t)*label >= data->classes) {
            data->classes = (uint32_t)*label + 1;
        }
    }
fail:
    return err;
}

static rp_err open_set(rp_arena *arena, rp_data *data, rp_node *keys, const rp_shape *input,
                       bool class_target) {
    static const char *const names[] = {"train.csv", "test.csv"};
    rp_err err = RP_OK;
    const char *folder = NULL;
    own *o;
    if (!input || input->dims == 0 || !rp_shape_check(input)) {
        return rp_node_fail(rp_node_find(keys, "set"),
                            "a table needs a model whose `input` is a list of sizes");
    }
    RP_TRY(rp_node_need(keys, "path"));
    RP_TRY(rp_node_string(keys, "path", &folder));
    RP_TRY(RP_ARENA_NEW(arena, 1, &o));
    data->own = o;
    data->sample = *input;
    for (int split = RP_SPLIT_TRAIN; split <= RP_SPLIT_TEST; split++) {
        char *path;
        RP_TRY(rp_arena_printf(arena, &path, "%s/%s", folder, names[split]));
        cursor at = {.path = path, .file = fopen(path, "rbe")};
        if (!at.file && split == RP_SPLIT_TEST && errno == ENOENT) {
            break;
        }
        if (!at.file) {
            return rp_fail(RP_ERR_IO, "%s: can not be opened: %s", path, strerror(errno));
        }
        err = read_rows(arena, data, (rp_split)split, &at, class_target);
        (void)fclose(at.file);
        if (err != RP_OK) {
            return err;
        }
    }
fail:
    return err;
}

static rp_err read_sample(const rp_data *data, rp_split split, uint32_t index, float *x, float *row,
                          int32_t *label) {
    const own *o = data->own;
    const size_t x_count = rp_shape_count(&data->sample);
    memcpy(x, o->x[split] + index * x_count, x_count * sizeof *x);
    if (label && o->labels[split]) {
        *label = o->labels[split][index];
    }
    if (row && o->y[split]) {
        memcpy(row, o->y[split] + (size_t)index * data->target_width,
               data->target_width * sizeof *row);
    }
    return RP_OK;
}

const rp_data_kind rp_data_table = {
    .name = "table",
    .source = "train.csv and test.csv of numbers, x columns then y columns",
    .open = open_set,
    .read = read_sample,
};
