/* Warns before a run if stale gradients meet momentum. */
#ifndef RP_PLANNING_STALENESS_H
#define RP_PLANNING_STALENESS_H

#include "run/runfile.h"

/* Staleness and momentum lengthen the same feedback loop (METHODS 11). If gradients are at least 3
 * updates old and momentum or beta1 is at least 0.5, writes to `text` what that costs and what to
 * try. False: no warning. Pure. */
bool rp_staleness_hint(const rp_runfile *run, char *text, size_t bytes);

#endif
