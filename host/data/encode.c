#include "data/encode.h"

#include <errno.h>
#include <string.h>

#include "base/utf8.h"
#include "data/tokenizer.h"
#include "data/unicode.h"

enum { SHOWN_BYTES = 60 };

/* Token `index` of the text has no id. */
static rp_err fail_unknown(const rp_vocab *vocab, const char *text, uint64_t index) {
    const char *end = text + strlen(text);
    const char *token = text;
    size_t bytes = 0;
    char shown[SHOWN_BYTES];
    (void)rp_tokens_skip(&vocab->rules, &text, end, index);
    (void)rp_tokens_next(&vocab->rules, &text, end, &token, &bytes);
    return rp_fail(RP_ERR_USAGE,
                   "'%s' does not occur in the training text, so the net has no token for it",
                   rp_utf8_show(token, bytes, shown, sizeof shown));
}

static rp_err check_text(const rp_vocab *vocab, const char *text) {
    const size_t bytes = strlen(text);
    if (vocab->rules.kind == RP_TOKENS_IDS) {
        return rp_fail(RP_ERR_USAGE, "the net was trained on ids from arrays, so it has no words "
                                     "for a text");
    }
    if (!rp_utf8_is_valid(text)) {
        return rp_fail(RP_ERR_USAGE, "the text is not UTF-8");
    }
    const size_t place = vocab->rules.nfc ? rp_unicode_nfc_bytes(text, bytes) : bytes;
    return place == bytes
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "byte %zu of the text: expected a text in normal form C (NFC)", place);
}

rp_err rp_text_encode(rp_arena *arena, const rp_vocab *vocab, const char *text, int32_t **out,
                      uint32_t *count) {
    rp_tokenizer *tokenizer = NULL;
    const uint32_t *ids;
    uint64_t found;
    rp_err err;
    *count = 0;
    RP_TRY(check_text(vocab, text));
    RP_TRY(rp_tokenizer_open(vocab, &tokenizer));
    RP_TRY(rp_tokenizer_encode(tokenizer, text, strlen(text), &ids, &found));
    RP_TRY(RP_ARENA_NEW(arena, found + 1, out));
    for (uint64_t i = 0; i < found; i++) {
        if (ids[i] >= vocab->count) {
            err = fail_unknown(vocab, text, i);
            goto fail;
        }
        (*out)[i] = (int32_t)ids[i];
    }
    *count = (uint32_t)found;
fail:
    rp_tokenizer_close(&tokenizer);
    return err;
}

static rp_err fail_write(void) {
    return rp_fail(RP_ERR_IO, "standard output: %s", strerror(errno));
}

rp_err rp_text_write_token(const rp_vocab *vocab, uint32_t id, FILE *file) {
    RP_ASSERT(id < vocab->count);
    if (vocab->bpe) {
        const rp_bpe_text *text = &vocab->bpe->text[id];
        return fwrite(text->at, 1, text->bytes, file) == text->bytes ? RP_OK : fail_write();
    }
    const bool good = vocab->rules.kind == RP_TOKENS_BYTES ? fputc((int)id, file) != EOF
                      : vocab->rules.kind == RP_TOKENS_WORDS
                          ? fprintf(file, " %s", vocab->name[id]) > 0
                          : fputs(vocab->name[id], file) != EOF;
    return good ? RP_OK : fail_write();
}

/* Bytes that rp_text_write_token() writes at most. */
static size_t token_bytes(const rp_vocab *vocab, uint32_t id) {
    return vocab->bpe                             ? vocab->bpe->text[id].bytes
           : vocab->rules.kind == RP_TOKENS_BYTES ? 1
                                                  : strlen(vocab->name[id]) + 1;
}

rp_err rp_text_decode(rp_arena *arena, const rp_vocab *vocab, const int32_t *ids, uint32_t count,
                      rp_text *out) {
    size_t room = 1;
    char *text;
    rp_err err;
    for (uint32_t i = 0; i < count; i++) {
        RP_ASSERT(ids[i] >= 0 && (uint32_t)ids[i] < vocab->count);
        room += token_bytes(vocab, (uint32_t)ids[i]);
    }
    RP_TRY(rp_arena_alloc(arena, 1, room, (void **)&text));
    FILE *file = fmemopen(text, room, "w");
    if (!file) {
        return rp_fail(RP_ERR_MEMORY, "no memory for a text");
    }
    for (uint32_t i = 0; err == RP_OK && i < count; i++) {
        err = rp_text_write_token(vocab, (uint32_t)ids[i], file);
    }
    *out = (rp_text){.at = text, .bytes = (size_t)ftell(file)};
    (void)fclose(file);
fail:
    return err;
}
