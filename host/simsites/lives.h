/* Runs one seed: starts the federated run again until it has finished, then compares what it came
 * to with the reference. */
#ifndef RP_SIMSITES_LIVES_H
#define RP_SIMSITES_LIVES_H

#include "sim/seeds.h"
#include "simsites/case.h"

/* errors  IO, MEMORY; the run's own outcome is in *out */
rp_err rp_sim_sites_judge(const rp_sim_sites_case *what, uint64_t seed,
                          rp_sim_result *out) RP_MUST_CHECK;

#endif
