/* Sites by a natural id: a text file with a line for each training sample, the name of its site. */
#ifndef RP_DATA_SITE_IDS_H
#define RP_DATA_SITE_IDS_H

#include "base/arena.h"
#include "base/err.h"

typedef struct {
    const char **name; /* [sites], ascending by strcmp() */
    uint32_t sites;
    uint32_t *site; /* [samples]: index of the sample's site */
} rp_site_ids;

/* Reads `path`, which has `samples` lines. The result is in `arena`.
 * errors  USAGE naming path and line: another number of lines, an invalid name
 *         (rp_site_name_is_valid), more than RP_SITES_MAX sites; IO, MEMORY */
rp_err rp_site_ids_read(rp_arena *arena, const char *path, uint32_t samples,
                        rp_site_ids *out) RP_MUST_CHECK;

#endif
