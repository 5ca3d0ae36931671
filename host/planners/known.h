/* A hash table of evaluated genomes, so that none is evaluated twice. */
#ifndef RP_PLANNERS_KNOWN_H
#define RP_PLANNERS_KNOWN_H

#include "planners/problem.h"

enum { RP_KNOWN_MAX = 1 << 15 }; /* entries; when half of them are used, all are dropped */

typedef struct {
    uint32_t stages, count;
    uint32_t *round;   /* [RP_KNOWN_MAX]: an entry is valid if this equals `now` */
    rp_genome *genome; /* [RP_KNOWN_MAX] */
    double *value;
    uint32_t now;
} rp_known;

/* errors MEMORY */
rp_err rp_known_open(rp_arena *arena, uint32_t stages, rp_known *out) RP_MUST_CHECK;

/* Finds or adds a genome, and returns its place. *is_new: it was added, and the caller must set its
 * value. Places are valid until rp_known_make_room() is called. */
uint32_t rp_known_place(rp_known *known, const rp_genome *genome, bool *is_new);
/* Makes room for `count` more genomes; may drop all entries. */
void rp_known_make_room(rp_known *known, uint32_t count);

#endif
