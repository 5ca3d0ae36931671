/* DIR/trusted, beside a pair of keys: whom an end lets in. Lines `name key`, `# comment`; keys of
 * either form (keytext.h), new ones as words. A file is replaced whole or not at all. */
#ifndef RP_TRANSPORT_TRUSTED_H
#define RP_TRANSPORT_TRUSTED_H

#include "transport/keys.h"

enum { RP_TRUSTED_MAX = 1024, RP_TRUSTED_NAME_MAX = 64 };

typedef struct {
    const char *name;
    const char *key; /* Z85 */
} rp_trusted;

/* The list in its order; none when there is no such file. errors  FORMAT with its line; LIMIT */
rp_err rp_trusted_read(rp_arena *arena, const char *dir, const rp_trusted **list,
                       uint32_t *count) RP_MUST_CHECK;
/* The keys of a list, Z85, borrowed from it. errors MEMORY */
rp_err rp_trusted_keys(rp_arena *arena, const rp_trusted *list, uint32_t count,
                       const char *const **keys) RP_MUST_CHECK;

/* Adds a line, or replaces the one of the name; makes the folder. `key`: of either form.
 * errors  USAGE */
rp_err rp_trusted_add(const char *dir, const char *name, const char *key) RP_MUST_CHECK;
/* errors  USAGE: nobody has this name; the message says who is on the list */
rp_err rp_trusted_remove(const char *dir, const char *name) RP_MUST_CHECK;

#endif
