/* Reads data.json; every length is checked before memory is taken. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "base/input.h"
#include "data/bpe_file.h"
#include "data/describe.h"
#include "data/labels.h"

enum { COLUMNS_MAX = 1 << 20, WIDTH_MAX = 1 << 20, PATH_BYTES = 4096 };

static rp_err fail_key(const char *path, const char *key, const char *expected) {
    return rp_fail(RP_ERR_FORMAT, "%s: `%s`: expected %s", path, key, expected);
}

/* Reads a whole number; if the key is missing *out is unchanged. */
static rp_err read_whole(const json_t *root, const char *path, const char *key, uint32_t most,
                         uint32_t *out) {
    const json_t *value = json_object_get(root, key);
    if (!value) {
        return RP_OK;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) > (json_int_t)most) {
        return rp_fail(RP_ERR_FORMAT, "%s: `%s`: expected a whole number from 0 to %u", path, key,
                       most);
    }
    *out = (uint32_t)json_integer_value(value);
    return RP_OK;
}

static rp_err read_sample(const json_t *root, const char *path, rp_shape *out) {
    const json_t *list = json_object_get(root, "sample");
    const size_t dims = json_array_size(list);
    if (dims < 1 || dims > RP_DIMS_MAX - 1) {
        return fail_key(path, "sample", "a list of sizes");
    }
    *out = (rp_shape){.dims = (uint32_t)dims};
    for (uint32_t i = 0; i < dims; i++) {
        const json_int_t size = json_integer_value(json_array_get(list, i));
        if (size < 1 || size > UINT32_MAX) {
            return fail_key(path, "sample", "a list of sizes");
        }
        out->dim[i] = (uint32_t)size;
    }
    return rp_shape_check(out) ? RP_OK
                               : fail_key(path, "sample", "sizes above 0 that fit into memory");
}

/* Reads the inputs of the model by name, which fill the first dimension of a sample together. */
static rp_err read_parts(rp_arena *arena, json_t *root, const char *path, rp_description *out) {
    static const char expected[] = "2 to 8 names, each with its part of the first size of `sample`";
    json_t *inputs = json_object_get(root, "inputs");
    const char *name;
    json_t *value;
    uint64_t sum = 0;
    rp_err err = RP_OK;
    if (!inputs) {
        return RP_OK;
    }
    if (json_object_size(inputs) < 2 || json_object_size(inputs) > RP_DATA_PARTS_MAX) {
        return fail_key(path, "inputs", expected);
    }
    json_object_foreach(inputs, name, value) {
        const json_int_t size = json_integer_value(value);
        char *copy;
        if (size < 1 || size > UINT32_MAX) {
            return fail_key(path, "inputs", expected);
        }
        RP_TRY(rp_arena_string(arena, name, &copy));
        out->part[out->parts++] = (rp_data_part){.name = copy, .size = (uint32_t)size};
        sum += (uint64_t)size;
    }
    if (sum != out->sample.dim[0]) {
        return fail_key(path, "inputs", expected);
    }
fail:
    return err;
}

/* Reads `count` texts; *out NULL: the key is missing. */
static rp_err read_names(rp_arena *arena, const json_t *root, const char *path, const char *key,
                         uint32_t count, const char *const **out) {
    const json_t *list = json_object_get(root, key);
    const char **name;
    rp_err err = RP_OK;
    *out = NULL;
    if (!list) {
        return RP_OK;
    }
    if (json_array_size(list) != count) {
        return rp_fail(RP_ERR_FORMAT, "%s: `%s`: expected a list of %u names", path, key, count);
    }
    RP_TRY(RP_ARENA_NEW(arena, count + 1, &name));
    for (uint32_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        char *copy;
        if (!text) {
            return rp_fail(RP_ERR_FORMAT, "%s: `%s`: entry %u is not a text", path, key, i);
        }
        RP_TRY(rp_arena_string(arena, text, &copy));
        name[i] = copy;
    }
    *out = name;
fail:
    return err;
}

static rp_err read_reals(const json_t *root, const char *path, const char *key, double *out,
                         size_t count) {
    const json_t *list = json_object_get(root, key);
    if (json_array_size(list) != count) {
        return rp_fail(RP_ERR_FORMAT, "%s: `%s`: expected a list of %zu numbers", path, key, count);
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(list, i);
        out[i] = json_number_value(value);
        if (!json_is_number(value) || !isfinite((float)out[i])) {
            return rp_fail(RP_ERR_FORMAT, "%s: `%s`: entry %zu is not a finite number", path, key,
                           i);
        }
    }
    return RP_OK;
}

/* Reads `mean` and `std`; the number of groups, the length of `mean`, divides a sample. */
static rp_err read_norm(rp_arena *arena, const json_t *root, const char *path,
                        rp_description *out) {
    const json_t *mean = json_object_get(root, "mean");
    const size_t groups = json_array_size(mean);
    rp_err err = RP_OK;
    if (!mean && !json_object_get(root, "std")) {
        return RP_OK;
    }
    if (groups == 0 || rp_shape_count(&out->sample) % groups != 0) {
        return fail_key(path, "mean", "one number for each channel or column of a sample");
    }
    RP_TRY(rp_norm_set(arena, &out->norm, (uint32_t)groups, NULL, NULL));
    RP_TRY(read_reals(root, path, "mean", out->norm.mean, groups));
    RP_TRY(read_reals(root, path, "std", out->norm.deviation, groups));
    for (size_t i = 0; i < groups; i++) {
        if (!(out->norm.deviation[i] > 0)) {
            return fail_key(path, "std", "numbers above 0");
        }
    }
    out->norm.known = true;
fail:
    return err;
}

static rp_err read_delimiter(const json_t *root, const char *path, char *out) {
    static const char *const words[] = {"comma", "semicolon", "tab"};
    const json_t *value = json_object_get(root, "delimiter");
    const char *text = json_string_value(value);
    *out = ',';
    for (size_t i = 0; i < 3 && text; i++) {
        if (strcmp(text, words[i]) == 0) {
            *out = ",;\t"[i];
            return RP_OK;
        }
    }
    return value ? fail_key(path, "delimiter", "comma, semicolon or tab") : RP_OK;
}

/* Lists with an entry for each value of a sample; NULL: missing. */
typedef struct {
    const char *path;
    const json_t *columns, *texts;
    const char *const *name;
    double *fill;
} values;

/* Reads the field that begins with value *at; the values of one column's texts are consecutive. */
static rp_err read_field(rp_arena *arena, const values *v, size_t count, size_t *at,
                         rp_field *field) {
    const json_int_t column = json_integer_value(json_array_get(v->columns, *at));
    const size_t first = *at;
    rp_err err = RP_OK;
    *field = (rp_field){.column = (uint32_t)column - 1,
                        .name = v->name ? v->name[first] : NULL,
                        .mean = v->fill ? v->fill[first] : 0,
                        .known = true};
    do {
        const char *text = json_string_value(json_array_get(v->texts, *at));
        RP_TRY(text ? rp_labels_add(arena, &field->texts, text) : RP_OK);
        ++*at;
        const uint32_t last = field->texts.count - 1;
        if (text && (last != *at - first - 1 || strcmp(field->texts.name[last], text) != 0)) {
            return fail_key(v->path, "x_texts", "the texts of a column sorted, and each once");
        }
    } while (field->texts.count > 0 && *at < count &&
             json_integer_value(json_array_get(v->columns, *at)) == column &&
             json_is_string(json_array_get(v->texts, *at)));
fail:
    return err;
}

static rp_err check_columns(const values *v, size_t count, uint32_t columns) {
    for (size_t i = 0; i < count; i++) {
        const json_int_t at = json_integer_value(json_array_get(v->columns, i));
        const json_t *text = json_array_get(v->texts, i);
        if (at < 1 || at > (json_int_t)columns) {
            return fail_key(v->path, "x_columns", "numbers of columns, from 1");
        }
        if (v->texts && !json_is_null(text) && !json_is_string(text)) {
            return fail_key(v->path, "x_texts", "texts, or null for a number");
        }
    }
    return RP_OK;
}

static rp_err read_missing(rp_arena *arena, const json_t *root, const char *path, rp_labels *out) {
    const json_t *list = json_object_get(root, "missing");
    const size_t count = json_array_size(list);
    const char *const *name;
    if (count > RP_LABELS_MAX || (list && !json_is_array(list))) {
        return fail_key(path, "missing", "a list of texts");
    }
    rp_err err = read_names(arena, root, path, "missing", (uint32_t)count, &name);
    for (size_t i = 0; i < count && err == RP_OK; i++) {
        err = rp_labels_add(arena, out, name[i]);
    }
    return err;
}

/* Reads the fields of a table. Older versions wrote no `x_columns`; count is 0 then. */
static rp_err read_fields(rp_arena *arena, const json_t *root, const char *path,
                          rp_description *out) {
    const size_t count = rp_shape_count(&out->sample);
    values v = {.path = path,
                .columns = json_object_get(root, "x_columns"),
                .texts = json_object_get(root, "x_texts")};
    rp_err err;
    RP_TRY(read_delimiter(root, path, &out->delimiter));
    RP_TRY(read_whole(root, path, "columns", COLUMNS_MAX, &out->columns));
    RP_TRY(read_names(arena, root, path, "x_names", (uint32_t)count, &v.name));
    RP_TRY(read_missing(arena, root, path, &out->fields.missing));
    if (!v.columns || out->columns == 0) {
        return RP_OK;
    }
    if (json_array_size(v.columns) != count || (v.texts && json_array_size(v.texts) != count)) {
        return fail_key(path, v.texts ? "x_columns, x_texts" : "x_columns",
                        "one entry for each value of a sample");
    }
    RP_TRY(check_columns(&v, count, out->columns));
    if (json_object_get(root, "x_fill")) {
        RP_TRY(RP_ARENA_NEW(arena, count, &v.fill));
        RP_TRY(read_reals(root, path, "x_fill", v.fill, count));
    }
    RP_TRY(RP_ARENA_NEW(arena, count, &out->fields.field));
    for (size_t at = 0; at < count;) {
        RP_TRY(read_field(arena, &v, count, &at, &out->fields.field[out->fields.count++]));
    }
fail:
    return err;
}

/* Derives `images`. Older versions did not write `channels`. */
static rp_err read_images(const json_t *root, const char *path, rp_description *out) {
    const bool table = strcmp(out->set, "table") == 0;
    uint32_t channels = out->sample.dims == 3 && !table ? out->sample.dim[0] : 0;
    rp_err err = read_whole(root, path, "channels", UINT32_MAX, &channels);
    out->images =
        out->sample.dims == 3 && channels == out->sample.dim[0] && (channels == 1 || channels == 3);
    return err;
}

static rp_err read_layout(const json_t *root, const char *path, rp_description *out) {
    const json_t *bytes = json_object_get(root, "bytes");
    const json_t *last = json_object_get(root, "channels_last");
    if ((bytes && !json_is_boolean(bytes)) || (last && !json_is_boolean(last))) {
        return fail_key(path, bytes && !json_is_boolean(bytes) ? "bytes" : "channels_last",
                        "true or false");
    }
    out->values = !bytes                ? RP_VALUES_UNKNOWN
                  : json_is_true(bytes) ? RP_VALUES_BYTES
                                        : RP_VALUES_REAL;
    out->channels_last = json_is_true(last);
    if (out->channels_last && out->sample.dims != 3) {
        return fail_key(path, "channels_last", "samples of three dimensions");
    }
    return RP_OK;
}

/* Index of a word; `count` if the value is not one of them. */
static uint32_t find_word(const json_t *value, const char *const *words, uint32_t count) {
    const char *text = json_string_value(value);
    uint32_t i = 0;
    while (i < count && !(text && strcmp(text, words[i]) == 0)) {
        i++;
    }
    return i;
}

static rp_err read_rules(const json_t *root, const char *path, rp_token_rules *out) {
    const json_t *lower = json_object_get(root, "lower");
    const json_t *split = json_object_get(root, "split");
    const uint32_t kind =
        find_word(json_object_get(root, "tokens"), rp_token_kinds, RP_TOKENS_KINDS);
    const uint32_t by_space = find_word(split, rp_token_splits, 2);
    *out = (rp_token_rules){.kind = (rp_token_kind)kind};
    if (kind == RP_TOKENS_KINDS) {
        return fail_key(path, "tokens", "ids, bytes, chars, words or bpe");
    }
    if (kind == RP_TOKENS_WORDS && !json_is_boolean(lower)) {
        return fail_key(path, "lower", "true or false");
    }
    if (kind == RP_TOKENS_WORDS && by_space == 2) {
        return fail_key(path, "split", "punctuation or space");
    }
    out->lower = kind == RP_TOKENS_WORDS && json_is_true(lower);
    out->by_space = kind == RP_TOKENS_WORDS && by_space == 1;
    return RP_OK;
}

static rp_err read_bpe(rp_arena *arena, const json_t *root, const char *path, rp_description *out) {
    const rp_bpe *bpe;
    rp_err err;
    RP_TRY(rp_bpe_from_json(arena, json_object_get(root, "tokenizer"), path, &bpe));
    if (bpe->count != out->tokens) {
        return fail_key(path, "token_count", "the number of tokens in `tokenizer`");
    }
    out->vocab = rp_vocab_of_bpe(bpe);
fail:
    return err;
}

/* Reads the meaning of token ids, if samples are ids. */
static rp_err read_tokens(rp_arena *arena, const json_t *root, const char *path,
                          rp_description *out) {
    static const char *const types[] = {"f32", "i32"};
    const json_t *value = json_object_get(root, "type");
    const uint32_t type = value ? find_word(value, types, 2) : 0;
    const char *const *name;
    rp_token_rules rules;
    uint32_t special = 0;
    rp_err err;
    out->type = type == 1 ? RP_I32 : RP_F32;
    if (type != 1) {
        return type == 0 ? RP_OK : fail_key(path, "type", "f32 or i32");
    }
    RP_TRY(read_rules(root, path, &rules));
    RP_TRY(read_whole(root, path, "token_count", RP_TOKENS_MAX, &out->tokens));
    RP_TRY(read_whole(root, path, "special", RP_TOKENS_SPECIAL, &special));
    if (out->tokens == 0 || (rules.kind == RP_TOKENS_BYTES && out->tokens != 256)) {
        return fail_key(path, "token_count", "the number of different ids, 256 for bytes");
    }
    if (rules.kind == RP_TOKENS_BPE) {
        return read_bpe(arena, root, path, out);
    }
    if ((special != 0 && special != RP_TOKENS_SPECIAL) || special > out->tokens) {
        return fail_key(path, "special", "0 or 4");
    }
    RP_TRY(read_names(arena, root, path, "vocab", out->tokens, &name));
    if ((rules.kind >= RP_TOKENS_CHARS) != (name != NULL)) {
        return fail_key(path, "vocab", "a list of texts for chars and words, and only for them");
    }
    const bool held = rp_err_hold(true);
    err = rp_vocab_restore(arena, &rules, special, name, out->tokens, &out->vocab);
    (void)rp_err_hold(held);
    if (err != RP_OK) {
        return rp_fail(err, "%s: `vocab`: %s", path, rp_err_message());
    }
fail:
    return err;
}

static rp_err read_buckets(const json_t *root, const char *path, rp_description *out) {
    const json_t *list = json_object_get(root, "buckets");
    const size_t count = json_array_size(list);
    const uint32_t most = out->type == RP_I32 && out->sample.dims == 1 ? out->sample.dim[0] : 0;
    bool good = !list || (json_is_array(list) && count <= RP_BUCKETS_MAX);
    for (size_t k = 0; good && k < count; k++) {
        const json_int_t time = json_integer_value(json_array_get(list, k));
        good = time > (k > 0 ? (json_int_t)out->buckets.time[k - 1] : 0) && time < (json_int_t)most;
        out->buckets.time[out->buckets.count++] = good ? (uint32_t)time : 0;
    }
    return good
               ? RP_OK
               : fail_key(path, "buckets", "ascending lengths below that of a sample of token ids");
}

/* Sentences and their translations: predict relies on the special tokens and on these numbers. */
static rp_err check_pairs(const char *path, const rp_description *about) {
    const bool bpe = about->vocab.rules.kind == RP_TOKENS_BPE;
    char where[PATH_BYTES];
    if (about->type != RP_I32) {
        return fail_key(path, "type", "i32, because `set` is pairs");
    }
    if (about->vocab.rules.kind < RP_TOKENS_CHARS) {
        return fail_key(path, "tokens", "chars, words or bpe, because `set` is pairs");
    }
    if (!bpe && about->vocab.special != RP_TOKENS_SPECIAL) {
        return fail_key(path, "special", "4, because `set` is pairs");
    }
    if (about->sample.dims != 1 || about->target_width > UINT32_MAX / 2 ||
        about->sample.dim[0] != 2 * about->target_width) {
        return fail_key(path, "sample", "one size, twice `target_width`, because `set` is pairs");
    }
    if (about->classes != about->tokens) {
        return fail_key(path, "classes", "the same as `token_count`, because `set` is pairs");
    }
    (void)snprintf(where, sizeof where, "%s: `%s`", path, bpe ? "tokenizer" : "vocab");
    return rp_vocab_check_sentences(&about->vocab, where);
}

static rp_err read_object(rp_arena *arena, json_t *root, const char *path, rp_description *out) {
    const char *set = json_string_value(json_object_get(root, "set"));
    char *copy;
    rp_err err;
    if (!set) {
        return fail_key(path, "set", "the name of a data set");
    }
    RP_TRY(rp_arena_string(arena, set, &copy));
    out->set = copy;
    RP_TRY(read_sample(root, path, &out->sample));
    RP_TRY(read_parts(arena, root, path, out));
    RP_TRY(read_tokens(arena, root, path, out));
    RP_TRY(read_buckets(root, path, out));
    RP_TRY(read_images(root, path, out));
    RP_TRY(read_layout(root, path, out));
    out->target_width = 1;
    RP_TRY(read_whole(root, path, "target_width", WIDTH_MAX, &out->target_width));
    if (out->target_width == 0) {
        return fail_key(path, "target_width", "at least 1");
    }
    RP_TRY(read_whole(root, path, "classes", RP_TOKENS_MAX, &out->classes));
    RP_TRY(read_names(arena, root, path, "class_names", out->classes, &out->class_name));
    RP_TRY(read_names(arena, root, path, "y_names", out->target_width, &out->y_name));
    RP_TRY(read_norm(arena, root, path, out));
    RP_TRY(read_fields(arena, root, path, out));
    RP_TRY(strcmp(set, "pairs") == 0 ? check_pairs(path, out) : RP_OK);
fail:
    return err;
}

/* Reads a description from `root`, which is NULL if the text is not JSON, and releases it. */
static rp_err take_object(rp_arena *arena, json_t *root, const json_error_t *problem,
                          const char *path, rp_description *out) {
    const rp_err err = root ? read_object(arena, root, path, out)
                            : rp_fail(RP_ERR_FORMAT, "%s:%d:%d: %s", path, problem->line,
                                      problem->column, problem->text);
    json_decref(root);
    return err;
}

rp_err rp_data_parse_description(rp_arena *arena, const char *bytes, size_t count, const char *path,
                                 rp_description *out) {
    json_error_t problem;
    *out = (rp_description){0};
    return take_object(arena, json_loadb(bytes, count, JSON_REJECT_DUPLICATES, &problem), &problem,
                       path, out);
}

rp_err rp_data_read_description(rp_arena *arena, const char *path, rp_description *out) {
    json_error_t problem;
    const char *why;
    FILE *file = rp_input_fopen(path, &why);
    *out = (rp_description){0};
    if (!file) {
        return rp_fail(RP_ERR_IO, "%s: cannot be opened: %s", path, why);
    }
    json_t *root = json_loadf(file, JSON_REJECT_DUPLICATES, &problem);
    (void)fclose(file);
    return take_object(arena, root, &problem, path, out);
}
