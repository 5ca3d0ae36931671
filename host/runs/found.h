/* Which run folders there are. */
#ifndef RP_RUNS_FOUND_H
#define RP_RUNS_FOUND_H

#include "base/arena.h"

enum { RP_RUNS_MAX = 1024 };

typedef struct {
    const char *folder[RP_RUNS_MAX]; /* in the arena, each once, sorted */
    uint32_t count;
    bool more; /* than fit */
} rp_runs;

/* Adds the folders in which controllers of this account work on this machine (of the superuser: of
 * all accounts). errors  MEMORY */
rp_err rp_runs_at_work(rp_arena *arena, rp_runs *runs) RP_MUST_CHECK;

/* Adds `path` when it is the folder of a run, otherwise those below it, a few folders deep.
 * errors  USAGE: no folder, or none of a run below it; MEMORY */
rp_err rp_runs_below(rp_arena *arena, const char *path, rp_runs *runs) RP_MUST_CHECK;

#endif
