/* `ring.link`: emulated lines, from profiles by name and traces in files. */
#ifndef RP_RUN_LINKS_H
#define RP_RUN_LINKS_H

#include "transport/hops.h"

/* Reads `ring.link` of a ring of `boards` boards. name: [boards] names, or NULL. *all and *hops are
 * zeros on entry. errors  USAGE with line and key of the run file, or of the profile or trace */
rp_err rp_links_read(rp_arena *arena, rp_node *link, uint32_t boards, const char *const *name,
                     rp_link_profile *all, rp_link_hops *hops) RP_MUST_CHECK;

/* The folder of named profiles: RINGPIPE_LINKS, or the one set by the build. */
const char *rp_links_folder(void);
/* The names of profiles, sorted; *count. errors IO, MEMORY */
rp_err rp_links_names(rp_arena *arena, const char *const **out, uint32_t *count) RP_MUST_CHECK;
/* Description of a named profile (its key `about`), one line. errors as rp_links_read() */
rp_err rp_links_about(rp_arena *arena, const char *name, const char **out) RP_MUST_CHECK;

#endif
