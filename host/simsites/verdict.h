/* Compares what a finished federated run has left in its folder with the reference. */
#ifndef RP_SIMSITES_VERDICT_H
#define RP_SIMSITES_VERDICT_H

#include "simsites/case.h"

/* Checks that the log has every round once, with sites that were asked and as many as
 * `sites.take` wants; that the centre has the bits that follow from these sites; and that the
 * journal's sums are those of the rounds. `from`: as for rp_sim_reference_center().
 * errors  FAULT with what differs; IO, FORMAT, MEMORY */
rp_err rp_sim_sites_compare(const rp_sim_sites_case *what, const rp_sim_from *from,
                            const char *folder) RP_MUST_CHECK;

#endif
