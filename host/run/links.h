/* `ring.link`: profiles by name, traces from files. */
#ifndef RP_RUN_LINKS_H
#define RP_RUN_LINKS_H

#include "transport/hops.h"

/* Whose ring has so many boards; `name`: theirs, or NULL. *all and *hops are zeros.
 * errors  USAGE with file, line and key, those of the files */
rp_err rp_links_read(rp_arena *arena, rp_node *link, uint32_t boards, const char *const *name,
                     rp_link_profile *all, rp_link_hops *hops) RP_MUST_CHECK;

/* The folder of the profiles that have a name: RINGPIPE_LINKS, or the source tree's. */
const char *rp_links_folder(void);
/* The names of profiles, sorted; *count. errors IO, MEMORY */
rp_err rp_links_names(rp_arena *arena, const char *const **out, uint32_t *count) RP_MUST_CHECK;
/* What the profile of this name says of itself, one line. errors as rp_links_read() */
rp_err rp_links_about(rp_arena *arena, const char *name, const char **out) RP_MUST_CHECK;

#endif
