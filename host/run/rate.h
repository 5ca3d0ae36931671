/* The learning rate of a run that is resumed with other settings. */
#ifndef RP_RUN_RATE_H
#define RP_RUN_RATE_H

#include "run/runfile.h"

typedef struct {
    double before, now;    /* learning rate of the last step, and of the next one */
    const char *curve;     /* "cosine"; NULL: not one that ends, or it ends as before */
    uint64_t steps_before; /* of the curve */
    uint64_t steps;
} rp_rate_change;

/* Finds how the learning rate at `step` differs from that of `before`, the former run.yaml. Returns
 * false if it does not differ, or if `before` is invalid. */
bool rp_runfile_rate_change(rp_node *before, const rp_runfile *now, uint64_t step,
                            rp_rate_change *out);

#endif
