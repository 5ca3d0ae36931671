/* A genetic search over two chromosomes, the forward's sizes and the backward's.
 *
 * source  "DGAP" of UMPIPE; METHODS 10.2, with the constants of 10.4: population 100, tournaments
 * of 3, uniform crossover of each chromosome with p = 0.8, mutation p = 1 / stages a gene (four of
 * five by one index), the two best survive. A round ends after 150 generations without gain, or
 * 500; the next one starts with new random genomes. The first population: greedy, DP, every even
 * size, the rest random. */
#ifndef RP_PLANNERS_GENETIC_H
#define RP_PLANNERS_GENETIC_H

#include "planners/search.h"

typedef struct {
    /* Sets `out` to seconds of a step, for `count` genomes. */
    void (*makespans)(void *context, const rp_genome *genome, uint32_t count, double *out);
    void *context;
} rp_genetic;

/* Searches, and notes the best even size. Of steps within RP_SEARCH_ALIKE the genome with the lower
 * index wins. errors MEMORY */
rp_err rp_genetic_search(rp_search *search, const rp_genetic *genetic) RP_MUST_CHECK;

#endif
