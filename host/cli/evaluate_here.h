/* `eval` of a run folder and `eval --confusion`, on this machine's device, without a ring. */
#ifndef RP_CLI_EVALUATE_HERE_H
#define RP_CLI_EVALUATE_HERE_H

#include "cli/cli.h"
#include "data/data.h"

/* Evaluates and prints the result. errors  USAGE: --confusion without classes, an empty part; those
 * of the run file, the set, the weights and the device */
rp_err rp_cli_evaluate_here(rp_arena *arena, const rp_cli_args *args, rp_split split,
                            const char *weights) RP_MUST_CHECK;

#endif
