/* Finds run folders. */
#ifndef RP_RUNS_FOUND_H
#define RP_RUNS_FOUND_H

#include "base/arena.h"

enum { RP_RUNS_MAX = 1024 };

typedef struct {
    const char *folder[RP_RUNS_MAX]; /* in the arena, each once, sorted */
    uint32_t count;
    bool more; /* there are more than RP_RUNS_MAX */
} rp_runs;

/* Adds the folders of active controllers of this account on this machine (for the superuser: of all
 * accounts). errors  MEMORY */
rp_err rp_runs_at_work(rp_arena *arena, rp_runs *runs) RP_MUST_CHECK;

/* Adds `path` if it is a run folder, else the run folders below it, up to a few levels.
 * errors  USAGE: not a folder, or no run folder below it; MEMORY */
rp_err rp_runs_below(rp_arena *arena, const char *path, rp_runs *runs) RP_MUST_CHECK;

#endif
