#include "data/bpe_file.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/utf8.h"
#include "data/bpe_split.h"
#include "data/grown.h"
#include "data/unicode.h"

#define FILE_BYTES_MAX (UINT64_C(128) << 20)

enum { SHOWN_BYTES = 60, ADDED_BYTES_MAX = 1000 };

/* A tokenizer.json that is read. */
typedef struct {
    rp_arena *arena;
    const char *path;
    const json_t *root, *model;
    rp_bpe *bpe;
} reading;

/* ---- messages -------------------------------------------------------------------------------- */

static rp_err fail_key(const reading *r, const char *key, const char *expected) {
    return rp_fail(RP_ERR_FORMAT, "%s: `%s`: expected %s", r->path, key, expected);
}

static rp_err fail_other(const reading *r, const char *key, const char *expected,
                         const json_t *found) {
    const char *text = json_string_value(found);
    char shown[SHOWN_BYTES];
    return rp_fail(RP_ERR_FORMAT,
                   "%s: `%s`: expected %s%s%s; for any other tokeniser, write ids with it "
                   "(np.save), then use `set: npy`",
                   r->path, key, expected, text ? ", found " : "",
                   text ? rp_utf8_show(text, SHOWN_BYTES, shown, sizeof shown) : "");
}

/* ---- small values ---------------------------------------------------------------------------- */

static bool is_null(const json_t *value) {
    return !value || json_is_null(value);
}

static bool is_text(const json_t *value, const char *text) {
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

/* Reads true or false; a missing key leaves *out. */
static rp_err read_bool(const reading *r, const json_t *object, const char *key, bool *out) {
    const json_t *value = json_object_get(object, key);
    if (value && !json_is_boolean(value)) {
        return fail_key(r, key, "true or false");
    }
    *out = value ? json_is_true(value) : *out;
    return RP_OK;
}

/* ---- what surrounds the model ---------------------------------------------------------------- */

static rp_err read_normalizer(reading *r) {
    const json_t *value = json_object_get(r->root, "normalizer");
    r->bpe->nfc = is_text(json_object_get(value, "type"), "NFC");
    return is_null(value) || r->bpe->nfc
               ? RP_OK
               : fail_other(r, "normalizer", "null or {\"type\": \"NFC\"}",
                            json_object_get(value, "type"));
}

/* The only pre-tokeniser, or the last one of two. */
static rp_err read_byte_level(reading *r, const json_t *value, bool alone) {
    bool own_pattern = true;
    rp_err err;
    RP_TRY(read_bool(r, value, "add_prefix_space", &r->bpe->prefix_space));
    RP_TRY(read_bool(r, value, "use_regex", &own_pattern));
    if (own_pattern != alone || (r->bpe->prefix_space && !alone)) {
        return fail_other(r, "pre_tokenizer",
                          alone ? "ByteLevel with `use_regex: true`"
                                : "ByteLevel with `use_regex` and `add_prefix_space` false after "
                                  "a Split",
                          NULL);
    }
fail:
    return err;
}

static rp_err read_split(reading *r, const json_t *value) {
    const json_t *pattern = json_object_get(json_object_get(value, "pattern"), "Regex");
    bool inverted = false;
    char *copy;
    rp_err err;
    RP_TRY(read_bool(r, value, "invert", &inverted));
    if (!json_is_string(pattern) || inverted ||
        !is_text(json_object_get(value, "behavior"), "Isolated")) {
        return fail_other(r, "pre_tokenizer",
                          "a Split with a `Regex`, `behavior` Isolated and `invert` false", NULL);
    }
    RP_TRY(rp_arena_string(r->arena, json_string_value(pattern), &copy));
    r->bpe->pattern = copy;
fail:
    return err;
}

static rp_err read_pre_tokenizer(reading *r) {
    const json_t *value = json_object_get(r->root, "pre_tokenizer");
    const json_t *type = json_object_get(value, "type");
    const json_t *list = json_object_get(value, "pretokenizers");
    const json_t *first = json_array_get(list, 0);
    const json_t *second = json_array_get(list, 1);
    rp_bpe_splitter *splitter = NULL;
    rp_err err;
    r->bpe->pattern = RP_BPE_PATTERN;
    if (is_text(type, "ByteLevel")) {
        RP_TRY(read_byte_level(r, value, true));
    } else if (is_text(type, "Sequence") && json_array_size(list) == 2 &&
               is_text(json_object_get(first, "type"), "Split") &&
               is_text(json_object_get(second, "type"), "ByteLevel")) {
        RP_TRY(read_split(r, first));
        RP_TRY(read_byte_level(r, second, false));
    } else {
        return fail_other(r, "pre_tokenizer", "ByteLevel, or a Sequence of Split and ByteLevel",
                          type);
    }
    RP_TRY(rp_bpe_splitter_open(r->bpe->pattern, r->path, &splitter));
fail:
    rp_bpe_splitter_close(&splitter);
    return err;
}

/* ---- the model ------------------------------------------------------------------------------- */

static rp_err check_model(reading *r) {
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const json_t *type = json_object_get(r->model, "type");
    const json_t *dropout = json_object_get(r->model, "dropout");
    bool byte_fallback = false;
    rp_err err;
    if (!json_is_object(r->model) || (type && !is_text(type, "BPE"))) {
        return fail_other(r, "model.type", "BPE", type);
    }
    if (!is_null(dropout) && json_number_value(dropout) != 0) {
        return fail_other(r, "model.dropout", "null, because a text must always have the same ids",
                          NULL);
    }
    for (size_t i = 0; i < 2; i++) {
        const json_t *value = json_object_get(r->model, affixes[i]);
        if (!is_null(value) && !is_text(value, "")) {
            return fail_other(r, affixes[i], "null or an empty text", value);
        }
    }
    RP_TRY(read_bool(r, r->model, "byte_fallback", &byte_fallback));
    if (byte_fallback) {
        return fail_other(r, "model.byte_fallback", "false", NULL);
    }
    RP_TRY(read_bool(r, r->model, "ignore_merges", &r->bpe->whole_words));
fail:
    return err;
}

static rp_err read_added_list(const reading *r, const json_t **out, size_t *bytes) {
    const json_t *list = json_object_get(r->root, "added_tokens");
    *out = list;
    if (list && !json_is_array(list)) {
        return fail_key(r, "added_tokens", "a list");
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        *bytes += json_string_length(json_object_get(json_array_get(list, i), "content")) + 1;
    }
    return RP_OK;
}

/* Reads the names of `model.vocab`, and takes memory for those of `added` further tokens. */
static rp_err read_vocab(reading *r, size_t added, size_t bytes, const char ***names, char **text) {
    json_t *vocab = json_object_get(r->model, "vocab");
    const size_t count = json_object_size(vocab);
    const char *name;
    json_t *value;
    rp_err err;
    if (!json_is_object(vocab) || count < 256 || count + added > RP_TOKENS_MAX) {
        return rp_fail(RP_ERR_FORMAT, "%s: `model.vocab`: expected a map of 256 to %d tokens",
                       r->path, RP_TOKENS_MAX);
    }
    json_object_foreach(vocab, name, value) {
        bytes += strlen(name) + 1;
    }
    RP_TRY(RP_ARENA_NEW(r->arena, bytes + 1, text));
    RP_TRY(RP_ARENA_NEW(r->arena, count + added, names));
    json_object_foreach(vocab, name, value) {
        const json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || id >= (json_int_t)count || (*names)[id]) {
            char shown[SHOWN_BYTES];
            return rp_fail(RP_ERR_FORMAT,
                           "%s: `model.vocab`: token '%s': expected an id from 0 to %zu, each once",
                           r->path, rp_utf8_show(name, SHOWN_BYTES, shown, sizeof shown),
                           count - 1);
        }
        memcpy(*text, name, strlen(name) + 1);
        (*names)[id] = *text;
        *text += strlen(name) + 1;
    }
    r->bpe->name = *names;
    r->bpe->count = r->bpe->learnt = (uint32_t)count;
    RP_TRY(rp_bpe_index_names(r->arena, r->bpe, r->path));
fail:
    return err;
}

static rp_err read_added_token(reading *r, const json_t *value, size_t index, const char **names,
                               char **text, rp_bpe_added *out) {
    const char *content = json_string_value(json_object_get(value, "content"));
    const json_t *id = json_object_get(value, "id");
    char shown[SHOWN_BYTES];
    bool single = false;
    rp_err err;
    if (!content || !content[0] || strlen(content) > ADDED_BYTES_MAX) {
        return rp_fail(
            RP_ERR_FORMAT,
            "%s: `added_tokens`: entry %zu: expected a text of 1 to %d bytes as `content`", r->path,
            index, ADDED_BYTES_MAX);
    }
    const uint32_t found = rp_words_find(&r->bpe->names, content, strlen(content));
    out->id = found < r->bpe->learnt ? found : r->bpe->count;
    if (!json_is_integer(id) || json_integer_value(id) != (json_int_t)out->id) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: `added_tokens`: '%s': expected id %u, that of `model.vocab` or else "
                       "the next one after all before it",
                       r->path, rp_utf8_show(content, SHOWN_BYTES, shown, sizeof shown), out->id);
    }
    RP_TRY(read_bool(r, value, "single_word", &single));
    RP_TRY(read_bool(r, value, "lstrip", &out->strip_left));
    RP_TRY(read_bool(r, value, "rstrip", &out->strip_right));
    RP_TRY(read_bool(r, value, "special", &out->special));
    out->normalised = !out->special;
    RP_TRY(read_bool(r, value, "normalized", &out->normalised));
    if (single) {
        return fail_other(r, "added_tokens.single_word", "false", NULL);
    }
    if (r->bpe->nfc && out->normalised &&
        rp_unicode_nfc_bytes(content, strlen(content)) < strlen(content)) {
        return rp_fail(RP_ERR_FORMAT, "%s: `added_tokens`: '%s': expected a text in normal form C",
                       r->path, rp_utf8_show(content, SHOWN_BYTES, shown, sizeof shown));
    }
    if (out->id == r->bpe->count) {
        memcpy(*text, content, strlen(content) + 1);
        names[r->bpe->count++] = *text;
        *text += strlen(content) + 1;
    }
fail:
    return err;
}

static rp_err read_tokens(reading *r) {
    const json_t *list;
    const char **names;
    rp_bpe_added *added;
    size_t bytes = 0;
    char *text;
    rp_err err;
    RP_TRY(read_added_list(r, &list, &bytes));
    const size_t count = json_array_size(list);
    RP_TRY(read_vocab(r, count, bytes, &names, &text));
    RP_TRY(RP_ARENA_NEW(r->arena, count + 1, &added));
    for (size_t i = 0; i < count; i++) {
        RP_TRY(read_added_token(r, json_array_get(list, i), i, names, &text, &added[i]));
    }
    r->bpe->added = added;
    r->bpe->added_count = (uint32_t)count;
fail:
    return err;
}

/* The two parts of "a b" or ["a", "b"], which have no blanks. */
typedef struct {
    const char *left, *right;
    size_t left_bytes, right_bytes;
} parts;

static bool read_parts(const json_t *value, parts *out) {
    const char *text = json_string_value(value);
    const char *blank = text ? strchr(text, ' ') : NULL;
    *out = (parts){0};
    if (blank) {
        *out = (parts){text, blank + 1, (size_t)(blank - text), strlen(blank + 1)};
    } else if (json_array_size(value) == 2) {
        out->left = json_string_value(json_array_get(value, 0));
        out->right = json_string_value(json_array_get(value, 1));
        out->left_bytes = out->left ? strlen(out->left) : 0;
        out->right_bytes = out->right ? strlen(out->right) : 0;
    }
    return out->left_bytes > 0 && out->right_bytes > 0 &&
           !memchr(out->left, ' ', out->left_bytes) && !strchr(out->right, ' ');
}

static rp_err read_merge(const reading *r, const json_t *value, size_t index, rp_grown *joined,
                         rp_bpe_merge *out) {
    const rp_words *names = &r->bpe->names;
    parts p;
    rp_err err = RP_OK;
    *out = (rp_bpe_merge){.merged = names->count};
    if (read_parts(value, &p)) {
        const size_t bytes = p.left_bytes + p.right_bytes;
        RP_TRY(rp_grown_reserve(joined, bytes));
        memcpy(joined->at, p.left, p.left_bytes);
        memcpy((char *)joined->at + p.left_bytes, p.right, p.right_bytes);
        out->left = rp_words_find(names, p.left, p.left_bytes);
        out->right = rp_words_find(names, p.right, p.right_bytes);
        out->merged = rp_words_find(names, joined->at, bytes);
    }
    if (out->merged == names->count || out->left == names->count || out->right == names->count) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: `model.merges`: entry %zu: expected two tokens of `model.vocab`, as "
                       "\"a b\" or [\"a\", \"b\"], that make a third one",
                       r->path, index);
    }
fail:
    return err;
}

static rp_err read_merges(reading *r) {
    const json_t *list = json_object_get(r->model, "merges");
    const size_t count = json_array_size(list);
    rp_grown joined = {.size = 1};
    rp_bpe_merge *merge;
    rp_err err;
    if (!json_is_array(list) || count > RP_BPE_MERGES_MAX) {
        return rp_fail(RP_ERR_FORMAT, "%s: `model.merges`: expected a list of at most %d pairs",
                       r->path, RP_BPE_MERGES_MAX);
    }
    RP_TRY(RP_ARENA_NEW(r->arena, count + 1, &merge));
    r->bpe->merge = merge;
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (!text || strncmp(text, "#version", 8) != 0) {
            RP_TRY(read_merge(r, json_array_get(list, i), i, &joined, &merge[r->bpe->merges++]));
        }
    }
fail:
    rp_grown_free(&joined);
    return err;
}

/* ---- reading --------------------------------------------------------------------------------- */

rp_err rp_bpe_from_json(rp_arena *arena, const json_t *root, const char *path, const rp_bpe **out) {
    reading r = {
        .arena = arena, .path = path, .root = root, .model = json_object_get(root, "model")};
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &r.bpe));
    RP_TRY(check_model(&r));
    RP_TRY(read_normalizer(&r));
    RP_TRY(read_pre_tokenizer(&r));
    RP_TRY(read_tokens(&r));
    RP_TRY(read_merges(&r));
    RP_TRY(rp_bpe_finish(arena, r.bpe, path));
    *out = r.bpe;
fail:
    return err;
}

static rp_err fail_json(const char *path, size_t count, const json_error_t *problem) {
    static const char expected[] = "tokenizer.json of Hugging Face's tokenizers";
    if (count == 0) {
        return rp_fail(RP_ERR_FORMAT, "%s: the file is empty, expected %s", path, expected);
    }
    if (json_error_code(problem) == json_error_premature_end_of_input) {
        return rp_fail(RP_ERR_FORMAT, "%s:%d: the file ends too early, expected a whole %s", path,
                       problem->line, expected);
    }
    return rp_fail(RP_ERR_FORMAT, "%s:%d:%d: expected %s: %s", path, problem->line, problem->column,
                   expected, problem->text);
}

rp_err rp_bpe_parse(rp_arena *arena, const char *bytes, size_t count, const char *path,
                    const rp_bpe **out) {
    json_error_t problem;
    json_t *root = json_loadb(bytes, count, JSON_REJECT_DUPLICATES, &problem);
    const rp_err err =
        root ? rp_bpe_from_json(arena, root, path, out) : fail_json(path, count, &problem);
    json_decref(root);
    return err;
}

static rp_err read_open(rp_arena *arena, int fd, const char *path, const rp_bpe **out) {
    rp_grown bytes = {.size = 1};
    struct stat facts;
    rp_err err;
    if (fstat(fd, &facts) != 0 || (uint64_t)facts.st_size > FILE_BYTES_MAX) {
        return rp_fail(RP_ERR_LIMIT, "%s: expected a file of at most %llu bytes (128 MiB)", path,
                       (unsigned long long)FILE_BYTES_MAX);
    }
    const size_t count = (size_t)facts.st_size;
    RP_TRY(rp_grown_reserve(&bytes, count + 1));
    RP_TRY(rp_input_read(fd, path, 0, bytes.at, count));
    RP_TRY(rp_bpe_parse(arena, bytes.at, count, path, out));
fail:
    rp_grown_free(&bytes);
    return err;
}

rp_err rp_bpe_read(rp_arena *arena, const char *path, const rp_bpe **out) {
    const char *why;
    const int fd = rp_input_open(path, &why);
    if (fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: cannot be opened: %s", path, why);
    }
    const rp_err err = read_open(arena, fd, path, out);
    (void)close(fd);
    return err;
}

/* ---- writing --------------------------------------------------------------------------------- */

static json_t *json_of_added(const rp_bpe *bpe) {
    json_t *list = json_array();
    bool good = list != NULL;
    for (uint32_t i = 0; i < bpe->added_count; i++) {
        const rp_bpe_added *token = &bpe->added[i];
        json_t *entry = json_pack(
            "{s:I, s:s, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)token->id, "content",
            bpe->name[token->id], "single_word", 0, "lstrip", token->strip_left, "rstrip",
            token->strip_right, "normalized", token->normalised, "special", token->special);
        good = json_array_append_new(list, entry) == 0 && good;
    }
    if (!good) {
        json_decref(list);
    }
    return good ? list : NULL;
}

static json_t *json_of_split(const rp_bpe *bpe) {
    const bool own_pattern = strcmp(bpe->pattern, RP_BPE_PATTERN) == 0;
    json_t *bytes = json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space",
                              bpe->prefix_space, "trim_offsets", 1, "use_regex", own_pattern);
    return own_pattern ? bytes
                       : json_pack("{s:s, s:[{s:s, s:{s:s}, s:s, s:b}, o]}", "type", "Sequence",
                                   "pretokenizers", "type", "Split", "pattern", "Regex",
                                   bpe->pattern, "behavior", "Isolated", "invert", 0, bytes);
}

static json_t *json_of_model(const rp_bpe *bpe) {
    json_t *vocab = json_object();
    json_t *merges = json_array();
    bool good = vocab && merges;
    for (uint32_t i = 0; i < bpe->learnt; i++) {
        good = json_object_set_new(vocab, bpe->name[i], json_integer(i)) == 0 && good;
    }
    for (uint32_t i = 0; i < bpe->merges; i++) {
        json_t *merge =
            json_sprintf("%s %s", bpe->name[bpe->merge[i].left], bpe->name[bpe->merge[i].right]);
        good = json_array_append_new(merges, merge) == 0 && good;
    }
    if (!good) {
        json_decref(vocab);
        json_decref(merges);
        return NULL;
    }
    return json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:o}", "type", "BPE", "dropout",
                     "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0,
                     "byte_fallback", 0, "ignore_merges", bpe->whole_words, "vocab", vocab,
                     "merges", merges);
}

json_t *rp_bpe_to_json(const rp_bpe *bpe) {
    json_t *normalizer = bpe->nfc ? json_pack("{s:s}", "type", "NFC") : json_null();
    return json_pack("{s:s, s:n, s:n, s:o, s:o, s:o, s:n, s:{s:s, s:b, s:b, s:b}, s:o}", "version",
                     "1.0", "truncation", "padding", "added_tokens", json_of_added(bpe),
                     "normalizer", normalizer, "pre_tokenizer", json_of_split(bpe),
                     "post_processor", "decoder", "type", "ByteLevel", "add_prefix_space", 1,
                     "trim_offsets", 1, "use_regex", 1, "model", json_of_model(bpe));
}
