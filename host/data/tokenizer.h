/* Texts to token ids, by the rules and the vocabulary of a set or of a run folder: lower case, the
 * splitting into tokens, and the id of each. Private to the room. */
#ifndef RP_DATA_TOKENIZER_H
#define RP_DATA_TOKENIZER_H

#include "data/grown.h"
#include "data/text_file.h"
#include "data/vocab.h"

/* Reads a text file that is to be split into tokens, and checks it: UTF-8 without zero bytes, or
 * any bytes with `any_bytes`; normal form C if the rules ask for it. errors  IO; FORMAT; LIMIT;
 * MEMORY */
rp_err rp_tokenizer_read_file(rp_arena *arena, const rp_token_rules *rules, bool any_bytes,
                              const char *path, rp_text_file *out) RP_MUST_CHECK;

typedef struct rp_tokenizer rp_tokenizer;

/* `vocab` is borrowed; its tokens are bytes, characters, words or those of a BPE. errors  MEMORY;
 * FORMAT: the pattern of the BPE */
rp_err rp_tokenizer_open(const rp_vocab *vocab, rp_tokenizer **out) RP_MUST_CHECK;
/* Encodes a text, which is valid UTF-8 unless tokens are bytes. *ids is borrowed until the next
 * call; an id is vocab->count if the token has none. errors  MEMORY; LIMIT: see bpe_encode.h */
rp_err rp_tokenizer_encode(rp_tokenizer *tokenizer, const char *text, size_t bytes,
                           const uint32_t **ids, uint64_t *count) RP_MUST_CHECK;
/* Appends the first ids of a text, at most `most`, to a list of uint32_t. *count: ids of the whole
 * text. errors  as rp_tokenizer_encode() */
rp_err rp_tokenizer_append(rp_tokenizer *tokenizer, const char *text, size_t bytes, uint32_t most,
                           rp_grown *list, uint64_t *count) RP_MUST_CHECK;
void rp_tokenizer_close(rp_tokenizer **tokenizer); /* accepts NULL inside */

#endif
