/* Sentences and their translations: two files, in which line n of one belongs to line n of the
 * other.
 *
 * A sample has the ids of the source, then <begin> and the ids of the target, each cut or padded to
 * `time` ids; its labels are the target's ids and <end>. One vocabulary is for both languages. */
#include <stdio.h>
#include <string.h>

#include "data/data.h"
#include "data/ids.h"
#include "data/sample_time.h"
#include "data/tokenizer.h"

enum { SOURCE, TARGET, SIDES };

/* The pairs of a part. */
typedef struct {
    const char *path[SIDES];    /* NULL: there is no such part */
    const char **line[SIDES];   /* [count], zero-terminated, for people */
    rp_ids ids;                 /* source and target of each pair in turn */
    uint64_t *first;            /* [2 count + 1]: of each sentence in `ids` */
    uint32_t count, cut, empty; /* pairs; those that are cut, or left out for want of tokens */
} part;

typedef struct {
    rp_arena *arena;
    rp_data *data;
    uint32_t time;
    rp_token_rules rules;
    uint32_t most; /* ids at most, of words */
    rp_vocab vocab;
    rp_tokenizer *tokenizer; /* while the set is opened */
    part part[2];            /* by split */
} own;

/* ---- lines ----------------------------------------------------------------------------------- */

/* A copy of the next line; NULL: the file ends. */
static rp_err take_line(rp_arena *arena, const rp_text_file *file, const char **at, char **out) {
    const char *end = file->text + file->bytes;
    *out = NULL;
    if (*at == end) {
        return RP_OK;
    }
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    const char *next = newline ? newline + 1 : end;
    size_t bytes = (size_t)((newline ? newline : end) - *at);
    bytes -= bytes > 0 && (*at)[bytes - 1] == '\r';
    rp_err err = rp_arena_text(arena, *at, bytes, out);
    *at = next;
    return err;
}

static uint32_t count_lines(const rp_text_file *file) {
    uint32_t count = file->text[file->bytes - 1] != '\n';
    for (size_t i = 0; i < file->bytes; i++) {
        count += file->text[i] == '\n';
    }
    return count;
}

/* Has a sentence tokens? White space has none if tokens are words. */
static bool has_tokens(const own *o, const char *text) {
    return o->rules.kind == RP_TOKENS_BPE
               ? text[0] != '\0'
               : rp_tokens_skip(&o->rules, &text, text + strlen(text), 1) > 0;
}

/* Keeps the pairs of lines that both have tokens. */
static rp_err read_lines(own *o, part *p, const rp_text_file file[SIDES]) {
    const uint32_t lines = count_lines(&file[SOURCE]);
    const char *at[SIDES] = {file[SOURCE].text, file[TARGET].text};
    uint32_t sentences[SIDES] = {0};
    rp_err err;
    for (int side = 0; side < SIDES; side++) {
        RP_TRY(RP_ARENA_NEW(o->arena, lines, &p->line[side]));
    }
    for (uint32_t i = 0; i < lines; i++) {
        bool whole = true;
        for (int side = 0; side < SIDES; side++) {
            char *text;
            RP_TRY(take_line(o->arena, &file[side], &at[side], &text));
            const bool good = has_tokens(o, text);
            p->line[side][p->count] = text;
            sentences[side] += good;
            whole = whole && good;
        }
        p->empty += !whole;
        p->count += whole;
    }
    for (int side = 0; side < SIDES; side++) {
        if (sentences[side] == 0) {
            return rp_fail(RP_ERR_FORMAT, "%s: has no sentences", p->path[side]);
        }
    }
    if (p->count == 0) {
        return rp_fail(RP_ERR_FORMAT, "%s: no sentence has a translation in %s", p->path[SOURCE],
                       p->path[TARGET]);
    }
fail:
    return err;
}

static rp_err open_part(own *o, part *p, rp_arena *scratch) {
    rp_text_file file[SIDES];
    uint32_t lines[SIDES];
    rp_err err;
    for (int side = 0; side < SIDES; side++) {
        RP_TRY(rp_tokenizer_read_file(scratch, &o->rules, false, p->path[side], &file[side]));
        lines[side] = count_lines(&file[side]);
    }
    if (lines[TARGET] != lines[SOURCE]) {
        return rp_fail(RP_ERR_FORMAT, "%s: has %u lines, expected %u as in %s", p->path[TARGET],
                       lines[TARGET], lines[SOURCE], p->path[SOURCE]);
    }
    RP_TRY(read_lines(o, p, file));
fail:
    return err;
}

/* ---- vocabulary ------------------------------------------------------------------------------ */

/* Words or characters of both languages. */
static rp_err learn_vocab(own *o, rp_arena *scratch) {
    const part *p = &o->part[RP_SPLIT_TRAIN];
    rp_vocab_learner learner;
    rp_err err;
    RP_TRY(rp_vocab_begin(scratch, &o->rules, &learner));
    for (uint32_t i = 0; i < p->count; i++) {
        for (int side = 0; side < SIDES; side++) {
            const char *text = p->line[side][i];
            RP_TRY(rp_vocab_learn(&learner, text, strlen(text)));
        }
    }
    RP_TRY(rp_vocab_finish(o->arena, &learner, RP_TOKENS_SPECIAL, o->most, &o->vocab));
fail:
    return err;
}

static rp_err open_tokenizer(own *o, rp_arena *scratch) {
    rp_err err;
    RP_TRY(o->rules.kind == RP_TOKENS_BPE ? RP_OK : learn_vocab(o, scratch));
    RP_TRY(rp_tokenizer_open(&o->vocab, &o->tokenizer));
fail:
    return err;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The number of ids is known after all sentences are encoded. */
static rp_err store_part(own *o, rp_split split) {
    part *p = &o->part[split];
    rp_grown list = {.size = sizeof(uint32_t)};
    uint64_t at = 0;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(o->arena, 2 * (size_t)p->count + 1, &p->first));
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t cut = 0;
        for (int side = 0; side < SIDES; side++) {
            const char *text = p->line[side][i];
            const uint32_t room = side == TARGET ? o->time - 1 : o->time;
            uint64_t count;
            RP_TRY(rp_tokenizer_append(o->tokenizer, text, strlen(text), room, &list, &count));
            p->first[++at] = list.count;
            cut += count > room;
        }
        p->cut += cut > 0;
    }
    RP_TRY(rp_ids_store(o->arena, &p->ids, o->vocab.count, list.at, list.count));
    o->data->count[split] = p->count;
fail:
    rp_grown_free(&list);
    return err;
}

static rp_err note_part(const own *o, const part *p) {
    rp_notes *notes = &o->data->notes;
    rp_err err = RP_OK;
    if (p->cut > 0) {
        RP_TRY(rp_notes_add(o->arena, notes,
                            "%s: %u of %u pairs have a source of more than %u tokens or a target "
                            "of more than %u and are cut; a larger `time` keeps more of them",
                            p->path[SOURCE], p->cut, p->count, o->time, o->time - 1));
    }
    if (p->empty > 0) {
        RP_TRY(rp_notes_add(o->arena, notes,
                            "%s: %u of %u pairs are left out, because one of their lines has no "
                            "token",
                            p->path[SOURCE], p->empty, p->count + p->empty));
    }
fail:
    return err;
}

/* ---- the set --------------------------------------------------------------------------------- */

static rp_err read_names(own *o, rp_node *keys) {
    static const char *const key[2][SIDES] = {{"source", "target"}, {"test_source", "test_target"}};
    const char *folder = NULL;
    rp_err err;
    RP_TRY(rp_data_find_path(keys, &folder));
    for (int k = 0; k < 2 * SIDES; k++) {
        const char *name = NULL;
        char *text;
        RP_TRY(k < SIDES ? rp_node_need(keys, key[k / SIDES][k % SIDES]) : RP_OK);
        RP_TRY(rp_node_string(keys, key[k / SIDES][k % SIDES], &name));
        RP_TRY(rp_arena_printf(o->arena, &text, "%s/%s", folder, name ? name : ""));
        o->part[k / SIDES].path[k % SIDES] = name ? text : NULL;
    }
    if (!o->part[1].path[SOURCE] != !o->part[1].path[TARGET]) {
        return rp_node_fail(keys, "expected both `test_source` and `test_target`, or none of them");
    }
fail:
    return err;
}

static rp_err read_keys(own *o, rp_node *keys, const rp_data_input *input) {
    rp_err err;
    RP_TRY(rp_token_rules_read(keys, &o->rules, &o->most));
    if (o->rules.kind == RP_TOKENS_BYTES) {
        return rp_node_fail(rp_node_find(keys, "tokens"),
                            "expected chars, words or a tokenizer.json, because bytes have no id "
                            "for the begin and the end of a sentence");
    }
    RP_TRY(rp_time_read(keys, input, SIDES, &o->time));
    if (o->time < 2) {
        return rp_node_fail(keys, "`time`: expected at least 2, the begin and the end of a target");
    }
fail:
    return err;
}

static void fill_facts(const own *o, rp_data *data) {
    const part *p = &o->part[RP_SPLIT_TRAIN];
    data->type = RP_I32;
    data->sample = rp_shape_1(2 * o->time);
    data->time = o->time;
    data->parts = SIDES;
    data->by_token = true;
    data->target_width = o->time;
    data->vocab = &o->vocab;
    data->tokens = data->classes = o->vocab.count;
    data->text_tokens = p->ids.count;
    data->pads_labels = true;
    data->padding = 1 - ((double)p->ids.count + p->count) / o->time / 2 / p->count;
}

static rp_err open_set(rp_arena *arena, rp_data *data, rp_node *keys, const rp_data_input *input,
                       bool class_target) {
    rp_arena scratch;
    own *o = NULL;
    rp_err err;
    (void)class_target;
    rp_arena_init(&scratch, "pairs", 0);
    RP_TRY(RP_ARENA_NEW(arena, 1, &o));
    *o = (own){.arena = arena, .data = data};
    data->own = o;
    RP_TRY(read_keys(o, keys, input));
    RP_TRY(read_names(o, keys));
    if (o->rules.kind == RP_TOKENS_BPE) {
        RP_TRY(rp_vocab_read_bpe(arena, &o->rules, &o->vocab));
        RP_TRY(rp_vocab_check_sentences(&o->vocab, o->rules.file));
    }
    for (rp_split split = RP_SPLIT_TRAIN; split <= RP_SPLIT_TEST; split++) {
        part *p = &o->part[split];
        if (split == RP_SPLIT_TEST && !p->path[SOURCE]) {
            data->test_path = "data.test_source";
            break;
        }
        RP_TRY(open_part(o, p, &scratch));
        RP_TRY(split == RP_SPLIT_TRAIN ? open_tokenizer(o, &scratch) : RP_OK);
        RP_TRY(store_part(o, split));
        RP_TRY(note_part(o, p));
    }
    fill_facts(o, data);
fail:
    if (o) {
        rp_tokenizer_close(&o->tokenizer);
    }
    rp_arena_finish(&scratch);
    return err;
}

/* Copies a sentence to `out` and pads it to `room`. */
static uint32_t copy_sentence(const part *p, uint64_t sentence, uint32_t room, int32_t *out) {
    const uint64_t first = p->first[sentence];
    const uint32_t count = (uint32_t)(p->first[sentence + 1] - first);
    rp_ids_copy(&p->ids, first, count, out);
    for (uint32_t i = count; i < room; i++) {
        out[i] = RP_TOKEN_PADDING;
    }
    return count;
}

static rp_err read_ids(const rp_data *data, rp_split split, uint32_t index, int32_t *id, float *row,
                       int32_t *label) {
    const own *o = data->own;
    const part *p = &o->part[split];
    (void)row;
    (void)copy_sentence(p, 2 * (uint64_t)index, o->time, id);
    id[o->time] = RP_TOKEN_BEGIN;
    (void)copy_sentence(p, 2 * (uint64_t)index + 1, o->time - 1, id + o->time + 1);
    if (label) {
        label[copy_sentence(p, 2 * (uint64_t)index + 1, o->time, label)] = RP_TOKEN_END;
    }
    return RP_OK;
}

/* A target has one more id, <begin> or <end>. */
static uint32_t length_of(const rp_data *data, rp_split split, uint32_t index) {
    const own *o = data->own;
    const uint64_t *first = &o->part[split].first[2 * (uint64_t)index];
    const uint32_t source = (uint32_t)(first[1] - first[0]);
    const uint32_t target = (uint32_t)(first[2] - first[1]) + 1;
    return source > target ? source : target;
}

static void read_texts(const rp_data *data, rp_split split, uint32_t index, const char **source,
                       const char **target) {
    const own *o = data->own;
    *source = o->part[split].line[SOURCE][index];
    *target = o->part[split].line[TARGET][index];
}

const rp_data_kind rp_data_pairs = {
    .name = "pairs",
    .source = "sentences and their translations in two files, line by line: characters, words or "
              "parts of words as token ids",
    .open = open_set,
    .read_ids = read_ids,
    .length = length_of,
    .read_texts = read_texts,
};
