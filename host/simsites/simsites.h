/* `ringpipe sim` of a run file with `sites`: the rounds of a federated run on a virtual clock, with
 * faults of sites, lines and the host. The run is that of `ringpipe train`; only its engine
 * differs. */
#ifndef RP_SIMSITES_SIMSITES_H
#define RP_SIMSITES_SIMSITES_H

#include "sim/sim.h"

/* Prints as rp_sim().
 * errors  those of the run file, the split file, the trace and the profile; USAGE: an option that
 *         describes a single ring, or a fault that sites do not have; FAULT: a run hung or ended
 *         with another centre; INTERRUPTED */
rp_err rp_sim_sites(const rp_sim_options *options) RP_MUST_CHECK;

#endif
