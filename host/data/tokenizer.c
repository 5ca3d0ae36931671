#include "data/tokenizer.h"

#include "data/bpe_encode.h"

struct rp_tokenizer {
    const rp_vocab *vocab;
    rp_bpe_encoder *encoder; /* NULL: tokens are not those of a BPE */
    rp_grown ids;            /* uint32_t: of the last text, without an encoder */
};

rp_err rp_tokenizer_read_file(rp_arena *arena, const rp_token_rules *rules, bool any_bytes,
                              const char *path, rp_text_file *out) {
    rp_err err;
    RP_TRY(rp_text_file_read(arena, path, out));
    RP_TRY(any_bytes ? RP_OK : rp_text_file_check(out));
    RP_TRY(rules->nfc ? rp_text_file_check_nfc(out) : RP_OK);
fail:
    return err;
}

rp_err rp_tokenizer_open(const rp_vocab *vocab, rp_tokenizer **out) {
    rp_tokenizer *t = NULL;
    rp_err err;
    *out = NULL;
    RP_TRY(rp_block_new(sizeof *t, (void **)&t));
    *t = (rp_tokenizer){.vocab = vocab, .ids = {.size = sizeof(uint32_t)}};
    RP_TRY(vocab->bpe ? rp_bpe_encoder_open(vocab->bpe, &t->encoder) : RP_OK);
    *out = t;
    return RP_OK;
fail:
    rp_tokenizer_close(&t);
    return err;
}

static rp_err append_id(rp_grown *list, uint32_t id) {
    rp_err err;
    RP_TRY(rp_grown_reserve(list, list->count + 1));
    ((uint32_t *)list->at)[list->count++] = id;
fail:
    return err;
}

static rp_err find_ids(rp_tokenizer *t, const char *text, size_t bytes) {
    const rp_token_rules *rules = &t->vocab->rules;
    const char *token;
    size_t length;
    rp_arena scratch;
    rp_err err;
    rp_arena_init(&scratch, "lower case", 0);
    t->ids.count = 0;
    RP_TRY(rp_tokens_prepare(&scratch, rules, text, bytes, &text, &bytes));
    const char *end = text + bytes;
    while (rp_tokens_next(rules, &text, end, &token, &length)) {
        RP_TRY(append_id(&t->ids, rp_vocab_find(t->vocab, token, length)));
    }
fail:
    rp_arena_finish(&scratch);
    return err;
}

rp_err rp_tokenizer_encode(rp_tokenizer *tokenizer, const char *text, size_t bytes,
                           const uint32_t **ids, uint64_t *count) {
    if (tokenizer->encoder) {
        return rp_bpe_encode(tokenizer->encoder, text, bytes, ids, count);
    }
    const rp_err err = find_ids(tokenizer, text, bytes);
    *ids = tokenizer->ids.at;
    *count = tokenizer->ids.count;
    return err;
}

rp_err rp_tokenizer_append(rp_tokenizer *tokenizer, const char *text, size_t bytes, uint32_t most,
                           rp_grown *list, uint64_t *count) {
    const uint32_t *ids;
    rp_err err;
    RP_TRY(rp_tokenizer_encode(tokenizer, text, bytes, &ids, count));
    for (uint64_t i = 0; i < *count && i < most; i++) {
        RP_TRY(append_id(list, ids[i]));
    }
fail:
    return err;
}

void rp_tokenizer_close(rp_tokenizer **tokenizer) {
    rp_tokenizer *t = *tokenizer;
    if (t) {
        rp_bpe_encoder_close(&t->encoder);
        rp_grown_free(&t->ids);
        rp_block_free(t);
    }
    *tokenizer = NULL;
}
