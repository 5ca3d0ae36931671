#include "data/describe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/replace.h"
#include "data/bpe_file.h"

enum { DIGITS = 17 /* enough to read back the same double */, PATH_BYTES = 4096 };

static void put_value(json_t *object, const char *key, json_t *value, bool *good) {
    *good = json_object_set_new(object, key, value) == 0 && *good;
}

static void append_value(json_t *list, json_t *value, bool *good) {
    *good = json_array_append_new(list, value) == 0 && *good;
}

/* Sets the key if `wanted`, else drops the reference to the value. */
static void put_or_drop(json_t *object, const char *key, json_t *value, bool wanted, bool *good) {
    if (wanted) {
        put_value(object, key, value, good);
    } else {
        json_decref(value);
    }
}

static void put_names(json_t *object, const char *key, const char *const *name, uint32_t count,
                      bool *good) {
    json_t *list = json_array();
    for (uint32_t i = 0; name && i < count; i++) {
        append_value(list, json_string(name[i]), good);
    }
    put_or_drop(object, key, list, name != NULL, good);
}

static void put_reals(json_t *object, const char *key, const double *value, uint32_t count,
                      bool *good) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        append_value(list, json_real(value[i]), good);
    }
    put_value(object, key, list, good);
}

/* Writes the column of each value of a sample; columns are counted from 1, as in a run file. */
static void put_fields(json_t *object, const rp_data *data, bool *good) {
    const rp_fields *fields = data->fields;
    json_t *names = json_array();
    json_t *columns = json_array();
    json_t *texts = json_array();
    json_t *fill = json_array();
    bool named = false;
    bool has_texts = false;
    for (uint32_t i = 0; i < fields->count; i++) {
        const rp_field *field = &fields->field[i];
        const char *name = field->name ? field->name : "";
        const uint32_t width = rp_field_width(field);
        named = named || field->name;
        has_texts = has_texts || field->texts.count > 0;
        for (uint32_t k = 0; k < width; k++) {
            const char *text = field->texts.count > 0 ? field->texts.name[k] : NULL;
            append_value(names, json_string(name), good);
            append_value(columns, json_integer(field->column + 1), good);
            append_value(texts, text ? json_string(text) : json_null(), good);
            append_value(fill, json_real(field->mean), good);
        }
    }
    put_or_drop(object, "x_names", names, named, good);
    put_value(object, "x_columns", columns, good);
    put_or_drop(object, "x_texts", texts, has_texts, good);
    put_names(object, "missing", fields->missing.name, fields->missing.count, good);
    put_or_drop(object, "x_fill", fill, fields->missing.count > 0, good);
}

static void put_parts(json_t *object, const rp_data *data, bool *good) {
    json_t *inputs = json_object();
    for (uint32_t i = 0; i < data->inputs; i++) {
        put_value(inputs, data->input[i].name, json_integer(data->input[i].size), good);
    }
    put_or_drop(object, "inputs", inputs, data->inputs > 0, good);
}

static void put_tokens(json_t *object, const rp_data *data, bool *good) {
    const rp_vocab *vocab = data->vocab;
    const rp_token_kind kind = vocab ? vocab->rules.kind : RP_TOKENS_IDS;
    put_value(object, "type", json_string("i32"), good);
    put_value(object, "tokens", json_string(rp_token_kinds[kind]), good);
    put_value(object, "token_count", json_integer(data->tokens), good);
    if (!vocab) {
        return;
    }
    put_value(object, "special", json_integer(vocab->special), good);
    if (kind == RP_TOKENS_WORDS) {
        put_value(object, "lower", json_boolean(vocab->rules.lower), good);
        put_value(object, "split", json_string(rp_token_splits[vocab->rules.by_space]), good);
    }
    if (vocab->bpe) {
        put_value(object, "tokenizer", rp_bpe_to_json(vocab->bpe), good);
    } else {
        put_names(object, "vocab", vocab->name, vocab->count, good);
    }
    put_value(object, "text_tokens", json_integer((json_int_t)data->text_tokens), good);
    put_value(object, "padding", json_real(data->padding), good);
}

/* `buckets`, if the set has any. */
static void put_buckets(json_t *object, const rp_buckets *buckets, bool *good) {
    json_t *list = json_array();
    for (uint32_t k = 0; k < buckets->count; k++) {
        append_value(list, json_integer(buckets->time[k]), good);
    }
    put_or_drop(object, "buckets", list, buckets->count > 0, good);
}

static json_t *make_description(const rp_data *data, bool *good) {
    json_t *object = json_object();
    json_t *sample = json_array();
    json_t *samples = json_object();
    for (uint32_t i = 0; i < data->sample.dims; i++) {
        append_value(sample, json_integer(data->sample.dim[i]), good);
    }
    for (rp_split split = RP_SPLIT_TRAIN; split < RP_SPLITS; split++) {
        put_value(samples, rp_split_name(split), json_integer(data->count[split]), good);
    }
    put_value(object, "version", json_integer(1), good);
    put_value(object, "set", json_string(data->kind->name), good);
    put_value(object, "sample", sample, good);
    put_parts(object, data, good);
    if (data->type == RP_I32) {
        put_tokens(object, data, good);
    }
    put_buckets(object, &data->buckets, good);
    put_value(object, "channels", json_integer(data->channels), good);
    put_value(object, "bytes", json_boolean(data->bytes), good);
    if (data->channels_last) {
        put_value(object, "channels_last", json_true(), good);
    }
    put_value(object, "target_width", json_integer(data->target_width), good);
    put_value(object, "classes", json_integer(data->classes), good);
    put_names(object, "class_names", data->class_name, data->classes, good);
    put_names(object, "y_names", data->y_name, data->target_width, good);
    if (data->fields) {
        put_value(object, "delimiter", json_string(rp_csv_delimiter_name(data->delimiter)), good);
        put_value(object, "columns", json_integer(data->columns), good);
        put_fields(object, data, good);
    }
    if (data->norm.known) {
        put_reals(object, "mean", data->norm.mean, data->norm.groups, good);
        put_reals(object, "std", data->norm.deviation, data->norm.groups, good);
    }
    put_value(object, "samples", samples, good);
    return object;
}

rp_err rp_data_describe(const rp_data *data, const char *path) {
    bool named = true;
    json_t *object = make_description(data, &named);
    FILE *file = named ? rp_replace_begin(path) : NULL;
    bool good = file && json_dumpf(object, file, JSON_INDENT(1) | JSON_REAL_PRECISION(DIGITS)) == 0;
    json_decref(object);
    good = good && putc('\n', file) != EOF;
    if (!named) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: the data set cannot be described; expected names in UTF-8", path);
    }
    return rp_replace_end(file, path, good);
}
