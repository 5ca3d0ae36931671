/* The last lines of a log that may be long, and is being written. */
#ifndef RP_RUNS_TAIL_H
#define RP_RUNS_TAIL_H

#include <stddef.h>

#include "base/arena.h"

/* *text: whole lines, zero behind them, of the file's last `most` bytes; "" when there is no such
 * file. *end: where they end in the file. *made_ns: when the file was changed last, since 1970.
 * errors  MEMORY */
rp_err rp_tail_read(rp_arena *arena, const char *path, size_t most, char **text, uint64_t *end,
                    int64_t *changed_ns) RP_MUST_CHECK;

/* open() for reading of a file in a run folder: no link, no device. -1: errno */
int rp_tail_open(const char *path);

#endif
