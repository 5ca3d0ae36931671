#include "data/vocab.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "data/bpe_file.h"
#include "data/unicode.h"

enum { WORDS_USUAL = 10000, WORDS_MOST = 1000000, SHOWN_BYTES = 60 };

const char *const rp_token_kinds[RP_TOKENS_KINDS + 1] = {"ids",   "bytes", "chars",
                                                         "words", "bpe",   NULL};
const char *const rp_token_splits[] = {"punctuation", "space", NULL};
const char *const rp_token_specials[RP_TOKENS_SPECIAL] = {"<padding>", "<unknown>", "<begin>",
                                                          "<end>"};

/* ---- keys ------------------------------------------------------------------------------------ */

bool rp_tokens_names_file(const char *text) {
    const size_t length = strlen(text);
    return length > 5 && strcmp(text + length - 5, ".json") == 0;
}

static rp_err read_kind(rp_node *keys, rp_token_rules *out) {
    static const char *const words[] = {"bytes", "chars", "words", "FILE.json", NULL};
    uint32_t kind = 0;
    rp_err err;
    RP_TRY(rp_node_need(keys, "tokens"));
    const rp_node *node = rp_node_find(keys, "tokens");
    if (rp_node_is_scalar(node) && rp_tokens_names_file(rp_node_text(node))) {
        *out = (rp_token_rules){.kind = RP_TOKENS_BPE, .file = rp_node_text(node)};
        return RP_OK;
    }
    RP_TRY(rp_node_word(keys, "tokens", words, &kind));
    *out = (rp_token_rules){.kind = (rp_token_kind)(kind + 1)};
fail:
    return err;
}

rp_err rp_token_rules_read(rp_node *keys, rp_token_rules *out, uint32_t *most) {
    static const char *const of_words[] = {"vocab", "lower", "split"};
    uint32_t split = 0;
    rp_err err;
    *most = WORDS_USUAL;
    RP_TRY(read_kind(keys, out));
    for (size_t i = 0; out->kind != RP_TOKENS_WORDS && i < 3; i++) {
        const rp_node *node = rp_node_find(keys, of_words[i]);
        if (node) {
            return rp_node_fail(node, "applies only to `tokens: words`");
        }
    }
    if (out->kind == RP_TOKENS_WORDS) {
        RP_TRY(rp_node_u32(keys, "vocab", RP_TOKENS_SPECIAL + 1, WORDS_MOST, most));
        RP_TRY(rp_node_bool(keys, "lower", &out->lower));
        RP_TRY(rp_node_word(keys, "split", rp_token_splits, &split));
        out->by_space = split == 1;
    }
fail:
    return err;
}

/* ---- tokens of a text ------------------------------------------------------------------------ */

rp_err rp_tokens_prepare(rp_arena *arena, const rp_token_rules *rules, const char *text,
                         size_t bytes, const char **out, size_t *out_bytes) {
    *out = text;
    *out_bytes = bytes;
    return rules->lower ? rp_unicode_lower_text(arena, text, bytes, out, out_bytes) : RP_OK;
}

static uint32_t read_char(const char *at, const char *end, uint32_t *code) {
    if ((uint8_t)*at < 0x80) { /* most characters */
        *code = (uint8_t)*at;
        return 1;
    }
    const uint32_t length = rp_unicode_read(at, end, code);
    RP_ASSERT(length > 0);
    return length;
}

static bool ends_word(const rp_token_rules *rules, uint32_t code) {
    return rules->by_space ? rp_unicode_is_space(code) : !rp_unicode_is_word(code);
}

/* Takes the word that begins at *at, which is before `end`. */
static void take_word(const rp_token_rules *rules, const char **at, const char *end) {
    uint32_t code;
    uint32_t length = read_char(*at, end, &code);
    *at += length;
    if (ends_word(rules, code)) {
        return; /* punctuation is a word of one character */
    }
    while (*at < end) {
        length = read_char(*at, end, &code);
        if (ends_word(rules, code)) {
            break;
        }
        *at += length;
    }
}

static void skip_spaces(const char **at, const char *end) {
    uint32_t code = ' ';
    uint32_t length = 0;
    while (*at < end && rp_unicode_is_space(code)) {
        *at += length;
        length = *at < end ? read_char(*at, end, &code) : 0;
    }
}

bool rp_tokens_next(const rp_token_rules *rules, const char **at, const char *end,
                    const char **token, size_t *bytes) {
    uint32_t code;
    if (rules->kind == RP_TOKENS_WORDS) {
        skip_spaces(at, end);
    }
    if (*at == end) {
        return false;
    }
    *token = *at;
    if (rules->kind == RP_TOKENS_WORDS) {
        take_word(rules, at, end);
    } else {
        *at += rules->kind == RP_TOKENS_BYTES ? 1 : read_char(*at, end, &code);
    }
    *bytes = (size_t)(*at - *token);
    return true;
}

uint64_t rp_tokens_skip(const rp_token_rules *rules, const char **at, const char *end,
                        uint64_t most) {
    const char *token;
    size_t length;
    uint64_t count = 0;
    if (rules->kind == RP_TOKENS_BYTES) {
        const uint64_t bytes = (uint64_t)(end - *at);
        count = bytes < most ? bytes : most;
        *at += count;
        return count;
    }
    while (count < most && rp_tokens_next(rules, at, end, &token, &length)) {
        count++;
    }
    return count;
}

uint64_t rp_tokens_count(const rp_token_rules *rules, const char *text, size_t bytes) {
    return rp_tokens_skip(rules, &text, text + bytes, UINT64_MAX);
}

/* ---- learning -------------------------------------------------------------------------------- */

rp_err rp_vocab_begin(rp_arena *scratch, const rp_token_rules *rules, rp_vocab_learner *out) {
    *out = (rp_vocab_learner){.scratch = scratch, .rules = *rules};
    rp_words_init(&out->words, scratch);
    return rules->kind == RP_TOKENS_CHARS ? RP_ARENA_NEW(scratch, RP_UNICODE_END, &out->has_char)
                                          : RP_OK;
}

rp_err rp_vocab_learn(rp_vocab_learner *learner, const char *text, size_t bytes) {
    const char *token;
    uint32_t at;
    size_t length;
    rp_err err;
    if (learner->rules.kind != RP_TOKENS_CHARS && learner->rules.kind != RP_TOKENS_WORDS) {
        return RP_OK;
    }
    RP_TRY(rp_tokens_prepare(learner->scratch, &learner->rules, text, bytes, &text, &bytes));
    const char *end = text + bytes;
    while (rp_tokens_next(&learner->rules, &text, end, &token, &length)) {
        if (learner->rules.kind == RP_TOKENS_CHARS) {
            (void)read_char(token, end, &at);
            learner->has_char[at] = true;
        } else {
            RP_TRY(rp_words_add(&learner->words, token, length, &at));
            learner->words.word[at].count++;
        }
    }
fail:
    return err;
}

static int compare_words(const void *left, const void *right) {
    const rp_word *a = left;
    const rp_word *b = right;
    const size_t common = a->bytes < b->bytes ? a->bytes : b->bytes;
    const int order = memcmp(a->at, b->at, common);
    return a->count != b->count   ? (a->count < b->count ? 1 : -1)
           : order != 0           ? order
           : a->bytes != b->bytes ? (a->bytes < b->bytes ? -1 : 1)
                                  : 0;
}

static uint32_t count_chars(const rp_vocab_learner *learner) {
    uint32_t count = 0;
    for (uint32_t code = 0; code < RP_UNICODE_END; code++) {
        count += learner->has_char[code];
    }
    return count;
}

/* Names of a vocabulary, in one block of memory. */
typedef struct {
    const char **name;
    char *text;
} names;

static void add_name(names *out, const char *at, size_t bytes) {
    memcpy(out->text, at, bytes); /* the block is zeroed */
    *out->name++ = out->text;
    out->text += bytes + 1;
}

static rp_err name_chars(rp_arena *arena, const rp_vocab_learner *learner, uint32_t count,
                         names *out) {
    char text[RP_UNICODE_BYTES_MAX];
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)count * (RP_UNICODE_BYTES_MAX + 1) + 1, &out->text));
    for (uint32_t code = 0; code < RP_UNICODE_END; code++) {
        if (learner->has_char[code]) {
            add_name(out, text, rp_unicode_write(code, text));
        }
    }
fail:
    return err;
}

static rp_err name_words(rp_arena *arena, const rp_vocab_learner *learner, uint32_t count,
                         names *out) {
    const rp_words *words = &learner->words;
    size_t bytes = 1;
    rp_err err;
    if (words->count > 0) {
        qsort(words->word, words->count, sizeof *words->word, compare_words);
    }
    for (uint32_t i = 0; i < count; i++) {
        bytes += words->word[i].bytes + 1;
    }
    RP_TRY(RP_ARENA_NEW(arena, bytes, &out->text));
    for (uint32_t i = 0; i < count; i++) {
        add_name(out, words->word[i].at, words->word[i].bytes);
    }
fail:
    return err;
}

rp_err rp_vocab_finish(rp_arena *arena, const rp_vocab_learner *learner, uint32_t special,
                       uint32_t most, rp_vocab *out) {
    const bool chars = learner->rules.kind == RP_TOKENS_CHARS;
    const char **name;
    rp_err err;
    if (learner->rules.kind == RP_TOKENS_BYTES) {
        return rp_vocab_restore(arena, &learner->rules, 0, NULL, 256, out);
    }
    uint32_t count = chars ? count_chars(learner) : learner->words.count;
    if (!chars && count > most - special) {
        count = most - special;
    }
    RP_TRY(RP_ARENA_NEW(arena, (size_t)special + count + 1, &name));
    for (uint32_t i = 0; i < special; i++) {
        name[i] = rp_token_specials[i];
    }
    names rest = {.name = name + special};
    RP_TRY(chars ? name_chars(arena, learner, count, &rest)
                 : name_words(arena, learner, count, &rest));
    RP_TRY(rp_vocab_restore(arena, &learner->rules, special, name, special + count, out));
fail:
    return err;
}

/* ---- finding --------------------------------------------------------------------------------- */

/* Names of characters increase. */
static rp_err restore_chars(rp_arena *arena, rp_vocab *vocab) {
    uint32_t least = 0;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, RP_UNICODE_END, &vocab->id_of));
    for (uint32_t i = vocab->special; i < vocab->count; i++) {
        const char *name = vocab->name[i];
        const size_t bytes = strlen(name);
        uint32_t code;
        if (bytes == 0 || rp_unicode_read(name, name + bytes, &code) != bytes || code < least) {
            return rp_fail(RP_ERR_FORMAT,
                           "entry %u of the vocabulary: expected one character, after those before",
                           i);
        }
        vocab->id_of[code] = i + 1;
        least = code + 1;
    }
fail:
    return err;
}

static rp_err restore_words(rp_arena *arena, rp_vocab *vocab) {
    rp_err err = RP_OK;
    rp_words_init(&vocab->words, arena);
    for (uint32_t i = vocab->special; i < vocab->count; i++) {
        const char *name = vocab->name[i];
        uint32_t at;
        RP_TRY(rp_words_add(&vocab->words, name, strlen(name), &at));
        if (name[0] == '\0' || at != i - vocab->special) {
            return rp_fail(RP_ERR_FORMAT,
                           "entry %u of the vocabulary: expected a word, and each word once", i);
        }
    }
fail:
    return err;
}

rp_err rp_vocab_restore(rp_arena *arena, const rp_token_rules *rules, uint32_t special,
                        const char *const *name, uint32_t count, rp_vocab *out) {
    *out = (rp_vocab){.rules = *rules, .special = special, .count = count, .name = name};
    return rules->kind == RP_TOKENS_CHARS   ? restore_chars(arena, out)
           : rules->kind == RP_TOKENS_WORDS ? restore_words(arena, out)
                                            : RP_OK;
}

rp_vocab rp_vocab_of_bpe(const rp_bpe *bpe) {
    return (rp_vocab){.rules = {.kind = RP_TOKENS_BPE, .nfc = bpe->nfc},
                      .count = bpe->count,
                      .name = bpe->name,
                      .bpe = bpe};
}

rp_err rp_vocab_read_bpe(rp_arena *arena, rp_token_rules *rules, rp_vocab *out) {
    const rp_bpe *bpe;
    rp_err err;
    RP_TRY(rp_bpe_read(arena, rules->file, &bpe));
    *out = rp_vocab_of_bpe(bpe);
    rules->nfc = bpe->nfc;
fail:
    return err;
}

rp_err rp_vocab_check_sentences(const rp_vocab *vocab, const char *where) {
    char shown[SHOWN_BYTES];
    const uint32_t known = vocab->name ? vocab->count : 0;
    for (uint32_t i = 0; i < RP_TOKENS_SPECIAL; i++) {
        const char *name = i < known ? vocab->name[i] : NULL;
        if (!name || strcmp(name, rp_token_specials[i]) != 0) {
            return rp_fail(RP_ERR_FORMAT,
                           "%s: token %u is %s%s%s, expected '%s', because `set: pairs` marks the "
                           "begin and the end of a sentence; `ringpipe data bpe` makes such a "
                           "tokeniser",
                           where, i, name ? "'" : "",
                           name ? rp_utf8_show(name, SHOWN_BYTES, shown, sizeof shown) : "missing",
                           name ? "'" : "", rp_token_specials[i]);
        }
    }
    return RP_OK;
}

uint32_t rp_vocab_find(const rp_vocab *vocab, const char *token, size_t bytes) {
    const uint32_t unknown = vocab->special > 0 ? (uint32_t)RP_TOKEN_UNKNOWN : vocab->count;
    uint32_t at;
    if (vocab->rules.kind == RP_TOKENS_BYTES) {
        return (uint8_t)*token;
    }
    if (vocab->rules.kind == RP_TOKENS_CHARS) {
        (void)read_char(token, token + bytes, &at);
        return vocab->id_of[at] > 0 ? vocab->id_of[at] - 1 : unknown;
    }
    at = rp_words_find(&vocab->words, token, bytes);
    return at < vocab->words.count ? vocab->special + at : unknown;
}
