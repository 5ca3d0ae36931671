/* Whether a disk has space for a bundle's content. */
#ifndef RP_UPDATE_SPACE_H
#define RP_UPDATE_SPACE_H

#include <stdint.h>

#include "base/err.h"

/* Bytes that stay free for the board's own files: journal, caches, keys. */
#define RP_SPACE_MARGIN (UINT64_C(16) << 20)

/* Bytes that the files below `folder` occupy; 0 if it is missing. Links are not followed.
 * errors  IO, also when folders are nested too deep */
rp_err rp_space_used(const char *folder, uint64_t *out) RP_MUST_CHECK;

/* Checks that `needed` bytes fit into the free space of `folder`'s disk, if `freed` bytes of it are
 * removed first and `margin` bytes stay free. `what`: for the message.
 * errors  LIMIT with the numbers; IO */
rp_err rp_space_check(const char *what, const char *folder, uint64_t needed, uint64_t freed,
                      uint64_t margin) RP_MUST_CHECK;

#endif
