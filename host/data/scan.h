/* Looks at every sample of a part by several threads, and goes on after those that are bad. Private
 * to the room. */
#ifndef RP_DATA_SCAN_H
#define RP_DATA_SCAN_H

#include <stdint.h>

#include "base/err.h"

enum { RP_SCAN_NAMED_MAX = 20, RP_SCAN_TEXT_BYTES = 256 };

typedef struct {
    uint64_t place; /* of the sample, counted through all scans of the result */
    rp_err err;
    char text[RP_SCAN_TEXT_BYTES];
} rp_scan_bad;

/* Zeros before the first scan; several add up. */
typedef struct {
    uint64_t samples;
    uint32_t count;                     /* bad ones */
    rp_scan_bad bad[RP_SCAN_NAMED_MAX]; /* the first of them, by place */
} rp_scan_result;

/* Calls look() for the samples 0 to `samples` - 1, `threads` at a time; it must not log. Bad ones
 * are added to the result, each with its message.
 * errors  MEMORY of a look; IO: a thread cannot start */
rp_err rp_scan(uint32_t samples, uint32_t threads, rp_err (*look)(void *context, uint32_t index),
               void *context, rp_scan_result *result) RP_MUST_CHECK;

/* One line on standard error for each bad sample that is named, and how many more there are. */
void rp_scan_log(const rp_scan_result *result);
/* OK with none. errors  that of a single bad sample; FORMAT with several, which are logged */
rp_err rp_scan_end(const rp_scan_result *result) RP_MUST_CHECK;

#endif
