/* trace.json has a bound: its oldest lines go, its newest stay. */
#ifndef RP_RECORD_TRACE_KEEP_H
#define RP_RECORD_TRACE_KEEP_H

#include <stdint.h>

#include "base/err.h"

/* Puts in the place of the file `path` one with the list's begin, all names of boards and lanes, a
 * mark that says that events are left out, and the whole lines that lie in its last `keep` bytes.
 * *fd is the new file, open for writing behind its last line, and *bytes its size. The file is not
 * synced: that would stop the controller for seconds on a slow disk, and a trace is no state of a
 * run.
 * errors  IO, with errno's text as the message, which is not logged; the old file stays then */
rp_err rp_trace_keep_newest(const char *path, uint64_t keep, int *fd,
                            uint64_t *bytes) RP_MUST_CHECK;

#endif
