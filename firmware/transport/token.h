/* Tokens: a word that the host creates and a board uses once to be admitted.
 *
 *   rpt1 + 77 characters (16 random bytes, then the host's public key) + 6 characters of checksum
 *
 * The random bytes determine a pair of CURVE keys. The board connects with that pair, so only a
 * holder of the word passes the handshake, and only the host that made it can answer. The host
 * keeps only the pair's public key. */
#ifndef RP_TRANSPORT_TOKEN_H
#define RP_TRANSPORT_TOKEN_H

#include "transport/keys.h"

enum { RP_TOKEN_SEED = 16, RP_TOKEN_WORD = 88 }; /* bytes; characters with the NUL */

typedef struct {
    uint8_t seed[RP_TOKEN_SEED];
    char host[RP_KEY_TEXT]; /* Z85 */
} rp_token;

/* Uses the kernel's random numbers, because no result of a run depends on it. `host`: Z85. */
void rp_token_new(const char *host, rp_token *out);
void rp_token_write(const rp_token *token, char out[RP_TOKEN_WORD]);
/* Returns NULL, or the problem as the end of a sentence that begins with the token's name; `out` is
 * then undefined. */
const char *rp_token_parse(const char *text, rp_token *out);
/* The pair that the seed determines. */
void rp_token_keys(const rp_token *token, rp_keypair *out);

#endif
