/* A site's rounds by their definition, for the reference: what it trains from, what leaves it, and
 * what it keeps. */
#ifndef RP_SIMSITES_REFERENCE_SITE_H
#define RP_SIMSITES_REFERENCE_SITE_H

#include "simsites/subject.h"

/* The round of the state with which a site trained a round, or RP_SITE_NO_ROUND. */
typedef struct {
    const uint64_t *of; /* [sites][rounds + 1] */
    uint32_t rounds;
} rp_sim_from;

typedef struct rp_reference_sites rp_reference_sites;

/* `from`: as for rp_sim_reference_center(). Everything is in `arena`. */
rp_err rp_reference_open(rp_arena *arena, const rp_sim_sites_subject *subject,
                         const rp_sim_from *from, rp_reference_sites **out) RP_MUST_CHECK;

/* Trains a round of a site from the given weights. *result: [values] that leave it, until the next
 * call. errors MEMORY */
rp_err rp_reference_train(rp_reference_sites *sites, uint32_t site, uint64_t round,
                          const float *given, const float **result) RP_MUST_CHECK;

#endif
