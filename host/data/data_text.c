/* A language model's samples: windows of a text. */
#include <stdio.h>

#include "data/data.h"
#include "data/ids.h"
#include "data/sample_time.h"
#include "data/tokenizer.h"
#include "data/unicode.h"

#include "base/utf8.h"

enum { SHOWN_BYTES = 40, PIECE = 1 << 16 /* tokens encoded at a time */ };

typedef struct {
    uint32_t time;
    rp_vocab vocab;
    rp_ids part[2]; /* by split */
} own;

/* A text that is to be split into tokens, or a part of it. */
typedef struct {
    const rp_text_file *file;
    const char *at, *end;
} span;

static rp_err read_span(rp_arena *scratch, const rp_token_rules *rules, const char *path,
                        rp_text_file *file, span *out) {
    const bool any_bytes = rules->kind == RP_TOKENS_BYTES;
    rp_err err;
    RP_TRY(rp_tokenizer_read_file(scratch, rules, any_bytes, path, file));
    *out = (span){.file = file, .at = file->text, .end = file->text + file->bytes};
fail:
    return err;
}

/* Moves the last tenth of the tokens to *test. */
static void split_span(const rp_token_rules *rules, span *train, span *test) {
    const uint64_t all = rp_tokens_count(rules, train->at, (size_t)(train->end - train->at));
    *test = *train;
    (void)rp_tokens_skip(rules, &test->at, test->end, all * 9 / 10);
    train->end = test->at;
}

/* Only a character can be unknown: all bytes are known, and an unknown word has an id. */
static rp_err fail_unknown(const rp_text_file *file, const char *token) {
    const size_t place = (size_t)(token - file->text);
    char text[RP_UNICODE_BYTES_MAX + 1] = "";
    char shown[SHOWN_BYTES];
    uint32_t code = 0;
    (void)rp_unicode_read(token, file->text + file->bytes, &code);
    text[rp_unicode_write(code, text)] = '\0';
    return rp_fail(RP_ERR_FORMAT,
                   "%s:%u: the character '%s' (U+%04X, byte %zu of the file) does not occur in the "
                   "training part, so it has no id: remove it, or use `tokens: bytes`",
                   file->path, rp_text_file_line(file, place),
                   rp_utf8_show(text, sizeof text, shown, sizeof shown), code,
                   file->skipped + place);
}

static rp_err store_ids(rp_arena *arena, const rp_vocab *vocab, const span *part, rp_ids *ids) {
    rp_tokenizer *tokenizer = NULL;
    const uint32_t *id;
    uint64_t count;
    rp_err err;
    RP_TRY(rp_tokenizer_open(vocab, &tokenizer));
    RP_TRY(rp_ids_open(arena, ids, vocab->count,
                       rp_tokens_count(&vocab->rules, part->at, (size_t)(part->end - part->at))));
    for (const char *at = part->at; at < part->end;) {
        const char *piece = at;
        (void)rp_tokens_skip(&vocab->rules, &at, part->end, PIECE);
        RP_TRY(rp_tokenizer_encode(tokenizer, piece, (size_t)(at - piece), &id, &count));
        for (uint64_t i = 0; i < count; i++) {
            if (id[i] == vocab->count) {
                (void)rp_tokens_skip(&vocab->rules, &piece, part->end, i);
                err = fail_unknown(part->file, piece);
                goto fail;
            }
            rp_ids_add(ids, id[i]);
        }
    }
fail:
    rp_tokenizer_close(&tokenizer);
    return err;
}

static rp_err read_parts(rp_arena *arena, rp_arena *scratch, const rp_token_rules *rules,
                         uint32_t most, const char *const *path, own *o) {
    const uint32_t special = rules->kind == RP_TOKENS_WORDS ? RP_TOKENS_SPECIAL : 0;
    rp_text_file file[2];
    span part[2];
    rp_vocab_learner learner;
    rp_err err;
    RP_TRY(read_span(scratch, rules, path[0], &file[0], &part[0]));
    if (path[1]) {
        RP_TRY(read_span(scratch, rules, path[1], &file[1], &part[1]));
    } else {
        split_span(rules, &part[0], &part[1]);
    }
    RP_TRY(rp_vocab_begin(scratch, rules, &learner));
    RP_TRY(rp_vocab_learn(&learner, part[0].at, (size_t)(part[0].end - part[0].at)));
    RP_TRY(rp_vocab_finish(arena, &learner, special, most, &o->vocab));
    for (rp_split split = RP_SPLIT_TRAIN; split <= RP_SPLIT_TEST; split++) {
        RP_TRY(store_ids(arena, &o->vocab, &part[split], &o->part[split]));
    }
fail:
    return err;
}

/* ---- parts of words -------------------------------------------------------------------------- */

/* Encodes a file, and with two parts moves the last tenth of its tokens to the second one. */
static rp_err encode_file(rp_arena *arena, rp_tokenizer *tokenizer, const rp_vocab *vocab,
                          const char *path, rp_ids *part, uint32_t parts) {
    const uint32_t *id;
    uint64_t count;
    rp_text_file file;
    rp_arena scratch;
    rp_err err;
    rp_arena_init(&scratch, "text", 0);
    RP_TRY(rp_tokenizer_read_file(&scratch, &vocab->rules, false, path, &file));
    RP_TRY(rp_tokenizer_encode(tokenizer, file.text, file.bytes, &id, &count));
    const uint64_t first = parts > 1 ? count * 9 / 10 : count;
    RP_TRY(rp_ids_store(arena, &part[0], vocab->count, id, first));
    if (parts > 1) {
        RP_TRY(rp_ids_store(arena, &part[1], vocab->count, id + first, count - first));
    }
fail:
    rp_arena_finish(&scratch);
    return err;
}

static rp_err encode_parts(rp_arena *arena, rp_token_rules *rules, const char *const *path,
                           own *o) {
    rp_tokenizer *tokenizer = NULL;
    rp_err err;
    RP_TRY(rp_vocab_read_bpe(arena, rules, &o->vocab));
    RP_TRY(rp_tokenizer_open(&o->vocab, &tokenizer));
    RP_TRY(encode_file(arena, tokenizer, &o->vocab, path[0], &o->part[0], path[1] ? 1 : 2));
    if (path[1]) {
        RP_TRY(encode_file(arena, tokenizer, &o->vocab, path[1], &o->part[1], 1));
    }
fail:
    rp_tokenizer_close(&tokenizer);
    return err;
}

/* ---- the set --------------------------------------------------------------------------------- */

/* A window has one token more than a sample: the label of its last token. */
static rp_err count_windows(const own *o, const char *path, rp_split split, rp_data *data) {
    const uint64_t tokens = o->part[split].count;
    if (tokens <= o->time) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: the %s part has %llu tokens (%s), expected at least %u, one more than "
                       "`time`",
                       path, rp_split_name(split), (unsigned long long)tokens,
                       rp_token_kinds[o->vocab.rules.kind], o->time + 1);
    }
    data->count[split] = (uint32_t)((tokens - 1) / o->time);
    return RP_OK;
}

static rp_err open_set(rp_arena *arena, rp_data *data, rp_node *keys, const rp_data_input *input,
                       bool class_target) {
    const char *path[2];
    rp_token_rules rules;
    rp_arena scratch;
    uint32_t most;
    own *o;
    rp_err err;
    (void)class_target;
    rp_arena_init(&scratch, "text", 0);
    RP_TRY(RP_ARENA_NEW(arena, 1, &o));
    data->own = o;
    RP_TRY(rp_token_rules_read(keys, &rules, &most));
    RP_TRY(rp_time_read(keys, input, 1, &o->time));
    RP_TRY(rp_data_find_files(arena, keys, ".txt", data, &path[0], &path[1]));
    data->test_path = NULL; /* without a test file, a tenth is the test part */
    RP_TRY(rules.kind == RP_TOKENS_BPE ? encode_parts(arena, &rules, path, o)
                                       : read_parts(arena, &scratch, &rules, most, path, o));
    for (rp_split split = RP_SPLIT_TRAIN; split <= RP_SPLIT_TEST; split++) {
        RP_TRY(count_windows(o, path[1] ? path[split] : path[0], split, data));
    }
    data->type = RP_I32;
    data->sample = rp_shape_1(o->time);
    data->target_width = o->time;
    data->vocab = &o->vocab;
    data->bits = rules.kind == RP_TOKENS_BPE     ? RP_BITS_OF_BYTE
                 : rules.kind == RP_TOKENS_WORDS ? RP_BITS_NONE
                                                 : RP_BITS_OF_TOKEN;
    data->tokens = data->classes = o->vocab.count;
    data->text_tokens = o->part[RP_SPLIT_TRAIN].count;
fail:
    rp_arena_finish(&scratch);
    return err;
}

static rp_err read_ids(const rp_data *data, rp_split split, uint32_t index, int32_t *id, float *row,
                       int32_t *label) {
    const own *o = data->own;
    const uint64_t first = (uint64_t)index * o->time;
    (void)row;
    rp_ids_copy(&o->part[split], first, o->time, id);
    if (label) {
        rp_ids_copy(&o->part[split], first + 1, o->time, label);
    }
    return RP_OK;
}

const rp_data_kind rp_data_text = {
    .name = "text",
    .source = "a text for a language model: windows of bytes, characters, words or parts of words, "
              "each token with the next one as its label",
    .open = open_set,
    .read_ids = read_ids,
};
