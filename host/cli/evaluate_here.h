/* `eval --confusion`: on this machine's device, since boards report sums and no answers. */
#ifndef RP_CLI_EVALUATE_HERE_H
#define RP_CLI_EVALUATE_HERE_H

#include "cli/cli.h"
#include "data/data.h"

/* Prints the result. errors  USAGE: no classes, an empty part; as the run file, the set, the
 * weights and the device say */
rp_err rp_cli_evaluate_here(const rp_cli_args *args, rp_split split,
                            const char *weights) RP_MUST_CHECK;

#endif
