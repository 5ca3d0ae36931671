/* The folder of a new run. */
#ifndef RP_RUNS_PLACE_H
#define RP_RUNS_PLACE_H

#include "base/arena.h"

/* Makes runs/TIME-MODEL-WORD, with -2, -3, ... if the name exists. `model` may be a path. errors IO
 */
rp_err rp_run_place_make(rp_arena *arena, const char *model, const char *word,
                         char **folder) RP_MUST_CHECK;

/* Checks that a new run may use `folder`: it would not overwrite files, or the folder is that of a
 * run that ended before it began. Empty files are ignored. errors USAGE naming the file, or the
 * existing run */
rp_err rp_run_place_check(rp_arena *arena, const char *folder) RP_MUST_CHECK;

#endif
