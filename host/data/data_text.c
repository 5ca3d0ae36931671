/* A language model's samples: windows of a text. */
#include "data/data.h"
#include "data/ids.h"
#include "data/sample_time.h"
#include "data/text_file.h"
#include "data/unicode.h"

#include "base/utf8.h"

enum { SHOWN_BYTES = 40 };

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
    size_t bytes = 0;
    rp_err err;
    RP_TRY(rp_text_file_read(scratch, path, file));
    RP_TRY(rules->kind == RP_TOKENS_BYTES ? RP_OK : rp_text_file_check(file));
    out->file = file;
    RP_TRY(rp_tokens_prepare(scratch, rules, file->text, file->bytes, &out->at, &bytes));
    out->end = out->at + bytes;
fail:
    return err;
}

/* Moves the last tenth of the tokens to *test. */
static void split_span(const rp_token_rules *rules, span *train, span *test) {
    const uint64_t all = rp_tokens_count(rules, train->at, (size_t)(train->end - train->at));
    const char *token;
    size_t bytes;
    *test = *train;
    for (uint64_t i = 0; i < all * 9 / 10; i++) {
        (void)rp_tokens_next(rules, &test->at, test->end, &token, &bytes);
    }
    train->end = test->at;
}

/* Only a character can be unknown: all bytes are known, and an unknown word has an id. */
static rp_err fail_unknown(const span *part, const char *token, size_t bytes) {
    const rp_text_file *file = part->file;
    const size_t place = (size_t)(token - file->text);
    char text[RP_UNICODE_BYTES_MAX + 1] = "";
    char shown[SHOWN_BYTES];
    uint32_t code = 0;
    (void)rp_unicode_read(token, token + bytes, &code);
    text[rp_unicode_write(code, text)] = '\0';
    return rp_fail(RP_ERR_FORMAT,
                   "%s:%u: the character '%s' (U+%04X, byte %zu of the file) does not occur in the "
                   "training part, so it has no id: remove it, or use `tokens: bytes`",
                   file->path, rp_text_file_line(file, place),
                   rp_utf8_show(text, sizeof text, shown, sizeof shown), code, place);
}

static rp_err store_ids(rp_arena *arena, const rp_vocab *vocab, const span *part, rp_ids *ids) {
    const char *at = part->at;
    const char *token;
    size_t bytes;
    rp_err err;
    RP_TRY(rp_ids_open(arena, ids, vocab->count,
                       rp_tokens_count(&vocab->rules, at, (size_t)(part->end - at))));
    while (rp_tokens_next(&vocab->rules, &at, part->end, &token, &bytes)) {
        const uint32_t id = rp_vocab_find(vocab, token, bytes);
        if (id == vocab->count) {
            return fail_unknown(part, token, bytes);
        }
        rp_ids_add(ids, id);
    }
fail:
    return err;
}

/* A window has one token more than a sample: the label of its last token. */
static rp_err count_windows(const own *o, const span *part, rp_split split, rp_data *data) {
    const uint64_t tokens = o->part[split].count;
    if (tokens <= o->time) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: the %s part has %llu tokens (%s), expected at least %u, one more than "
                       "`time`",
                       part->file->path, rp_split_name(split), (unsigned long long)tokens,
                       rp_token_kinds[o->vocab.rules.kind], o->time + 1);
    }
    data->count[split] = (uint32_t)((tokens - 1) / o->time);
    return RP_OK;
}

static rp_err read_parts(rp_arena *arena, rp_arena *scratch, const rp_token_rules *rules,
                         uint32_t most, const char *const *path, rp_data *data) {
    const uint32_t special = rules->kind == RP_TOKENS_WORDS ? RP_TOKENS_SPECIAL : 0;
    own *o = data->own;
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
        RP_TRY(count_windows(o, &part[split], split, data));
    }
fail:
    return err;
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
    RP_TRY(rp_time_read(keys, input, &o->time));
    RP_TRY(rp_data_find_files(arena, keys, ".txt", data, &path[0], &path[1]));
    data->test_path = NULL; /* without a test file, a tenth is the test part */
    RP_TRY(read_parts(arena, &scratch, &rules, most, path, data));
    data->type = RP_I32;
    data->sample = rp_shape_1(o->time);
    data->target_width = o->time;
    data->vocab = &o->vocab;
    data->characters = rules.kind != RP_TOKENS_WORDS;
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
    .source = "a text for a language model: windows of bytes, characters or words, each token with "
              "the next one as its label",
    .open = open_set,
    .read_ids = read_ids,
};
