/* Learns a byte-level BPE from texts.
 *
 * source  Hugging Face's BpeTrainer with a ByteLevel pre-tokeniser, all 256 bytes as the initial
 *         alphabet and min_frequency 2, fed line by line: the same tokens and merges */
#ifndef RP_DATA_BPE_TRAIN_H
#define RP_DATA_BPE_TRAIN_H

#include "base/arena.h"

enum { RP_BPE_VOCAB_MIN = 4 + 256 };

/* What a caller sees of a training. */
typedef struct {
    /* Called for each word of the texts, and twice for each different one, with 0 tokens; then for
     * each word that a merge changes and after each merge, with the tokens so far; and before the
     * file is written, with all tokens, which are `most` then. false: stop. May be NULL. */
    bool (*go_on)(void *own, uint32_t tokens, uint32_t most);
    void *own;
} rp_bpe_watch;

typedef struct {
    uint32_t tokens, merges; /* of the vocabulary; merges among them */
    uint64_t words;          /* different words of the texts */
} rp_bpe_learnt;

/* Reads text files in UTF-8, learns a vocabulary of at most `most` tokens (RP_BPE_VOCAB_MIN to
 * RP_TOKENS_MAX) and writes it to `path`, which is replaced, as tokenizer.json. Tokens 0 to 3 are
 * those of rp_vocab. A pair of tokens that occurs once is not merged, so there may be fewer.
 * errors  INTERRUPTED: go_on() said so, and nothing is written; IO, FORMAT, LIMIT, MEMORY */
rp_err rp_bpe_train(const char *const *files, uint32_t count, uint32_t most, const char *path,
                    const rp_bpe_watch *watch, rp_bpe_learnt *out) RP_MUST_CHECK;

#endif
