/* The learning rate of a run that is resumed with other settings. */
#ifndef RP_RUN_RATE_H
#define RP_RUN_RATE_H

#include "run/runfile.h"

enum { RP_RATE_BYTES = 200 };

/* Describes, for the user, how the learning rate at `step` differs from that of `before`, the
 * former run.yaml. The text is empty if it does not differ, or if `before` is invalid. */
void rp_runfile_rate_change(rp_node *before, const rp_runfile *now, uint64_t step,
                            char text[RP_RATE_BYTES]);

#endif
