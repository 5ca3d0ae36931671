/* Paths in a run file. They are relative to its folder. */
#ifndef RP_RUN_PATHS_H
#define RP_RUN_PATHS_H

#include "base/config.h"

/* Is the name of a link profile a path to a file? */
bool rp_paths_is_path(const char *text);
/* Makes every path but the model's relative to the current folder. errors MEMORY */
rp_err rp_paths_resolve(rp_arena *arena, rp_node *root) RP_MUST_CHECK;
/* Absolute form of a path that is relative to the current folder. errors IO, MEMORY */
rp_err rp_paths_absolute(rp_arena *arena, const char *path, char **out) RP_MUST_CHECK;
/* Checks that every path, made absolute, is UTF-8, which run.yaml of the run folder requires.
 * errors  USAGE with file, line and key; IO, MEMORY */
rp_err rp_paths_check(rp_arena *arena, rp_node *root) RP_MUST_CHECK;
/* Makes every resolved path absolute, for a run file that is written to another folder. New texts
 * are in `arena`, which lives at least as long as the tree; a second call allocates nothing.
 * errors IO, MEMORY */
rp_err rp_paths_make_absolute(rp_arena *arena, rp_node *root) RP_MUST_CHECK;

#endif
