/* Texts to the ids of a byte-level BPE. Private to the room. */
#ifndef RP_DATA_BPE_ENCODE_H
#define RP_DATA_BPE_ENCODE_H

#include "data/bpe.h"

/* Keeps the ids of words that it has encoded. Memory is linear in the longest text. */
typedef struct rp_bpe_encoder rp_bpe_encoder;

/* `bpe` is borrowed. errors  MEMORY; FORMAT: its pattern */
rp_err rp_bpe_encoder_open(const rp_bpe *bpe, rp_bpe_encoder **out) RP_MUST_CHECK;
/* Encodes a valid UTF-8 text. *ids is borrowed until the next call.
 * errors  MEMORY; LIMIT: the pattern takes too many steps */
rp_err rp_bpe_encode(rp_bpe_encoder *encoder, const char *text, size_t bytes, const uint32_t **ids,
                     uint64_t *count) RP_MUST_CHECK;
void rp_bpe_encoder_close(rp_bpe_encoder **encoder);

#endif
