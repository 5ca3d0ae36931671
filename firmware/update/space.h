/* Whether a disk has room for what a bundle brings. */
#ifndef RP_UPDATE_SPACE_H
#define RP_UPDATE_SPACE_H

#include <stdint.h>

#include "base/err.h"

/* Bytes that stay free for the board's own files: journal, caches, keys. */
#define RP_SPACE_MARGIN (UINT64_C(16) << 20)

/* Bytes that the files below `folder` occupy; 0 when it is missing. Links are not followed.
 * errors  IO, also when folders are nested too deep */
rp_err rp_space_used(const char *folder, uint64_t *out) RP_MUST_CHECK;

/* Do `needed` bytes fit into what `folder`'s disk has free, when `freed` bytes of it are removed
 * first and `margin` stay free? `what`: for the message.
 * errors  LIMIT with the numbers; IO */
rp_err rp_space_check(const char *what, const char *folder, uint64_t needed, uint64_t freed,
                      uint64_t margin) RP_MUST_CHECK;

#endif
