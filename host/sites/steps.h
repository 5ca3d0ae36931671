/* Losses of a run, from its log. */
#ifndef RP_SITES_STEPS_H
#define RP_SITES_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct {
    uint64_t steps;
    double first, mean, last; /* loss; NAN without a step, and where a loss is not finite */
    bool skipped;             /* an update was left out, because a gradient was not finite */
} rp_site_losses;

/* Reads the steps up to `most` of log.jsonl. Of a step that was done again after a fault or a kill,
 * the last line counts. errors  IO; MEMORY; FORMAT: a line is not JSON */
rp_err rp_site_read_losses(const char *path, uint64_t most, rp_site_losses *out) RP_MUST_CHECK;

#endif
