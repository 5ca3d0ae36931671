/* What a push does, in words on standard error. */
#ifndef RP_CLI_PUSH_LINES_H
#define RP_CLI_PUSH_LINES_H

#include "base/clock.h"
#include "push/push.h"

typedef struct {
    const rp_clock *clock;
    bool quiet, rewrites; /* rewrites: one line on a terminal counts the bytes */
    bool waits;           /* for the trial's end */
    int64_t said_ns;      /* when bytes were counted last */
    bool open;            /* the line on the terminal has no end yet */
} rp_push_lines;

void rp_push_lines_show(rp_push_lines *lines, const rp_push_progress *progress);
/* Ends a line that is rewritten: call it before anything else is printed. */
void rp_push_lines_end(rp_push_lines *lines);

#endif
