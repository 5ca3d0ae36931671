/* `train` and `resume` of a run file with `sites`. */
#ifndef RP_CLI_FEDERATED_RUN_H
#define RP_CLI_FEDERATED_RUN_H

#include <jansson.h>

#include "cli/cli.h"
#include "federation/federation.h"
#include "federation/round_time.h"

/* Runs the sites until the run has ended. errors  those of the run file, the split file and the
 * sites; USAGE: an option that describes a single ring */
rp_err rp_cli_run_sites(const rp_cli_args *args, bool resume) RP_MUST_CHECK;

/* For --dry-run: what a round moves and how long it takes, as lines and as an object, which the
 * caller releases. */
void rp_cli_print_cost(const rp_runfile *run, const rp_federation_cost *cost,
                       const rp_round_forecast *forecast);
json_t *rp_cli_describe_cost(const rp_federation_cost *cost, const rp_round_forecast *forecast);

/* For `plan`: the same on standard output after the plan, with the time of a step in the run's
 * ring, 0 if it is unknown. `plan`: the plan as JSON, to which the round is added and which is
 * printed; NULL: lines are printed.
 * errors  those of the run file and the split file; IO */
rp_err rp_cli_print_round(const rp_cli_args *args, double step_s, FILE *plan) RP_MUST_CHECK;

#endif
