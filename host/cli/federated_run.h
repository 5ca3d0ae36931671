/* `train` and `resume` of a run file with `sites`. */
#ifndef RP_CLI_FEDERATED_RUN_H
#define RP_CLI_FEDERATED_RUN_H

#include <jansson.h>

#include "cli/cli.h"
#include "federation/federation.h"

/* Runs the sites until the run has ended. errors  those of the run file, the split file and the
 * sites; USAGE: an option that describes a single ring */
rp_err rp_cli_run_sites(const rp_cli_args *args, bool resume) RP_MUST_CHECK;

/* For --dry-run: what a round moves, as a line and as an object, which the caller releases. */
void rp_cli_print_cost(const rp_runfile *run, const rp_federation_cost *cost);
json_t *rp_cli_describe_cost(const rp_federation_cost *cost);

#endif
