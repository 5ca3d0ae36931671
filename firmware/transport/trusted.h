/* DIR/trusted, next to a pair of keys: the keys that an end admits. Lines are `name key` or `#
 * comment`; keys have either form (keytext.h), new ones are words. The file is replaced as a whole
 * or not at all. */
#ifndef RP_TRANSPORT_TRUSTED_H
#define RP_TRANSPORT_TRUSTED_H

#include "transport/keys.h"

enum { RP_TRUSTED_MAX = 1024, RP_TRUSTED_NAME_MAX = 64 };

typedef struct {
    const char *name;
    const char *key; /* Z85 */
} rp_trusted;

/* The list in file order; empty if the file does not exist. errors FORMAT with its line; LIMIT */
rp_err rp_trusted_read(rp_arena *arena, const char *dir, const rp_trusted **list,
                       uint32_t *count) RP_MUST_CHECK;
/* The keys of a list, Z85, borrowed from it. errors MEMORY */
rp_err rp_trusted_keys(rp_arena *arena, const rp_trusted *list, uint32_t count,
                       const char *const **keys) RP_MUST_CHECK;

/* Adds a line, or replaces the line of this name; creates the folder. `key` has either form.
 * errors  USAGE */
rp_err rp_trusted_add(const char *dir, const char *name, const char *key) RP_MUST_CHECK;
/* errors  USAGE: no line has this name; the message lists the names */
rp_err rp_trusted_remove(const char *dir, const char *name) RP_MUST_CHECK;

#endif
