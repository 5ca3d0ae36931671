/* `ringpipe sim`: a run, or many seeded runs with faults, in one process on a virtual clock. */
#ifndef RP_SIM_SIM_H
#define RP_SIM_SIM_H

#include "sim/options.h"

/* Prints the result; for many seeds as JSON: runs, finished, stopped_resumable, hung, wrong,
 * first_bad_seed, faults, seconds.
 * errors  those of the run file; FAULT: a run hung or ended with another digest; INTERRUPTED;
 *         with `once`: the result of the controller */
rp_err rp_sim(const rp_sim_options *options) RP_MUST_CHECK;

#endif
