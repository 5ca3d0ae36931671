/* Added tokens of a byte-level BPE, as Hugging Face's tokenizers find them. Private to the room. */
#ifndef RP_DATA_BPE_ADDED_H
#define RP_DATA_BPE_ADDED_H

#include "data/bpe.h"

/* A token in a text. */
typedef struct {
    const rp_bpe_added *token;
    size_t first, end;   /* its text */
    size_t begin, after; /* the same with the white space that it contains */
} rp_bpe_found;

/* Finds the first token of a valid UTF-8 text at or after `from`, of several there the longest.
 * `normalised`: the tokens to search. Returns false if there is no further token. */
bool rp_bpe_find_added(const rp_bpe *bpe, bool normalised, const char *text, size_t bytes,
                       size_t from, rp_bpe_found *out);

#endif
