/* The folder of a new run: one of its own, or one in which it writes over nothing. */
#ifndef RP_RUNS_PLACE_H
#define RP_RUNS_PLACE_H

#include "base/arena.h"

/* Makes runs/TIME-MODEL-WORD, with -2, -3, ... where another run has that name. `model` may be a
 * path. errors IO */
rp_err rp_run_place_make(rp_arena *arena, const char *model, const char *word, char **folder)
    RP_MUST_CHECK;

/* Whether a run may begin in `folder`: none of the files that it would write is there, or it holds
 * a run that was killed before it began. Empty files do not count.
 * errors USAGE with the name of the file, or of the run that is there */
rp_err rp_run_place_check(rp_arena *arena, const char *folder) RP_MUST_CHECK;

#endif
