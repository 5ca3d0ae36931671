/* What happened in a simulated run, one line an event, in virtual time. The lines are hashed, so
 * that two runs can be compared by one number; they are printed only when somebody wants to read
 * them. */
#ifndef RP_SIM_EVENTLOG_H
#define RP_SIM_EVENTLOG_H

#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

typedef struct {
    FILE *file; /* borrowed; NULL: hashed only */
    uint64_t hash;
    uint64_t count;
} rp_eventlog;

void rp_eventlog_open(rp_eventlog *log, FILE *file);
/* "[   0.012345678] host: text" */
void rp_eventlog_add(rp_eventlog *log, int64_t now_ns, const char *who, const char *format, ...)
    RP_PRINTF(4, 5);

#endif
