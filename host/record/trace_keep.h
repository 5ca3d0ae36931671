/* Removes the oldest lines of trace.json at its limit. */
#ifndef RP_RECORD_TRACE_KEEP_H
#define RP_RECORD_TRACE_KEEP_H

#include <stdint.h>

#include "base/err.h"

/* Replaces the file `path` by one with the begin of the list, all names of boards and lanes, a mark
 * for the missing events, and the whole lines in its last `keep` bytes. *fd: the new file, open for
 * appending; *bytes: its size. The file is not synced, because that could block the controller for
 * seconds, and no run depends on a trace.
 * errors  IO, with errno's text as the message, which is not logged; the old file is kept */
rp_err rp_trace_keep_newest(const char *path, uint64_t keep, int *fd,
                            uint64_t *bytes) RP_MUST_CHECK;

#endif
