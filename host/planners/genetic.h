/* The genetic search: two chromosomes, the forward's sizes and the backward's.
 *
 * source  "DGAP" of UMPIPE; METHODS 10.2, with the constants of 10.4: population 100, tournaments
 * of 3, uniform crossover of each chromosome with p = 0.8, mutation p = 1 / stages a gene (four of
 * five by one index), the two best stay; ends after 150 generations without gain or 500, then
 * begins anew. The first population: greedy, DP, every even size, the rest drawn. */
#ifndef RP_PLANNERS_GENETIC_H
#define RP_PLANNERS_GENETIC_H

#include "planners/search.h"

typedef struct {
    /* Seconds of a step of `count` genomes. */
    void (*makespans)(void *context, const rp_genome *genome, uint32_t count, double *out);
    void *context;
} rp_genetic;

/* Of steps that are alike (RP_SEARCH_ALIKE) the one with the lower index wins. Also notes the best
 * even size. errors MEMORY */
rp_err rp_genetic_search(rp_search *search, const rp_genetic *genetic) RP_MUST_CHECK;

#endif
