/* A trace of a line from a file: what a link's rate, delay and loss were from time to time. Two
 * kinds are read, told apart by their text:
 *
 *   CSV       "time_s,rate_mbit,delay_ms,loss", one line a change. A first line of names says which
 *             columns there are, in any order; without one they are these, as many as there are.
 *             The first time is 0, or the others are meant from it; the last line holds as long as
 *             the one before it.
 *   Mahimahi  one whole number a line: the millisecond in which a packet of 1,500 bytes may leave;
 *             at the last one the trace begins again (mahimahi.mit.edu, mm-link(1)). They are
 *             counted in slots of 20 ms, or longer ones where there would be too many.
 *
 * Empty lines, and those that begin with `#`, count for nothing. */
#ifndef RP_RUN_TRACEFILE_H
#define RP_RUN_TRACEFILE_H

#include "transport/trace.h"

#define RP_TRACEFILE_BYTES_MAX (UINT64_C(64) << 20)

/* errors  USAGE with file, line and what was expected; IO; MEMORY */
rp_err rp_tracefile_read(rp_arena *arena, const char *path,
                         const rp_link_trace **out) RP_MUST_CHECK;

#endif
