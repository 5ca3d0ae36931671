#include "data/table_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { LABEL_MAX = 65535, TARGETS_MAX = 65536, EXPECTED_BYTES = 80, SHOWN_BYTES = 60 };

typedef struct {
    rp_table *of;
    rp_split split;
    rp_columns columns;
    rp_fields fields; /* the table's, with the columns of this file */
    uint32_t rows;
    bool began;   /* the first row has been read */
    bool counted; /* the first row is 0, 1, 2 ... or 1, 2, 3 ... */
    bool guessed; /* the first row was taken for a header because it looks like one */
    double *x;
    float *y;
    int32_t *labels;
} table_file;

static rp_err read_class(const table_file *file, const rp_csv_row *row, uint32_t at, int32_t *out) {
    const rp_table *t = file->of;
    const char *text = row->field[at];
    const char *name = file->columns.column[at].name;
    char expected[EXPECTED_BYTES];
    if (t->named) {
        const uint32_t class = rp_labels_find(&t->labels, text);
        *out = (int32_t) class;
        return class < t->labels.count
                   ? RP_OK
                   : rp_csv_fail(row, at, name,
                                 t->labels.given ? "one of the names in `classes`"
                                                 : "a class of the training file");
    }
    if (text[0] == '\0' || strlen(text) > 5 || text[strspn(text, "0123456789")] != '\0') {
        return rp_csv_fail(row, at, name, "a class from 0 to 65535");
    }
    const long label = strtol(text, NULL, 10);
    *out = (int32_t)label;
    if (file->split == RP_SPLIT_TEST && label >= (long)t->data->classes) {
        (void)snprintf(expected, sizeof expected, "a class of the training file, from 0 to %u",
                       t->data->classes - 1);
        return rp_csv_fail(row, at, name, expected);
    }
    return label <= LABEL_MAX ? RP_OK : rp_csv_fail(row, at, name, "a class from 0 to 65535");
}

/* ---- first pass: measure --------------------------------------------------------------------- */

static rp_err check_columns(const table_file *file, const rp_csv_row *row) {
    const rp_table *t = file->of;
    const rp_columns *c = &file->columns;
    const uint32_t wanted = t->x_wanted > 0 ? t->x_wanted : c->x_count;
    const bool bad_inputs = c->x_count > wanted || (!t->keys.target && c->x_count != wanted);
    char shown[2 * SHOWN_BYTES];
    if (c->count == 1) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s:%u: expected inputs and a target, found only one column, '%s': check "
                       "`delimiter`",
                       row->path, row->line,
                       rp_utf8_show(row->field[0], SHOWN_BYTES, shown, sizeof shown));
    }
    if (bad_inputs || c->y_count == 0 || (t->class_target && c->y_count != 1)) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s:%u: expected %u x columns (the model's input) and %s, found %u columns",
                       row->path, row->line, wanted,
                       t->class_target ? "one class" : "at least one y column", c->count);
    }
    if (c->x_count == 0) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s:%u: no input is left: all %u columns are targets or dropped", row->path,
                       row->line, c->count);
    }
    if (c->y_count > TARGETS_MAX) {
        return rp_fail(RP_ERR_LIMIT, "%s:%u: has %u y columns, expected at most %d", row->path,
                       row->line, c->y_count, TARGETS_MAX);
    }
    return RP_OK;
}

static rp_err note_columns(const table_file *file, const rp_csv_row *row) {
    rp_table *t = file->of;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < file->columns.count && err == RP_OK; i++) {
        const rp_column *column = &file->columns.column[i];
        if (column->role == RP_COLUMN_X && column->name && column->name[0] == '\0') {
            err = rp_notes_add(t->arena, &t->data->notes,
                               "%s: column %u has no name and is an input; `drop: [\"\"]` removes "
                               "it",
                               row->path, i + 1);
        }
    }
    return err;
}

/* Finds the training file's inputs in the columns of this file. */
static rp_err open_fields(table_file *file) {
    rp_table *t = file->of;
    const rp_columns *c = &file->columns;
    rp_err err;
    file->fields = t->fields;
    file->fields.count = c->x_count;
    RP_TRY(RP_ARENA_NEW(t->arena, c->x_count, &file->fields.field));
    if (file->split == RP_SPLIT_TEST) {
        memcpy(file->fields.field, t->fields.field, c->x_count * sizeof *t->fields.field);
    }
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->column[i].role == RP_COLUMN_X) {
            file->fields.field[c->column[i].index].column = i;
            file->fields.field[c->column[i].index].name = c->column[i].name;
        }
    }
fail:
    return err;
}

/* Is the first row a header? A row of texts can be a sample: if it has a missing value, or if it
 * fits a training file without a header. */
static bool is_header(const table_file *file, const rp_csv_row *row) {
    const rp_table *t = file->of;
    bool missing = false;
    for (uint32_t i = 0; i < row->count; i++) {
        const char *text = row->field[i];
        missing = missing || (text[0] != '\0' && rp_fields_is_missing(&t->fields, text));
    }
    const bool sample = missing || (file->split == RP_SPLIT_TEST && !t->train.header &&
                                    rp_fields_fit(&t->fields, row));
    return rp_columns_is_header(&t->keys, row) && !(t->keys.header == RP_HEADER_AUTO && sample);
}

/* Finds the columns. *counts: the row is a sample, not a header. */
static rp_err take_first_row(table_file *file, const rp_csv_row *row, bool *counts) {
    rp_table *t = file->of;
    const bool header = is_header(file, row);
    rp_err err;
    file->guessed = header && t->keys.header == RP_HEADER_AUTO;
    if (file->split == RP_SPLIT_TRAIN) {
        RP_TRY(rp_columns_choose(t->arena, &t->keys, row, header, t->x_wanted, &file->columns));
        RP_TRY(check_columns(file, row));
        RP_TRY(note_columns(file, row));
        file->counted = t->keys.header == RP_HEADER_AUTO && rp_columns_are_counted(row);
    } else {
        RP_TRY(rp_columns_match(t->arena, &t->train, row, header, &file->columns));
    }
    RP_TRY(open_fields(file));
    *counts = !header;
fail:
    return err;
}

/* The first class of the training file decides whether classes are names or numbers. */
static rp_err learn_class(table_file *file, const rp_csv_row *row) {
    rp_table *t = file->of;
    double number;
    uint32_t at = 0;
    while (file->columns.column[at].role != RP_COLUMN_Y) {
        at++;
    }
    const char *text = row->field[at];
    const char *name = file->columns.column[at].name;
    if (rp_fields_is_missing(&t->fields, text)) {
        return rp_csv_fail(row, at, name, "a class, which may not be missing");
    }
    if (!t->first_known) {
        t->first_known = true;
        t->named = t->labels.given || !rp_columns_is_number(text, &number);
    }
    if (!t->named || t->labels.given) {
        return RP_OK;
    }
    if (text[0] == '\0' || rp_columns_is_number(text, &number)) {
        return rp_csv_fail(row, at, name, "the name of a class, as in the rows before");
    }
    if (rp_labels_find(&t->labels, text) == t->labels.count && !rp_utf8_is_valid(text)) {
        return rp_csv_fail(row, at, name, "the name of a class in UTF-8");
    }
    return rp_labels_add(t->arena, &t->labels, text);
}

/* Adds a note if the first row was taken for a header in a file that has only texts. */
static rp_err note_guessed(table_file *file, const rp_csv_row *row) {
    rp_table *t = file->of;
    double number;
    for (uint32_t i = 0; i < row->count; i++) {
        if (rp_columns_is_number(row->field[i], &number)) {
            return RP_OK;
        }
    }
    return rp_notes_add(t->arena, &t->data->notes,
                        "%s: the first row is taken as names of columns; if it is a sample, set "
                        "`header: false`",
                        row->path);
}

/* Adds a note if the first row may have been misread: consecutive numbers may be names of columns
 * that a program wrote. */
static rp_err note_first(table_file *file, const rp_csv_row *row) {
    rp_table *t = file->of;
    if (file->rows == 0 && file->guessed) {
        return note_guessed(file, row);
    }
    if (file->rows != 1 || !file->counted || rp_columns_are_counted(row)) {
        return RP_OK;
    }
    return rp_notes_add(t->arena, &t->data->notes,
                        "%s: the first row, which counts the columns, is taken as a sample; if it "
                        "has their names, set `header: true`",
                        row->path);
}

static rp_err measure_row(void *context, const rp_csv_row *row) {
    table_file *file = context;
    bool counts = true;
    rp_err err = RP_OK;
    if (!file->began) {
        file->began = true;
        RP_TRY(take_first_row(file, row, &counts));
    }
    if (!counts) {
        return RP_OK;
    }
    if (row->count != file->columns.count) {
        const uint32_t more = file->columns.count + 1;
        return rp_fail(RP_ERR_FORMAT, "%s:%u:%u: expected %u fields in a row, found %u", row->path,
                       row->line, row->count < more ? row->count : more, file->columns.count,
                       row->count);
    }
    if (file->split == RP_SPLIT_TRAIN) {
        RP_TRY(note_first(file, row));
        RP_TRY(file->of->class_target ? learn_class(file, row) : RP_OK);
        RP_TRY(rp_fields_learn(file->of->arena, &file->fields, row));
    }
    file->rows++;
fail:
    return err;
}

/* ---- the set, from the training file --------------------------------------------------------- */

static rp_err note_texts(rp_table *t, const rp_field *field, const char *path) {
    char text[RP_NOTE_BYTES / 2];
    size_t used = 0;
    for (uint32_t i = 0; i < field->texts.count && used < sizeof text; i++) {
        const int more =
            snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : "", field->texts.name[i]);
        used += more > 0 ? (size_t)more : 0;
    }
    return rp_notes_add(t->arena, &t->data->notes,
                        "%s: column %u%s%s%s has texts; each becomes an input of 0 or 1 (%u: %s%s)",
                        path, field->column + 1, field->name ? " '" : "",
                        field->name ? field->name : "", field->name ? "'" : "", field->texts.count,
                        text, used < sizeof text ? "" : "...");
}

static rp_err note_fields(rp_table *t, uint32_t rows, const char *path) {
    uint64_t missing = 0;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < t->fields.count; i++) {
        const rp_field *field = &t->fields.field[i];
        missing += field->missing;
        RP_TRY(field->texts.count > 0 ? note_texts(t, field, path) : RP_OK);
    }
    if (missing > 0) {
        RP_TRY(rp_notes_add(t->arena, &t->data->notes,
                            "%s: %llu values in %u rows are missing: a number becomes the mean of "
                            "its column, a text becomes 0 for all texts",
                            path, (unsigned long long)missing, rows));
    }
fail:
    return err;
}

static rp_err take_training(rp_table *t, const table_file *file, const char *path) {
    rp_data *data = t->data;
    rp_err err;
    t->train = file->columns;
    t->fields = file->fields;
    RP_TRY(rp_fields_finish(&t->fields, path));
    const uint32_t width = rp_fields_width(&t->fields);
    if (t->x_wanted > 0 && width != t->x_wanted) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: expected %u input values (the model's input), found %u columns with "
                       "%u values%s",
                       path, t->x_wanted, t->fields.count, width,
                       t->keys.target ? "" : "; name the column of targets with `target`");
    }
    data->target_width = file->columns.y_count;
    data->classes = t->named ? t->labels.count : 0;
    data->class_name = t->named ? t->labels.name : NULL;
    data->sample = t->x_wanted > 0 ? data->sample : rp_shape_1(width);
    RP_TRY(note_fields(t, file->rows, path));
fail:
    return err;
}

/* ---- second pass ----------------------------------------------------------------------------- */

static rp_err fill_row(void *context, const rp_csv_row *row) {
    table_file *file = context;
    const rp_columns *c = &file->columns;
    rp_err err = RP_OK;
    if (!file->began) {
        file->began = true;
        if (c->header) {
            return RP_OK;
        }
    }
    if (row->count != c->count || file->rows == file->of->data->count[file->split]) {
        return rp_fail(RP_ERR_IO, "%s:%u: the file changed while it was read", row->path,
                       row->line);
    }
    RP_TRY(rp_fields_read(&file->fields, row, file->x + (size_t)file->rows * c->x_count));
    for (uint32_t i = 0; i < c->count; i++) {
        const rp_column *column = &c->column[i];
        double target;
        if (column->role == RP_COLUMN_Y && file->labels) {
            RP_TRY(read_class(file, row, i, &file->labels[file->rows]));
        } else if (column->role == RP_COLUMN_Y) {
            RP_TRY(rp_columns_read_real(row, i, column->name, &target));
            file->y[(size_t)file->rows * c->y_count + column->index] = (float)target;
        }
    }
    file->rows++;
fail:
    return err;
}

static rp_err take_memory(table_file *file) {
    rp_table *t = file->of;
    const size_t rows = file->rows;
    const rp_split split = file->split;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(t->arena, rows * file->columns.x_count, &t->x[split]));
    if (t->class_target) {
        RP_TRY(RP_ARENA_NEW(t->arena, rows, &t->labels_of[split]));
    } else {
        RP_TRY(RP_ARENA_NEW(t->arena, rows * file->columns.y_count, &t->y[split]));
    }
    file->x = t->x[split];
    file->y = t->y[split];
    file->labels = t->labels_of[split];
fail:
    return err;
}

rp_err rp_table_read_file(rp_table *t, rp_split split, const char *path) {
    rp_data *data = t->data;
    table_file file = {.of = t, .split = split};
    rp_err err;
    RP_TRY(rp_csv_read(path, t->delimiter, measure_row, &file));
    if (file.rows == 0) {
        return rp_fail(RP_ERR_FORMAT, "%s: has no rows of data; expected one sample in each row",
                       path);
    }
    RP_TRY(split == RP_SPLIT_TRAIN ? take_training(t, &file, path) : RP_OK);
    data->count[split] = file.rows;
    RP_TRY(take_memory(&file));
    file.rows = 0;
    file.began = false;
    RP_TRY(rp_csv_read(path, t->delimiter, fill_row, &file));
    if (file.rows != data->count[split]) {
        return rp_fail(RP_ERR_IO, "%s: the file changed while it was read", path);
    }
    for (uint32_t i = 0; split == RP_SPLIT_TRAIN && file.labels && !t->named && i < file.rows;
         i++) {
        if ((uint32_t)file.labels[i] >= data->classes) {
            data->classes = (uint32_t)file.labels[i] + 1;
        }
    }
fail:
    return err;
}
