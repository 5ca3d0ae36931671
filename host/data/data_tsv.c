/* Classes of texts: lines with columns between tabs, one of them a text, one of them its class. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/data.h"
#include "data/ids.h"
#include "data/labels.h"
#include "data/lines.h"
#include "data/sample_time.h"
#include "data/tokenizer.h"

enum { LABEL_MAX = 65535, NAME_BYTES_MAX = 1000 };

/* The samples of a file. */
typedef struct {
    rp_ids ids;                 /* of all texts, each cut to `time` tokens */
    uint64_t *first;            /* [count + 1]: of each text in `ids` */
    int32_t *label;             /* [count] */
    uint32_t count, cut, empty; /* samples; those that were cut, or have no token */
} part;

typedef struct {
    rp_arena *arena;
    rp_data *data;
    rp_node *text_key, *label_key; /* columns: numbers from 0, or names in the first line */
    uint32_t time;
    rp_token_rules rules;
    rp_labels labels;
    bool named; /* classes are names */
    rp_vocab vocab;
    rp_tokenizer *tokenizer; /* while the set is opened */
    part part[2];            /* by split */
} own;

/* A file while it is read. */
typedef struct {
    own *of;
    rp_split split;
    rp_text_file file;
    rp_lines lines;
    uint32_t text, label; /* columns */
} tsv_file;

/* ---- columns --------------------------------------------------------------------------------- */

/* Is the column given by its number? */
static bool is_number(const rp_node *key) {
    const char *text = rp_node_is_scalar(key) ? rp_node_text(key) : "";
    return text[0] && strlen(text) <= 4 && text[strspn(text, "0123456789")] == '\0';
}

static rp_err find_column(const tsv_file *file, const rp_node *key, uint32_t *out) {
    const rp_lines *lines = &file->lines;
    const char *name = rp_node_text(key);
    uint32_t found = 0;
    if (is_number(key)) {
        *out = (uint32_t)strtoul(name, NULL, 10);
        return *out < lines->count
                   ? RP_OK
                   : rp_node_fail(key,
                                  "expected a column from 0 to %u, because the lines of %s "
                                  "have %u, found %u",
                                  lines->count - 1, file->file.path, lines->count, *out);
    }
    for (uint32_t i = 0; i < lines->count; i++) {
        if (lines->field[i].bytes == strlen(name) &&
            memcmp(lines->field[i].at, name, lines->field[i].bytes) == 0) {
            *out = i;
            found++;
        }
    }
    return found == 1 ? RP_OK
                      : rp_node_fail(key, "the first line of %s has %s column '%s'",
                                     file->file.path, found ? "more than one" : "no", name);
}

/* Begins to read lines, after the header if a column is given by its name. */
static rp_err begin_lines(tsv_file *file) {
    const own *o = file->of;
    const bool header = !is_number(o->text_key) || !is_number(o->label_key);
    bool more;
    rp_err err;
    rp_lines_begin(&file->lines, &file->file);
    RP_TRY(rp_lines_next(&file->lines, &more));
    if (!more) {
        return rp_fail(RP_ERR_FORMAT, "%s: has no lines of data", file->file.path);
    }
    RP_TRY(find_column(file, o->text_key, &file->text));
    RP_TRY(find_column(file, o->label_key, &file->label));
    if (file->text == file->label) {
        return rp_node_fail(o->label_key, "expected another column than `text`");
    }
    if (!header) {
        rp_lines_begin(&file->lines, &file->file);
    }
fail:
    return err;
}

/* ---- classes --------------------------------------------------------------------------------- */

/* Writes the class of the line as a zero-terminated text. */
static rp_err take_label(const tsv_file *file, char *out) {
    const rp_line_field *field = &file->lines.field[file->label];
    if (field->bytes == 0 || field->bytes > NAME_BYTES_MAX) {
        return rp_lines_fail(&file->lines, file->label, "a class, with at most 1000 bytes");
    }
    memcpy(out, field->at, field->bytes);
    out[field->bytes] = '\0';
    return RP_OK;
}

static bool is_whole(const char *text) {
    return text[strspn(text, "0123456789")] == '\0' && strlen(text) <= 5;
}

/* The first class of the training file decides whether classes are names or numbers. */
static rp_err learn_label(tsv_file *file, bool first) {
    own *o = file->of;
    char text[NAME_BYTES_MAX + 1];
    rp_err err;
    RP_TRY(take_label(file, text));
    if (first) {
        o->named = o->labels.given || !is_whole(text);
    }
    if (!o->named || o->labels.given) {
        return RP_OK;
    }
    if (is_whole(text)) {
        return rp_lines_fail(&file->lines, file->label,
                             "the name of a class, as in the lines before (if the first line has "
                             "names of columns, give these as `text` and `label`)");
    }
    RP_TRY(rp_labels_add(o->arena, &o->labels, text));
fail:
    return err;
}

static rp_err read_number(const tsv_file *file, const char *text, int32_t *out) {
    const own *o = file->of;
    char expected[80] = "a class from 0 to 65535";
    const long label = is_whole(text) ? strtol(text, NULL, 10) : LABEL_MAX + 1;
    const bool test = file->split == RP_SPLIT_TEST;
    if (test) {
        (void)snprintf(expected, sizeof expected, "a class of the training file, from 0 to %u",
                       o->data->classes - 1);
    }
    *out = (int32_t)label;
    return label <= (test ? (long)o->data->classes - 1 : LABEL_MAX)
               ? RP_OK
               : rp_lines_fail(&file->lines, file->label, expected);
}

static rp_err read_class(const tsv_file *file, int32_t *out) {
    const own *o = file->of;
    char text[NAME_BYTES_MAX + 1];
    rp_err err;
    RP_TRY(take_label(file, text));
    if (!o->named) {
        return read_number(file, text, out);
    }
    const uint32_t class = rp_labels_find(&o->labels, text);
    *out = (int32_t) class;
    if (class == o->labels.count) {
        return rp_lines_fail(&file->lines, file->label,
                             o->labels.given ? "one of the names in `classes`"
                                             : "a class of the training file");
    }
fail:
    return err;
}

/* ---- the training file ----------------------------------------------------------------------- */

static rp_err learn_lines(tsv_file *file, rp_vocab_learner *learner) {
    const rp_line_field *field;
    bool more;
    bool first = true;
    rp_err err;
    RP_TRY(begin_lines(file));
    RP_TRY(rp_lines_next(&file->lines, &more));
    while (more) {
        RP_TRY(learn_label(file, first));
        field = &file->lines.field[file->text];
        RP_TRY(rp_vocab_learn(learner, field->at, field->bytes));
        first = false;
        RP_TRY(rp_lines_next(&file->lines, &more));
    }
fail:
    return err;
}

/* Bytes need no vocabulary: byte 0, which no text has, is the padding. */
static rp_err learn_vocab(rp_arena *scratch, tsv_file *file, uint32_t most) {
    own *o = file->of;
    rp_vocab_learner learner;
    rp_err err;
    RP_TRY(rp_vocab_begin(scratch, &o->rules, &learner));
    RP_TRY(learn_lines(file, &learner));
    if (!o->vocab.bpe) {
        RP_TRY(rp_vocab_finish(o->arena, &learner, RP_TOKENS_SPECIAL, most, &o->vocab));
    }
    RP_TRY(rp_tokenizer_open(&o->vocab, &o->tokenizer));
fail:
    return err;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Counts samples. */
static rp_err count_lines(tsv_file *file, uint32_t *out) {
    bool more;
    rp_err err;
    *out = 0;
    RP_TRY(begin_lines(file));
    RP_TRY(rp_lines_next(&file->lines, &more));
    while (more) {
        ++*out;
        RP_TRY(rp_lines_next(&file->lines, &more));
    }
    if (*out == 0) {
        return rp_fail(RP_ERR_FORMAT, "%s: has no lines of data", file->file.path);
    }
fail:
    return err;
}

/* Appends the ids of the line's text, at most `time`, to the list. */
static rp_err store_line(tsv_file *file, uint32_t index, rp_grown *list) {
    own *o = file->of;
    part *p = &o->part[file->split];
    const rp_line_field *field = &file->lines.field[file->text];
    uint64_t count;
    rp_err err;
    RP_TRY(read_class(file, &p->label[index]));
    RP_TRY(rp_tokenizer_append(o->tokenizer, field->at, field->bytes, o->time, list, &count));
    p->cut += count > o->time;
    p->empty += count == 0;
    p->first[index + 1] = list->count;
fail:
    return err;
}

static rp_err store_lines(tsv_file *file) {
    own *o = file->of;
    part *p = &o->part[file->split];
    rp_grown list = {.size = sizeof(uint32_t)};
    bool more;
    rp_err err;
    RP_TRY(count_lines(file, &p->count));
    RP_TRY(RP_ARENA_NEW(o->arena, (size_t)p->count + 1, &p->first));
    RP_TRY(RP_ARENA_NEW(o->arena, p->count, &p->label));
    RP_TRY(begin_lines(file));
    for (uint32_t i = 0; i < p->count; i++) {
        RP_TRY(rp_lines_next(&file->lines, &more));
        RP_TRY(store_line(file, i, &list));
    }
    RP_TRY(rp_ids_store(o->arena, &p->ids, o->vocab.count, list.at, list.count));
    o->data->count[file->split] = p->count;
fail:
    rp_grown_free(&list);
    return err;
}

/* ---- the set --------------------------------------------------------------------------------- */

static void count_classes(own *o) {
    const part *p = &o->part[RP_SPLIT_TRAIN];
    o->data->classes = o->named ? o->labels.count : 0;
    o->data->class_name = o->named ? o->labels.name : NULL;
    for (uint32_t i = 0; i < p->count && !o->named; i++) {
        if ((uint32_t)p->label[i] >= o->data->classes) {
            o->data->classes = (uint32_t)p->label[i] + 1;
        }
    }
}

static rp_err note_texts(own *o, const char *path) {
    const part *p = &o->part[RP_SPLIT_TRAIN];
    rp_err err = RP_OK;
    if (p->cut > 0) {
        RP_TRY(rp_notes_add(o->arena, &o->data->notes,
                            "%s: %u of %u texts are longer than %u tokens and are cut; a larger "
                            "`time` keeps more of them",
                            path, p->cut, p->count, o->time));
    }
    if (p->empty > 0) {
        RP_TRY(rp_notes_add(o->arena, &o->data->notes, "%s: %u of %u texts have no token", path,
                            p->empty, p->count));
    }
fail:
    return err;
}

/* Reads a file; the training file has to be first. */
static rp_err read_file(own *o, rp_split split, const char *path, uint32_t most) {
    rp_arena scratch;
    tsv_file *file;
    rp_err err;
    rp_arena_init(&scratch, "tsv", 0);
    RP_TRY(RP_ARENA_NEW(&scratch, 1, &file));
    file->of = o;
    file->split = split;
    RP_TRY(rp_tokenizer_read_file(&scratch, &o->rules, false, path, &file->file));
    if (split == RP_SPLIT_TRAIN) {
        RP_TRY(learn_vocab(&scratch, file, most));
    }
    RP_TRY(store_lines(file));
    if (split == RP_SPLIT_TRAIN) {
        count_classes(o);
        RP_TRY(note_texts(o, path));
    }
fail:
    rp_arena_finish(&scratch);
    return err;
}

static rp_err read_keys(own *o, rp_node *keys, const rp_data_input *input, uint32_t *most) {
    static const char *const columns[] = {"text", "label"};
    rp_node **key[] = {&o->text_key, &o->label_key};
    rp_err err;
    RP_TRY(rp_token_rules_read(keys, &o->rules, most));
    for (size_t i = 0; i < 2; i++) {
        RP_TRY(rp_node_need(keys, columns[i]));
        *key[i] = rp_node_find(keys, columns[i]);
        if (!rp_node_is_scalar(*key[i]) || rp_node_text(*key[i])[0] == '\0') {
            return rp_node_fail(*key[i],
                                "expected a column: its number from 0, or its name in the first "
                                "line");
        }
    }
    RP_TRY(rp_labels_read(o->arena, keys, "classes", &o->labels));
    RP_TRY(rp_time_read(keys, input, 1, &o->time));
fail:
    return err;
}

/* Reads the tokeniser. Short texts are filled with id 0, which has to be a token for that. */
static rp_err read_bpe(own *o) {
    static const char *const names[] = {"<padding>", "<pad>", "[PAD]", "<|padding|>"};
    bool pads = false;
    rp_err err;
    RP_TRY(rp_vocab_read_bpe(o->arena, &o->rules, &o->vocab));
    const char *first = o->vocab.name[0];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        pads = pads || strcmp(first, names[i]) == 0;
    }
    if (!pads) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: token 0 is '%.40s': expected <padding>, <pad>, [PAD] or <|padding|>, "
                       "because id 0 fills short texts of `set: tsv`; `ringpipe data bpe` makes "
                       "such a file",
                       o->rules.file, first);
    }
fail:
    return err;
}

static rp_err open_set(rp_arena *arena, rp_data *data, rp_node *keys, const rp_data_input *input,
                       bool class_target) {
    const char *train;
    const char *test;
    uint32_t most;
    own *o = NULL;
    rp_err err;
    (void)class_target;
    RP_TRY(RP_ARENA_NEW(arena, 1, &o));
    o->arena = arena;
    o->data = data;
    data->own = o;
    RP_TRY(read_keys(o, keys, input, &most));
    RP_TRY(rp_data_find_files(arena, keys, ".tsv", data, &train, &test));
    RP_TRY(o->rules.kind == RP_TOKENS_BPE ? read_bpe(o) : RP_OK);
    RP_TRY(read_file(o, RP_SPLIT_TRAIN, train, most));
    if (test) {
        RP_TRY(read_file(o, RP_SPLIT_TEST, test, most));
    }
    data->type = RP_I32;
    data->sample = rp_shape_1(o->time);
    data->time = o->time;
    data->parts = 1;
    data->vocab = &o->vocab;
    data->tokens = o->vocab.count;
    data->text_tokens = o->part[RP_SPLIT_TRAIN].ids.count;
    data->padding = 1 - (double)data->text_tokens / o->time / data->count[RP_SPLIT_TRAIN];
fail:
    if (o) {
        rp_tokenizer_close(&o->tokenizer);
    }
    return err;
}

static rp_err read_ids(const rp_data *data, rp_split split, uint32_t index, int32_t *id, float *row,
                       int32_t *label) {
    const own *o = data->own;
    const part *p = &o->part[split];
    const uint64_t first = p->first[index];
    const uint32_t count = (uint32_t)(p->first[index + 1] - first);
    (void)row;
    rp_ids_copy(&p->ids, first, count, id);
    for (uint32_t i = count; i < o->time; i++) {
        id[i] = RP_TOKEN_PADDING;
    }
    if (label) {
        *label = p->label[index];
    }
    return RP_OK;
}

static uint32_t length_of(const rp_data *data, rp_split split, uint32_t index) {
    const own *o = data->own;
    const part *p = &o->part[split];
    return (uint32_t)(p->first[index + 1] - p->first[index]);
}

static rp_err read_label(const rp_data *data, uint32_t index, int32_t *label) {
    const own *o = data->own;
    *label = o->part[RP_SPLIT_TRAIN].label[index];
    return RP_OK;
}

const rp_data_kind rp_data_tsv = {
    .name = "tsv",
    .source =
        "texts and their classes in columns between tabs: words, parts of words, characters or "
        "bytes as token ids",
    .open = open_set,
    .read_ids = read_ids,
    .read_label = read_label,
    .length = length_of,
};
