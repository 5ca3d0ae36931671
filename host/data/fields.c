#include "data/fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "base/utf8.h"
#include "data/columns.h"

enum { EXPECTED_BYTES = 256 };

rp_err rp_fields_read_missing(rp_arena *arena, rp_node *node, rp_fields *out) {
    rp_node *missing = rp_node_find(node, "missing");
    if (!missing || !rp_node_is_scalar(missing)) {
        return rp_labels_read(arena, node, "missing", &out->missing);
    }
    out->missing.given = true;
    const rp_err err = RP_ARENA_NEW(arena, 1, &out->missing.name);
    if (err == RP_OK) {
        out->missing.name[out->missing.count++] = rp_node_text(missing);
    }
    return err;
}

bool rp_fields_is_missing(const rp_fields *fields, const char *text) {
    return rp_labels_find(&fields->missing, text) < fields->missing.count;
}

/* Would C read the text as a number? This includes inf and nan, which programs write for a missing
 * number. */
static bool is_like_a_number(const char *text) {
    char *end;
    (void)strtod(text, &end);
    return *end == '\0';
}

/* Adds a hint if the text is one that many programs write for a missing value. */
static rp_err fail_field(const rp_csv_row *row, const rp_field *field, const char *expected) {
    static const char *const usual[] = {"",     "na", "n/a", "#n/a", "nan", "null",
                                        "none", "?",  "-",   ".",    NULL};
    const char *text = row->field[field->column];
    char more[EXPECTED_BYTES];
    uint32_t i = 0;
    while (usual[i] && strcasecmp(usual[i], text) != 0) {
        i++;
    }
    (void)snprintf(more, sizeof more, "%s%s%s", expected,
                   usual[i] ? " (if it marks a missing value, list it in data.missing)" : "",
                   text[0] == '\0' && row->line == 1
                       ? " (if this row has the names of columns, set `header: true`)"
                       : "");
    return rp_csv_fail(row, field->column, field->name, more);
}

/* ---- the training file ----------------------------------------------------------------------- */

static rp_err learn_text(rp_arena *arena, rp_field *field, const rp_csv_row *row) {
    const char *text = row->field[field->column];
    if (text[0] == '\0' || is_like_a_number(text)) {
        return fail_field(row, field, "a text, as in the rows before");
    }
    if (rp_labels_find(&field->texts, text) < field->texts.count) {
        return RP_OK;
    }
    if (!rp_utf8_is_valid(text)) {
        return rp_csv_fail(row, field->column, field->name, "UTF-8");
    }
    if (field->texts.count == RP_FIELD_TEXTS_MAX) {
        return rp_csv_fail(row, field->column, field->name,
                           "at most 1000 different texts in a column (`drop` removes it)");
    }
    return rp_labels_add(arena, &field->texts, text);
}

static rp_err learn_field(rp_arena *arena, const rp_fields *fields, rp_field *field,
                          const rp_csv_row *row) {
    const char *text = row->field[field->column];
    double number;
    if (rp_fields_is_missing(fields, text)) {
        field->missing++;
        return RP_OK;
    }
    if (!field->known) {
        field->known = true;
        if (text[0] != '\0' && !is_like_a_number(text)) {
            return learn_text(arena, field, row);
        }
    }
    if (field->texts.count > 0) {
        return learn_text(arena, field, row);
    }
    if (fields->missing.count > 0 && rp_columns_is_number(text, &number)) {
        field->numbers++;
        field->mean += (number - field->mean) / (double)field->numbers;
    }
    return RP_OK;
}

rp_err rp_fields_learn(rp_arena *arena, rp_fields *fields, const rp_csv_row *row) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < fields->count && err == RP_OK; i++) {
        err = learn_field(arena, fields, &fields->field[i], row);
    }
    return err;
}

rp_err rp_fields_finish(const rp_fields *fields, const char *path) {
    uint64_t width = 0;
    for (uint32_t i = 0; i < fields->count; i++) {
        const rp_field *field = &fields->field[i];
        width += rp_field_width(field);
        if (!field->known) {
            return rp_fail(RP_ERR_FORMAT,
                           "%s: column %u%s%s%s has no value in any row; remove it with `drop`",
                           path, field->column + 1, field->name ? " '" : "",
                           field->name ? field->name : "", field->name ? "'" : "");
        }
    }
    return width <= RP_FIELD_VALUES_MAX
               ? RP_OK
               : rp_fail(RP_ERR_LIMIT, "%s: a sample has more than %d values", path,
                         RP_FIELD_VALUES_MAX);
}

/* ---- any file -------------------------------------------------------------------------------- */

uint32_t rp_field_width(const rp_field *field) {
    return field->texts.count > 0 ? field->texts.count : 1;
}

uint32_t rp_fields_width(const rp_fields *fields) {
    uint32_t width = 0;
    for (uint32_t i = 0; i < fields->count; i++) {
        width += rp_field_width(&fields->field[i]);
    }
    return width;
}

bool rp_fields_fit(const rp_fields *fields, const rp_csv_row *row) {
    double number;
    for (uint32_t i = 0; i < fields->count; i++) {
        const rp_field *field = &fields->field[i];
        const char *text = field->column < row->count ? row->field[field->column] : "";
        const bool known = field->texts.count > 0
                               ? rp_labels_find(&field->texts, text) < field->texts.count
                               : rp_columns_is_number(text, &number);
        if (!known && !rp_fields_is_missing(fields, text)) {
            return false;
        }
    }
    return true;
}

static rp_err fail_text(const rp_csv_row *row, const rp_field *field) {
    const char *text = row->field[field->column];
    char expected[EXPECTED_BYTES];
    rp_nearest nearest = {.word = text};
    for (uint32_t i = 0; i < field->texts.count; i++) {
        rp_nearest_offer(&nearest, field->texts.name[i]);
    }
    (void)snprintf(expected, sizeof expected, "one of the %u texts of the training file%s%s%s",
                   field->texts.count, nearest.best ? " (as '" : "",
                   nearest.best ? nearest.best : "", nearest.best ? "')" : "");
    return fail_field(row, field, expected);
}

static rp_err read_field(const rp_fields *fields, const rp_field *field, const rp_csv_row *row,
                         double *number) {
    const char *text = row->field[field->column];
    if (rp_fields_is_missing(fields, text)) {
        *number = (double)NAN;
        return RP_OK;
    }
    if (field->texts.count > 0) {
        const uint32_t place = rp_labels_find(&field->texts, text);
        *number = place;
        return place < field->texts.count ? RP_OK : fail_text(row, field);
    }
    return rp_columns_is_number(text, number) && isfinite((float)*number)
               ? RP_OK
               : fail_field(row, field, "a finite number");
}

rp_err rp_fields_read(const rp_fields *fields, const rp_csv_row *row, double *number) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < fields->count && err == RP_OK; i++) {
        err = read_field(fields, &fields->field[i], row, &number[i]);
    }
    return err;
}

void rp_fields_spread(const rp_fields *fields, const double *number, double *value) {
    for (uint32_t i = 0; i < fields->count; i++) {
        const rp_field *field = &fields->field[i];
        const bool missing = isnan(number[i]);
        if (field->texts.count == 0) {
            *value++ = missing ? field->mean : number[i];
            continue;
        }
        for (uint32_t k = 0; k < field->texts.count; k++) {
            *value++ = !missing && number[i] == k ? 1 : 0;
        }
    }
}
