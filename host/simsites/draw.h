/* Faults of a simulated federated run, drawn from a seed. */
#ifndef RP_SIMSITES_DRAW_H
#define RP_SIMSITES_DRAW_H

#include "sim/faults.h"
#include "simsites/subject.h"

/* Each seed draws its own subset of the kinds. All faults begin in the time that the run takes
 * without faults. Sites are lost for good, and results damaged, only if `sites.take.least` lets a
 * round close without them. Equal states of `rng` give equal faults. */
void rp_sim_sites_draw(rp_rng *rng, const rp_sim_sites_subject *subject, rp_sim_faults *out);

#endif
