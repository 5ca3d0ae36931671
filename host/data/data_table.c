#include <string.h>

#include "data/table_file.h"

static rp_err read_delimiter(rp_table *t, rp_node *keys, const char *train) {
    static const char *const words[] = {"auto", "comma", "semicolon", "tab", NULL};
    uint32_t delimiter = 0;
    rp_err err;
    RP_TRY(rp_node_word(keys, "delimiter", words, &delimiter));
    t->delimiter = " ,;\t"[delimiter];
    if (delimiter > 0) {
        return RP_OK;
    }
    RP_TRY(rp_csv_guess_delimiter(train, &t->delimiter));
    if (t->delimiter != ',') {
        RP_TRY(rp_notes_add(t->arena, &t->data->notes,
                            "%s: fields are separated as by `delimiter: %s`", train,
                            rp_csv_delimiter_name(t->delimiter)));
    }
fail:
    return err;
}

static rp_err read_keys(rp_table *t, rp_node *keys) {
    rp_err err;
    RP_TRY(rp_columns_read_keys(keys, &t->keys));
    RP_TRY(rp_fields_read_missing(t->arena, keys, &t->fields));
    RP_TRY(rp_labels_read(t->arena, keys, "classes", &t->labels));
    if (t->labels.given && !t->class_target) {
        return rp_node_fail(rp_node_find(keys, "classes"), "needs `loss: cross-entropy`");
    }
fail:
    return err;
}

static rp_err name_targets(rp_table *t) {
    const rp_columns *c = &t->train;
    const char **name;
    if (!c->header) {
        return RP_OK;
    }
    rp_err err = RP_ARENA_NEW(t->arena, c->y_count, &name);
    for (uint32_t i = 0; i < c->count && err == RP_OK; i++) {
        if (c->column[i].role == RP_COLUMN_Y) {
            name[c->column[i].index] = c->column[i].name;
        }
    }
    t->data->y_name = err == RP_OK ? name : NULL;
    return err;
}

static rp_err open_set(rp_arena *arena, rp_data *data, rp_node *keys, const rp_data_input *input,
                       bool class_target) {
    const bool stated = input->shape.dims > 0 && rp_shape_check(&input->shape);
    const char *train;
    const char *test;
    rp_table *t;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &t));
    *t = (rp_table){.arena = arena, .data = data, .class_target = class_target};
    data->own = t;
    RP_TRY(read_keys(t, keys));
    if (!stated && !class_target && !t->keys.target) {
        return rp_node_fail(rp_node_find(keys, "set"),
                            "a table needs `target`, or a model whose `input` is a list of sizes, "
                            "to tell inputs from targets");
    }
    RP_TRY(rp_data_find_files(arena, keys, ".csv", data, &train, &test));
    RP_TRY(read_delimiter(t, keys, train));
    if (stated) {
        data->sample = input->shape;
        t->x_wanted = (uint32_t)rp_shape_count(&input->shape);
    }
    RP_TRY(rp_table_read_file(t, RP_SPLIT_TRAIN, train));
    if (test) {
        RP_TRY(rp_table_read_file(t, RP_SPLIT_TEST, test));
    }
    RP_TRY(name_targets(t));
    data->fields = &t->fields;
    data->columns = t->train.count;
    data->delimiter = t->delimiter;
    RP_TRY(rp_norm_set(arena, &data->norm, rp_fields_width(&t->fields), NULL, NULL));
fail:
    return err;
}

static rp_err read_sample(const rp_data *data, rp_split split, uint32_t index, double *value,
                          float *row, int32_t *label) {
    const rp_table *t = data->own;
    rp_fields_spread(&t->fields, t->x[split] + (size_t)index * t->fields.count, value);
    if (label && t->labels_of[split]) {
        *label = t->labels_of[split][index];
    }
    if (row && t->y[split]) {
        memcpy(row, t->y[split] + (size_t)index * data->target_width,
               data->target_width * sizeof *row);
    }
    return RP_OK;
}

static rp_err read_label(const rp_data *data, uint32_t index, int32_t *label) {
    const rp_table *t = data->own;
    *label = t->labels_of[RP_SPLIT_TRAIN][index];
    return RP_OK;
}

const rp_data_kind rp_data_table = {
    .name = "table",
    .source = "a CSV file or a folder with train.csv and test.csv: numbers and texts, and targets "
              "or classes",
    .open = open_set,
    .read_real = read_sample,
    .read_label = read_label,
};
