/* Work that may take its process down: a driver aborts, or never answers. */
#ifndef RP_CLI_PROBE_H
#define RP_CLI_PROBE_H

#include <stdio.h>

#include "base/arena.h"

enum { RP_PROBE_BYTES_MAX = 1 << 16 };

/* What the child calls before each piece of its work: "opening the device". */
typedef struct rp_probe rp_probe;
void rp_probe_say(const rp_probe *probe, const char *what);

/* Runs `work` in a child process; what it writes to `result` is *out, in the arena. The child has
 * said what was wrong with its own work, the error is then one of the same exit code.
 * errors  DEVICE, naming the piece of work: a signal ended the child, or it took more than
 *         `seconds`; IO, MEMORY */
rp_err rp_probe_run(rp_arena *arena, double seconds,
                    rp_err (*work)(const rp_probe *probe, const void *context, FILE *result),
                    const void *context, char **out) RP_MUST_CHECK;

#endif
