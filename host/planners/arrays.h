/* How long a step takes with each of many genomes: the recurrence for a whole population at once,
 * as arrays of genomes x microbatches. Pure.
 *
 * Of a stage whose full microbatches take t, and c on the wire, the i-th ends at
 *     E_i = i t + max over j <= i of (R_j - (j - 1) t)                          R_j: its samples
 * arrive and has left the wire, with d = max(t, c) and s = min(t, c), at C_i = i d + s + max over j
 * <= i of (R_j - (j - 1) d): a prefix sum, which for equal microbatches is a product, and a running
 * maximum. The last one, the rest, is added by itself. Where neighbours differ in size, several
 * microbatches of the one wait for the same one of the other: only the first of these can be the
 * maximum, and only what the next stage waits for has to be known. So a stage costs the smaller of
 * two counts, not its own.
 *
 * The results are those of rp_recurrence_makespan() within some 1e-14 of them: sums are taken in
 * another order.
 *
 * source  "TiDGAP" of UMPIPE; METHODS 10.3. The step from the sizes of both neighbours to the
 * points where they meet is ours. */
#ifndef RP_PLANNERS_ARRAYS_H
#define RP_PLANNERS_ARRAYS_H

#include "planners/recurrence.h"

/* Where a stage of one size waits for one of another. */
typedef struct {
    uint32_t count;
    uint32_t before_last; /* of them, those at which not the stage's last microbatch waits */
    double *waits;        /* [count]: which microbatch waits, the first one that does */
    uint16_t *makes;      /* [count]: for which one of the other stage */
    uint16_t *passed;     /* by microbatch of the stage: the last point up to it */
} rp_meeting;

/* Of one stage, way and size. */
typedef struct {
    double pass, slower, faster; /* of a full microbatch: t, d, s */
    double last_pass, last_send; /* of the step's last one */
    double latency;
    double last; /* microbatches before the last one */
} rp_genome_arrays_cost;

/* Genomes that walk together, each in a lane. Where all of them have the same sizes, a stage is
 * loops over lanes, which the compiler makes vectors of; where not, each walks by itself. */
enum { RP_ARRAYS_LANES = 4 };

typedef struct {
    const rp_tables *tables;
    rp_meeting *meeting;                  /* [from][to] */
    rp_genome_arrays_cost *cost[RP_WAYS]; /* [stages][sizes] */
    double *arrival[2];                   /* [points][RP_ARRAYS_LANES] */
    double *peak;                         /* the same: running maximum */
    double *start;                        /* [stages][RP_ARRAYS_LANES] */
    rp_recurrence_room room;              /* for those that are better walked one by one */
} rp_genome_arrays;

/* errors MEMORY */
rp_err rp_genome_arrays_open(rp_arena *arena, const rp_tables *tables,
                             rp_genome_arrays *out) RP_MUST_CHECK;

/* Of `count` genomes, as rp_recurrence_makespan(). */
void rp_genome_arrays_makespans(rp_genome_arrays *arrays, const rp_genome *genome, uint32_t count,
                                double *out);

#endif
