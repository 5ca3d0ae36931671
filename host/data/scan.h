/* Checks every sample of a part with several threads, and continues after bad ones. Private to the
 * room. */
#ifndef RP_DATA_SCAN_H
#define RP_DATA_SCAN_H

#include <stdint.h>

#include "base/err.h"

enum { RP_SCAN_NAMED_MAX = 20, RP_SCAN_TEXT_BYTES = 256 };

typedef struct {
    uint64_t place; /* index of the sample over all scans of the result */
    rp_err err;
    char text[RP_SCAN_TEXT_BYTES];
} rp_scan_bad;

/* Result of one scan or several; zeros before the first. */
typedef struct {
    uint64_t samples;
    uint32_t count;                     /* bad samples */
    rp_scan_bad bad[RP_SCAN_NAMED_MAX]; /* the first of them, by place */
} rp_scan_result;

/* Calls look(), which must not log, for samples 0 to `samples` - 1 in up to `threads` threads. Bad
 * samples are added to the result with their messages.
 * errors  MEMORY of a look; IO: a thread cannot start */
rp_err rp_scan(uint32_t samples, uint32_t threads, rp_err (*look)(void *context, uint32_t index),
               void *context, rp_scan_result *result) RP_MUST_CHECK;

/* Logs one line for each sample in `bad`, and the number of further bad samples. */
void rp_scan_log(const rp_scan_result *result);
/* OK if no sample is bad. errors  that of a single bad sample; FORMAT for several, which are logged
 */
rp_err rp_scan_end(const rp_scan_result *result) RP_MUST_CHECK;

#endif
