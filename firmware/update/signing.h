/* Keys that sign software for boards: an Ed25519 pair, as words like those of keytext.h. A board
 * keeps the public key, `rpu1` and 58 letters and digits, in DIR/update.key; the secret key,
 * `rpusecret1`, stays with the maker of bundles, in DIR/update-secret.key (0600).
 *
 * source  RFC 8032 (Ed25519), by libsodium */
#ifndef RP_UPDATE_SIGNING_H
#define RP_UPDATE_SIGNING_H

#include <stdint.h>

#include "base/err.h"

enum { RP_SIGNING_BYTES = 32, RP_SIGNATURE_BYTES = 64 };

typedef struct {
    uint8_t public[RP_SIGNING_BYTES];
    uint8_t secret[2 * RP_SIGNING_BYTES]; /* libsodium's form: seed and public key */
} rp_signing_pair;

/* Creates both files; never overwrites. errors USAGE: one exists; IO */
rp_err rp_signing_new(const char *dir) RP_MUST_CHECK;
/* errors  IO: a file is missing; REFUSED: others may read the secret; FORMAT: not a key, or not a
 *         pair */
rp_err rp_signing_read(const char *dir, rp_signing_pair *out) RP_MUST_CHECK;
/* Reads only the public key. errors as above */
rp_err rp_signing_read_public(const char *dir, uint8_t out[RP_SIGNING_BYTES]) RP_MUST_CHECK;

#endif
