/* Paths in a run file: they are meant from its folder. */
#ifndef RP_RUN_PATHS_H
#define RP_RUN_PATHS_H

#include "base/config.h"

/* Of a profile of links: a path, and not a name. */
bool rp_paths_is_path(const char *text);
/* Every path but the model's becomes one from the current folder. errors MEMORY */
rp_err rp_paths_resolve(rp_arena *arena, rp_node *root) RP_MUST_CHECK;
/* From the root, of one from the current folder. errors IO, MEMORY */
rp_err rp_paths_absolute(rp_arena *arena, const char *path, char **out) RP_MUST_CHECK;
/* Every path has to be UTF-8 when it is absolute, because the run folder's run.yaml has it so.
 * errors  USAGE with file, line and key; IO, MEMORY */
rp_err rp_paths_check(rp_arena *arena, rp_node *root) RP_MUST_CHECK;
/* And then an absolute one, in the arena: for a run file that is written elsewhere. `arena` is that
 * of the tree, or lives as long; the second time nothing is taken from it. errors IO, MEMORY */
rp_err rp_paths_make_absolute(rp_arena *arena, rp_node *root) RP_MUST_CHECK;

#endif
