#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/columns.h"
#include "data/data.h"
#include "data/labels.h"

enum { LABEL_MAX = 65535, TARGETS_MAX = 65536 };

typedef struct {
    double *x[2];
    float *y[2];
    int32_t *labels[2];
} own;

/* What both files of a set share. */
typedef struct {
    rp_arena *arena;
    rp_data *data;
    rp_column_keys keys;
    char delimiter;
    bool class_target;
    uint32_t x_wanted; /* the model's input; 0: it follows the file */
    bool named;        /* classes are names */
    bool first_known;  /* a label has been seen: `named` holds */
    rp_labels labels;
    rp_columns train; /* of the training file */
} table;

/* One file, read twice: measured, then filled in. */
typedef struct {
    table *of;
    rp_split split;
    rp_columns columns;
    uint32_t rows;
    bool began; /* its first row has been seen */
    double *x;
    float *y;
    int32_t *labels;
} table_file;

static rp_err read_class(const table_file *file, const rp_csv_row *row, uint32_t at, int32_t *out) {
    const table *t = file->of;
    const char *text = row->field[at];
    const char *name = file->columns.column[at].name;
    if (t->named) {
        const uint32_t class = rp_labels_find(&t->labels, text);
        *out = (int32_t) class;
        return class < t->labels.count
                   ? RP_OK
                   : rp_csv_fail(row, at, name,
                                 t->labels.given ? "one of the names in `classes`"
                                                 : "a class that the training file has");
    }
    if (text[0] == '\0' || strlen(text) > 5 || text[strspn(text, "0123456789")] != '\0') {
        return rp_csv_fail(row, at, name, "a class from 0 to 65535");
    }
    const long label = strtol(text, NULL, 10);
    *out = (int32_t)label;
    return label <= LABEL_MAX ? RP_OK : rp_csv_fail(row, at, name, "a class from 0 to 65535");
}

/* ---- first pass ------------------------------------------------------------------------------ */

static rp_err check_columns(const table_file *file, const rp_csv_row *row) {
    const table *t = file->of;
    const rp_columns *c = &file->columns;
    const uint32_t wanted = t->x_wanted > 0 ? t->x_wanted : c->x_count;
    if (c->x_count != wanted || c->y_count == 0 || (t->class_target && c->y_count != 1)) {
        return rp_fail(
            RP_ERR_FORMAT,
            "%s:%u: expected %u x columns (the model's input) and %s, found %u columns%s",
            row->path, row->line, wanted, t->class_target ? "one class" : "at least one y column",
            c->count, c->count == 1 ? "; is `delimiter` right?" : "");
    }
    if (wanted == 0) {
        return rp_fail(RP_ERR_FORMAT, "%s:%u: of %u columns none is left as an input", row->path,
                       row->line, c->count);
    }
    if (c->y_count > TARGETS_MAX) {
        return rp_fail(RP_ERR_LIMIT, "%s:%u: %u y columns, expected at most %d", row->path,
                       row->line, c->y_count, TARGETS_MAX);
    }
    return RP_OK;
}

/* Which columns there are. *counts: the row has values, too. */
static rp_err take_first(table_file *file, const rp_csv_row *row, bool *counts) {
    table *t = file->of;
    const bool header = rp_columns_is_header(&t->keys, row);
    rp_err err;
    if (file->split == RP_SPLIT_TRAIN) {
        RP_TRY(rp_columns_choose(t->arena, &t->keys, row, t->x_wanted, &file->columns));
    } else {
        RP_TRY(rp_columns_match(t->arena, &t->train, row, header, &file->columns));
    }
    RP_TRY(check_columns(file, row));
    *counts = !header;
fail:
    return err;
}

/* The first class of the training file says whether classes are names. */
static rp_err note_class(table_file *file, const rp_csv_row *row) {
    table *t = file->of;
    double number;
    uint32_t at = 0;
    while (file->columns.column[at].role != RP_COLUMN_Y) {
        at++;
    }
    if (!t->first_known) {
        t->first_known = true;
        t->named = t->labels.given || !rp_columns_is_number(row->field[at], &number);
    }
    if (!t->named || t->labels.given) {
        return RP_OK;
    }
    if (row->field[at][0] == '\0' || rp_columns_is_number(row->field[at], &number)) {
        return rp_csv_fail(row, at, file->columns.column[at].name,
                           "the name of a class, as in the rows before");
    }
    return rp_labels_add(t->arena, &t->labels, row->field[at]);
}

static rp_err measure_row(void *context, const rp_csv_row *row) {
    table_file *file = context;
    bool counts = true;
    rp_err err = RP_OK;
    if (!file->began) {
        file->began = true;
        RP_TRY(take_first(file, row, &counts));
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
    if (file->split == RP_SPLIT_TRAIN && file->of->class_target) {
        RP_TRY(note_class(file, row));
    }
    file->rows++;
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
    double *x = file->x + (size_t)file->rows * c->x_count;
    float *y = file->y ? file->y + (size_t)file->rows * c->y_count : NULL;
    if (row->count != c->count || file->rows == file->of->data->count[file->split]) {
        return rp_fail(RP_ERR_IO, "%s:%u: the file changed while it was read", row->path,
                       row->line);
    }
    for (uint32_t i = 0; i < c->count; i++) {
        const rp_column *column = &c->column[i];
        if (column->role == RP_COLUMN_X) {
            RP_TRY(rp_columns_read_real(row, i, column->name, &x[column->index]));
        } else if (column->role == RP_COLUMN_Y && file->labels) {
            RP_TRY(read_class(file, row, i, &file->labels[file->rows]));
        } else if (column->role == RP_COLUMN_Y) {
            double target;
            RP_TRY(rp_columns_read_real(row, i, column->name, &target));
            y[column->index] = (float)target;
        }
    }
    file->rows++;
fail:
    return err;
}

static rp_err take_memory(table_file *file) {
    table *t = file->of;
    own *o = t->data->own;
    const size_t rows = file->rows;
    const rp_split split = file->split;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(t->arena, rows * file->columns.x_count, &o->x[split]));
    if (t->class_target) {
        RP_TRY(RP_ARENA_NEW(t->arena, rows, &o->labels[split]));
    } else {
        RP_TRY(RP_ARENA_NEW(t->arena, rows * file->columns.y_count, &o->y[split]));
    }
    file->x = o->x[split];
    file->y = o->y[split];
    file->labels = o->labels[split];
fail:
    return err;
}

static rp_err read_file(table *t, rp_split split, const char *path) {
    rp_data *data = t->data;
    table_file file = {.of = t, .split = split};
    rp_err err;
    RP_TRY(rp_csv_read(path, t->delimiter, measure_row, &file));
    if (file.rows == 0) {
        return rp_fail(RP_ERR_FORMAT, "%s: has no rows", path);
    }
    if (split == RP_SPLIT_TRAIN) {
        t->train = file.columns;
        data->target_width = file.columns.y_count;
        data->classes = t->named ? t->labels.count : 0;
        data->class_name = t->named ? t->labels.name : NULL;
        data->sample = t->x_wanted > 0 ? data->sample : rp_shape_1(file.columns.x_count);
    }
    data->count[split] = file.rows;
    RP_TRY(take_memory(&file));
    file.rows = 0;
    file.began = false;
    RP_TRY(rp_csv_read(path, t->delimiter, fill_row, &file));
    if (file.rows != data->count[split]) {
        return rp_fail(RP_ERR_IO, "%s: the file changed while it was read", path);
    }
    for (uint32_t i = 0; file.labels && !t->named && i < file.rows; i++) {
        if ((uint32_t)file.labels[i] >= data->classes) {
            data->classes = (uint32_t)file.labels[i] + 1;
        }
    }
fail:
    return err;
}

/* ---- the set --------------------------------------------------------------------------------- */

/* A folder with train.csv and perhaps test.csv, or a file and perhaps the file that `test:` names.
 */
static rp_err find_files(rp_arena *arena, rp_node *keys, rp_data *data, const char **train,
                         const char **test) {
    struct stat facts;
    const char *path = NULL;
    char *text;
    rp_err err;
    *test = NULL;
    RP_TRY(rp_data_find_path(keys, &path));
    *train = path;
    if (stat(path, &facts) == 0 && S_ISREG(facts.st_mode)) {
        err = rp_node_string(keys, "test", test);
        data->test_path = *test ? NULL : "data.test";
        return err;
    }
    RP_TRY(rp_arena_printf(arena, &text, "%s/train.csv", path));
    *train = text;
    RP_TRY(rp_arena_printf(arena, &text, "%s/test.csv", path));
    *test = access(text, F_OK) == 0 || errno != ENOENT ? text : NULL;
    data->test_path = *test ? NULL : text;
fail:
    return err;
}

static rp_err read_keys(table *t, rp_node *keys) {
    static const char *const words[] = {"comma", "semicolon", "tab", NULL};
    uint32_t delimiter = 0;
    rp_err err;
    RP_TRY(rp_columns_read_keys(keys, &t->keys));
    RP_TRY(rp_node_word(keys, "delimiter", words, &delimiter));
    t->delimiter = ",;\t"[delimiter];
    RP_TRY(rp_labels_read(t->arena, keys, "classes", &t->labels));
    if (t->labels.given && !t->class_target) {
        return rp_node_fail(rp_node_find(keys, "classes"), "needs `loss: cross-entropy`");
    }
fail:
    return err;
}

/* Names of the columns and where the inputs are, for what is written of the set. */
static rp_err name_columns(table *t) {
    const rp_columns *c = &t->train;
    const char **x;
    const char **y;
    uint32_t *x_column;
    rp_err err = RP_OK;
    RP_TRY(RP_ARENA_NEW(t->arena, c->x_count, &x_column));
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->column[i].role == RP_COLUMN_X) {
            x_column[c->column[i].index] = i;
        }
    }
    t->data->x_column = x_column;
    t->data->columns = c->count;
    t->data->delimiter = t->delimiter;
    if (!c->header) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(t->arena, c->x_count, &x));
    RP_TRY(RP_ARENA_NEW(t->arena, c->y_count, &y));
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->column[i].role != RP_COLUMN_DROPPED) {
            (c->column[i].role == RP_COLUMN_X ? x : y)[c->column[i].index] = c->column[i].name;
        }
    }
    t->data->x_name = x;
    t->data->y_name = y;
fail:
    return err;
}

static rp_err open_set(rp_arena *arena, rp_data *data, rp_node *keys, const rp_shape *input,
                       bool class_target) {
    table t = {.arena = arena, .data = data, .class_target = class_target};
    const bool stated = input && input->dims > 0 && rp_shape_check(input);
    const char *train;
    const char *test;
    rp_err err;
    own *o;
    RP_TRY(read_keys(&t, keys));
    if (!stated && !class_target && !t.keys.target) {
        return rp_node_fail(rp_node_find(keys, "set"),
                            "a table needs a model whose `input` is a list of sizes, or `target`");
    }
    RP_TRY(find_files(arena, keys, data, &train, &test));
    RP_TRY(RP_ARENA_NEW(arena, 1, &o));
    data->own = o;
    if (stated) {
        data->sample = *input;
        t.x_wanted = (uint32_t)rp_shape_count(input);
    }
    RP_TRY(read_file(&t, RP_SPLIT_TRAIN, train));
    if (test) {
        RP_TRY(read_file(&t, RP_SPLIT_TEST, test));
    }
    RP_TRY(name_columns(&t));
    RP_TRY(rp_norm_set(arena, &data->norm, t.train.x_count, NULL, NULL));
fail:
    return err;
}

static rp_err read_sample(const rp_data *data, rp_split split, uint32_t index, double *value,
                          float *row, int32_t *label) {
    const own *o = data->own;
    const size_t x_count = rp_shape_count(&data->sample);
    memcpy(value, o->x[split] + index * x_count, x_count * sizeof *value);
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
    .source = "a CSV file or a folder with train.csv and test.csv: numbers, and targets or classes",
    .open = open_set,
    .read_real = read_sample,
};
