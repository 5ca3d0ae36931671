/* Events of a simulated run, one line each, in virtual time. A hash of all lines compares two runs
 * by one number. */
#ifndef RP_SIM_EVENTLOG_H
#define RP_SIM_EVENTLOG_H

#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

typedef struct {
    FILE *file; /* gets the lines; borrowed. NULL: only the hash is kept */
    uint64_t hash;
    uint64_t count;
} rp_eventlog;

void rp_eventlog_open(rp_eventlog *log, FILE *file);
/* Adds the line "[   0.012345678] WHO: text". */
void rp_eventlog_add(rp_eventlog *log, int64_t now_ns, const char *who, const char *format, ...)
    RP_PRINTF(4, 5);

#endif
