/* Keys as text for people: rpk1 and 58 letters and digits (bech32m.h); a secret key begins with
 * rpsecret1. Inside the programs and on the wire a key is Z85 text, as libzmq expects. Z85 is also
 * accepted everywhere, because former versions wrote it.
 *
 * source  ZeroMQ RFC 32 (Z85) */
#ifndef RP_TRANSPORT_KEYTEXT_H
#define RP_TRANSPORT_KEYTEXT_H

#include <stdint.h>

#include "base/err.h"

enum { RP_KEY_BYTES = 32, RP_KEY_TEXT = 41 }; /* a key; its Z85 text, with the NUL */
enum { RP_KEY_WORD = 63, RP_KEY_SECRET_WORD = 68, RP_KEY_FINGERPRINT = 20 }; /* with the NUL */

/* Converts a public key of either form to Z85; `out` is not changed on failure. Returns NULL, or
 * the problem as the end of a sentence that begins with the key's name. */
const char *rp_key_parse(const char *text, char out[RP_KEY_TEXT]);
/* Like rp_key_parse(), for a secret key. */
const char *rp_key_parse_secret(const char *text, char out[RP_KEY_TEXT]);

/* `z85`: as from rp_key_parse(). */
void rp_key_write(const char *z85, char out[RP_KEY_WORD]);
void rp_key_write_secret(const char *z85, char out[RP_KEY_SECRET_WORD]);

/* The first 80 bits of the SHA-256 of the key's bytes, such as "v2wx-90ks-m4td-ce7a", for
 * comparison by eye. */
void rp_key_fingerprint(const char *z85, char out[RP_KEY_FINGERPRINT]);

/* Decodes Z85 text. errors FORMAT: not 40 Z85 characters */
rp_err rp_key_decode(const char *text, uint8_t out[RP_KEY_BYTES]) RP_MUST_CHECK;

#endif
