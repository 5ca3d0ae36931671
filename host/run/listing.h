/* Names of the files in a folder of the program: models, link profiles. */
#ifndef RP_RUN_LISTING_H
#define RP_RUN_LISTING_H

#include "base/arena.h"

enum { RP_LISTING_MAX = 256 };

/* Sorted names, without `ending`, of the files that end with it; at most RP_LISTING_MAX.
 * errors  IO naming the folder; MEMORY */
rp_err rp_listing_read(rp_arena *arena, const char *folder, const char *ending,
                       const char *const **out, uint32_t *count) RP_MUST_CHECK;

#endif
