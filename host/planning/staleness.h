/* What a run is told of its staleness before it starts. */
#ifndef RP_PLANNING_STALENESS_H
#define RP_PLANNING_STALENESS_H

#include "run/runfile.h"

/* Staleness and momentum lengthen the same feedback loop (METHODS 11). Without a flush, from 3
 * updates of staleness and a momentum or beta1 of 0.5 on, says in `text` what that costs and what
 * to try. False: nothing to say. Pure. */
bool rp_staleness_hint(const rp_runfile *run, char *text, size_t bytes);

#endif
