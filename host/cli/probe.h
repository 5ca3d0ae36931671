/* Runs work in a child process, because an OpenCL driver may abort or hang. */
#ifndef RP_CLI_PROBE_H
#define RP_CLI_PROBE_H

#include <stdio.h>

#include "base/arena.h"

enum { RP_PROBE_BYTES_MAX = 1 << 16 };

/* The child calls rp_probe_say() before each step of its work: "opening the device". */
typedef struct rp_probe rp_probe;
void rp_probe_say(const rp_probe *probe, const char *what);

/* Runs `work` in a child process. *out: the text that it wrote to `result`, in the arena. If the
 * work fails, the child reports the error, and the result is an error with the same exit code.
 * errors  DEVICE, naming the step: a signal ended the child, or it took more than `seconds`; IO,
 *         MEMORY */
rp_err rp_probe_run(rp_arena *arena, double seconds,
                    rp_err (*work)(const rp_probe *probe, const void *context, FILE *result),
                    const void *context, char **out) RP_MUST_CHECK;

#endif
