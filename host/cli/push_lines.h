/* Prints the progress of a push on standard error. */
#ifndef RP_CLI_PUSH_LINES_H
#define RP_CLI_PUSH_LINES_H

#include "base/clock.h"
#include "push/push.h"

typedef struct {
    const rp_clock *clock;
    bool quiet, rewrites; /* rewrites: one line on a terminal is updated in place */
    bool waits;           /* for the end of the trial */
    int64_t said_ns;      /* time of the last line with a count of bytes */
    bool open;            /* the present line on the terminal has no newline yet */
} rp_push_lines;

void rp_push_lines_show(rp_push_lines *lines, const rp_push_progress *progress);
/* Ends a line that is being rewritten; call it before printing further text. */
void rp_push_lines_end(rp_push_lines *lines);

#endif
