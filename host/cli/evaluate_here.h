/* `eval` of a run folder, and `eval --confusion`: by this machine's device, without a ring. */
#ifndef RP_CLI_EVALUATE_HERE_H
#define RP_CLI_EVALUATE_HERE_H

#include "cli/cli.h"
#include "data/data.h"

/* Prints the result. errors  USAGE: a table is asked for and there are no classes, an empty part;
 * as the run file, the set, the weights and the device say */
rp_err rp_cli_evaluate_here(rp_arena *arena, const rp_cli_args *args, rp_split split,
                            const char *weights) RP_MUST_CHECK;

#endif
