/* What a federated run must come to, by its definition: one loop over the rounds in memory, without
 * files, processes and time. It shares with the run the rules (federation/rule.h), the draw of
 * sites and the codecs of differences, and with the simulated sites the step. */
#ifndef RP_SIMSITES_REFERENCE_H
#define RP_SIMSITES_REFERENCE_H

#include "simsites/reference_site.h"

/* The sites of a round, in the order of the split file. */
typedef struct {
    uint32_t *member; /* [count] */
    uint32_t count;
} rp_sim_round;

/* Lists the sites that each round asks: [rounds].
 * errors  MEMORY; USAGE: the trace never has enough sites */
rp_err rp_sim_reference_asked(rp_arena *arena, const rp_sim_sites_subject *subject,
                              rp_sim_round **out) RP_MUST_CHECK;

/* The centre after the last round, [values], if each round has the contributions of these sites.
 * `from`: with options of `sites` that keep a state; else NULL.
 * errors  MEMORY */
rp_err rp_sim_reference_center(const rp_sim_sites_subject *subject, const rp_sim_round *asked,
                               const rp_sim_round *round, const rp_sim_from *from,
                               float *out) RP_MUST_CHECK;

#endif
