/* Fills this board's kernel cache before a run: builds the kernels of a model's layers as a run
 * would, and ends. */
#ifndef RP_AGENT_WARM_H
#define RP_AGENT_WARM_H

#include <stdio.h>

#include "device/device.h"

/* `model`: a path, or the name of a built-in model. `sample`: "1,28,28", the shape of one sample if
 * the model says `input: data`; NULL = 3,32,32. Prints one line a second to `out`, and one at the
 * end.
 * errors  USAGE, SHAPE naming file and layer; MEMORY; DEVICE; INTERRUPTED once *stopped is not 0 */
rp_err rp_agent_warm(rp_arena *arena, rp_device *device, const char *model, const char *sample,
                     const volatile int *stopped, FILE *out) RP_MUST_CHECK;

#endif
