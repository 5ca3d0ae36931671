/* KEYS/tokens: the list of tokens. It does not contain their secret words.
 *
 *   tokens:
 *     - {name: left, key: rpk1..., ends: 1764000000, used_by: rpk1...}
 *
 * key: public key of the token's pair; ends: seconds since 1970; used_by: key of the board that has
 * used it, if any. The file is replaced as a whole or not at all. */
#ifndef RP_ENROL_PENDING_H
#define RP_ENROL_PENDING_H

#include "transport/keys.h"
#include "transport/keytext.h"

enum { RP_PENDING_MAX = 1024 };

typedef struct {
    const char *name;    /* the board's */
    const char *key;     /* Z85 */
    int64_t ends_s;      /* seconds since 1970 */
    const char *used_by; /* Z85; NULL: not used yet */
} rp_pending;

/* Reads the list in the file's order; it is empty if the file is missing. errors  USAGE with file
 * and line; IO; MEMORY */
rp_err rp_pending_read(rp_arena *arena, const char *dir, rp_pending **list,
                       uint32_t *count) RP_MUST_CHECK;
/* Removes the token of `name` and all that have ended from the list, and appends `one` unless it is
 * NULL. errors  as rp_pending_read(); LIMIT: too many open tokens */
rp_err rp_pending_replace(const char *dir, const char *name, const rp_pending *one,
                          int64_t now_s) RP_MUST_CHECK;

/* The id of a token is the fingerprint of its key, because its word is a secret that is not stored.
 */
void rp_pending_id(const rp_pending *one, char out[RP_KEY_FINGERPRINT]);
/* *out: the token of this name is on the list with this key, so it is neither withdrawn nor
 * replaced. errors  as rp_pending_read() */
rp_err rp_pending_is_listed(const char *dir, const rp_pending *one, bool *out) RP_MUST_CHECK;
/* Removes tokens by their board's name or by id: all of them, or none if a word is unknown.
 * errors  USAGE: unknown name or id; as rp_pending_replace() */
rp_err rp_pending_withdraw(const char *dir, const char *const *word, uint32_t count) RP_MUST_CHECK;

#endif
