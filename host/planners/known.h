/* What genomes were found to take, so that none is evaluated twice. */
#ifndef RP_PLANNERS_KNOWN_H
#define RP_PLANNERS_KNOWN_H

#include "planners/problem.h"

enum { RP_KNOWN_MAX = 1 << 15 }; /* at half of them all are forgotten */

typedef struct {
    uint32_t stages, count;
    uint32_t *round;   /* [RP_KNOWN_MAX]: the entry counts if it is of this round */
    rp_genome *genome; /* [RP_KNOWN_MAX] */
    double *value;
    uint32_t now;
} rp_known;

/* errors MEMORY */
rp_err rp_known_open(rp_arena *arena, uint32_t stages, rp_known *out) RP_MUST_CHECK;

/* Where the genome is kept; *is_new: it was not, and its value is still to come. Places hold until
 * rp_known_make_room() is called. */
uint32_t rp_known_place(rp_known *known, const rp_genome *genome, bool *is_new);
/* For so many more; may forget all. */
void rp_known_make_room(rp_known *known, uint32_t count);

#endif
