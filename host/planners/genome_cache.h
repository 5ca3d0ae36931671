/* A hash table of evaluated genomes, so that none is evaluated twice. */
#ifndef RP_PLANNERS_GENOME_CACHE_H
#define RP_PLANNERS_GENOME_CACHE_H

#include "planners/problem.h"

enum { RP_GENOME_CACHE_MAX = 1 << 15 }; /* entries; when half of them are used, all are dropped */

typedef struct {
    uint32_t stages, count;
    uint32_t *round;   /* [RP_GENOME_CACHE_MAX]: an entry is valid if this equals `now` */
    rp_genome *genome; /* [RP_GENOME_CACHE_MAX] */
    double *value;
    uint32_t now;
} rp_genome_cache;

/* errors MEMORY */
rp_err rp_genome_cache_open(rp_arena *arena, uint32_t stages, rp_genome_cache *out) RP_MUST_CHECK;

/* Finds or adds a genome, and returns its place. *is_new: it was added, and the caller must set its
 * value. Places are valid until rp_genome_cache_make_room() is called. */
uint32_t rp_genome_cache_place(rp_genome_cache *cache, const rp_genome *genome, bool *is_new);
/* Makes room for `count` more genomes; may drop all entries. */
void rp_genome_cache_make_room(rp_genome_cache *cache, uint32_t count);

#endif
