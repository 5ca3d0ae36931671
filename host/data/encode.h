/* Texts to token ids and back, with the vocabulary of a description. */
#ifndef RP_DATA_ENCODE_H
#define RP_DATA_ENCODE_H

#include <stdio.h>

#include "data/vocab.h"

/* The ids of a text, in `arena`; *count may be 0.
 * errors  USAGE: there is no vocabulary, the text is not UTF-8 or, for a BPE that wants it, not in
 *         normal form C, or a token has no id; MEMORY; LIMIT: see bpe_encode.h */
rp_err rp_text_encode(rp_arena *arena, const rp_vocab *vocab, const char *text, int32_t **out,
                      uint32_t *count) RP_MUST_CHECK;

/* The bytes of a text, which may have zeros among them; a zero follows. */
typedef struct {
    const char *at;
    size_t bytes;
} rp_text;

/* The text of tokens, as they continue one, in `arena`. errors MEMORY */
rp_err rp_text_decode(rp_arena *arena, const rp_vocab *vocab, const int32_t *ids, uint32_t count,
                      rp_text *out) RP_MUST_CHECK;

/* Writes a token as it continues a text: words after a blank, of a BPE only the token's bytes,
 * which may be a part of a character. errors IO */
rp_err rp_text_write_token(const rp_vocab *vocab, uint32_t id, FILE *file) RP_MUST_CHECK;

#endif
