/* The learning rate of a run that goes on with other settings. */
#ifndef RP_RUN_RATE_H
#define RP_RUN_RATE_H

#include "run/runfile.h"

enum { RP_RATE_BYTES = 200 };

/* Where the rate at `step` is not what `before`, the run.yaml so far, would have had there: how it
 * changes, for people. Otherwise, or where `before` can not be read, the text is empty. */
void rp_runfile_rate_change(rp_node *before, const rp_runfile *now, uint64_t step,
                            char text[RP_RATE_BYTES]);

#endif
