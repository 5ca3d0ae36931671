/* Reads the last lines of a log that may be long, and may be growing. */
#ifndef RP_RUNS_TAIL_H
#define RP_RUNS_TAIL_H

#include <stddef.h>

#include "base/arena.h"

/* *text: the complete lines in the last `most` bytes of the file, zero-terminated; "" if the file
 * is missing, a link or unreadable. *end: offset of their end in the file. *changed_ns: time of the
 * last change, in ns since 1970. errors  MEMORY */
rp_err rp_tail_read(rp_arena *arena, const char *path, size_t most, char **text, uint64_t *end,
                    int64_t *changed_ns) RP_MUST_CHECK;

/* Opens a file of a run folder for reading; the caller closes it. -1: errno is set, EINVAL if it is
 * not a regular file, ELOOP if it is a symbolic link. */
int rp_tail_open(const char *path);

#endif
