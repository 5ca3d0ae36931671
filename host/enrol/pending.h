/* KEYS/tokens: which boards may still enrol. A token's own word is not in it.
 *
 *   tokens:
 *     - {name: left, key: rpk1..., ends: 1764000000, used_by: rpk1...}
 *
 * key: of the pair that the token stands for; ends: seconds since 1970; used_by: whose board has
 * taken it, or missing. The file is replaced whole or not at all. */
#ifndef RP_ENROL_PENDING_H
#define RP_ENROL_PENDING_H

#include "transport/keys.h"
#include "transport/keytext.h"

enum { RP_PENDING_MAX = 1024 };

typedef struct {
    const char *name;    /* the board's */
    const char *key;     /* Z85 */
    int64_t ends_s;      /* seconds since 1970 */
    const char *used_by; /* Z85; NULL: nobody yet */
} rp_pending;

/* In the file's order; none when there is no file. errors  USAGE with file and line; IO; MEMORY */
rp_err rp_pending_read(rp_arena *arena, const char *dir, rp_pending **list,
                       uint32_t *count) RP_MUST_CHECK;
/* The list without what is called `name` and without what has ended, then `one`, unless that is
 * NULL. errors  as above; LIMIT: too many are open */
rp_err rp_pending_replace(const char *dir, const char *name, const rp_pending *one,
                          int64_t now_s) RP_MUST_CHECK;

/* A token's word is a secret that is stored nowhere, so that a token is called by the fingerprint
 * of the key that it stands for. */
void rp_pending_id(const rp_pending *one, char out[RP_KEY_FINGERPRINT]);
/* Whether the token of this name is on the list with the same key: neither withdrawn nor replaced.
 * errors  as rp_pending_read() */
rp_err rp_pending_is_listed(const char *dir, const rp_pending *one, bool *out) RP_MUST_CHECK;
/* Takes tokens off the list, each called by its board's name or by its id: all of them, or none.
 * errors  USAGE: no token is called so; as rp_pending_replace() */
rp_err rp_pending_withdraw(const char *dir, const char *const *word, uint32_t count) RP_MUST_CHECK;

#endif
