/* Trace files: rate, delay and loss of a link over time. The format follows from the text:
 *
 *   CSV       "time_s,rate_mbit,delay_ms,loss", one line for each change. An optional first line
 *             names the columns, in any order; without it they are these, from the left. Times are
 *             relative to the first one; the last line holds as long as the line before it.
 *   Mahimahi  one whole number a line: the millisecond in which a packet of 1,500 bytes may leave.
 *             The trace repeats after the last one (mahimahi.mit.edu, mm-link(1)). Packets are
 *             counted in slots of 20 ms, or longer slots if there would be too many.
 *
 * Empty lines and lines that begin with `#` are ignored. */
#ifndef RP_RUN_TRACEFILE_H
#define RP_RUN_TRACEFILE_H

#include "transport/trace.h"

#define RP_TRACEFILE_BYTES_MAX (UINT64_C(64) << 20)

/* errors  USAGE with file, line and what was expected; IO; MEMORY */
rp_err rp_tracefile_read(rp_arena *arena, const char *path,
                         const rp_link_trace **out) RP_MUST_CHECK;

#endif
