/* Warns before a run if stale gradients meet momentum. */
#ifndef RP_PLANNING_STALENESS_H
#define RP_PLANNING_STALENESS_H

#include "run/runfile.h"

typedef struct {
    uint32_t staleness; /* updates by which gradients are too old, at most */
    const char *key;    /* of the optimiser: "momentum", "beta1" */
    double momentum;    /* its value */
    double updates;     /* further updates in which each gradient acts, because of it */
    const char *advice; /* keys of the optimiser to try: "momentum: 0" */
} rp_staleness;

/* Staleness and momentum lengthen the same feedback loop (METHODS 11). Returns true if gradients
 * are at least 3 updates old and momentum or beta1 is at least 0.5. Pure. */
bool rp_staleness_is_costly(const rp_runfile *run, rp_staleness *out);

#endif
