/* Seconds of a step for each of many genomes: the recurrence for a whole population at once, as
 * arrays of genomes x microbatches. Pure.
 *
 * Let a full microbatch take t on a stage and c on its wire, d = max(t, c) and s = min(t, c), and
 * let R_j be the arrival of the samples of microbatch j. Microbatch i ends at
 *     E_i = i t + max over j <= i of (R_j - (j - 1) t)
 * and has left the wire at
 *     C_i = i d + s + max over j <= i of (R_j - (j - 1) d):
 * a prefix sum, which for equal microbatches is a product, and a running maximum. The step's last
 * microbatch, which may be smaller, is added separately. If neighbours differ in size, several
 * microbatches of one stage wait for the same microbatch of its neighbour. Only the first of these
 * can be the maximum, and only the results that the next stage waits for are needed. So the work
 * for a stage is the smaller of the two counts of microbatches.
 *
 * Results differ from rp_recurrence_makespan() by about 1e-14 of their value, because sums are
 * taken in a different order.
 *
 * source  "TiDGAP" of UMPIPE; METHODS 10.3. The step from the sizes of both neighbours to the
 * points where they meet is ours. */
#ifndef RP_PLANNERS_ARRAYS_H
#define RP_PLANNERS_ARRAYS_H

#include "planners/recurrence.h"

/* The points at which a stage of one size waits for a stage of another size. */
typedef struct {
    uint32_t count;
    uint32_t before_last; /* of these, points before the stage's last microbatch */
    double *waits;        /* [count]: the first microbatch that waits */
    uint16_t *makes;      /* [count]: microbatch of the neighbour for which it waits */
    uint16_t *passed;     /* by microbatch of the stage: its last point so far */
} rp_meeting;

/* Seconds of one stage, way and size. */
typedef struct {
    double pass, slower, faster; /* of a full microbatch: t, d, s above */
    double last_pass, last_send; /* of the step's last microbatch */
    double latency;
    double last; /* number of microbatches before the last */
} rp_genome_arrays_cost;

/* Genomes that are evaluated together, each in a lane. If all of them have the same sizes, a stage
 * is a loop over lanes that the compiler vectorises; otherwise each lane is evaluated alone. */
enum { RP_ARRAYS_LANES = 4 };

typedef struct {
    const rp_tables *tables;
    rp_meeting *meeting;                  /* [from][to] */
    rp_genome_arrays_cost *cost[RP_WAYS]; /* [stages][sizes] */
    double *arrival[2];                   /* [points][RP_ARRAYS_LANES] */
    double *peak;                         /* [points][RP_ARRAYS_LANES]: running maximum */
    double *start;                        /* [stages][RP_ARRAYS_LANES] */
    rp_recurrence_room room;              /* for genomes that are faster one by one */
} rp_genome_arrays;

/* errors MEMORY */
rp_err rp_genome_arrays_open(rp_arena *arena, const rp_tables *tables,
                             rp_genome_arrays *out) RP_MUST_CHECK;

/* Sets `out` to rp_recurrence_makespan() of `count` genomes. */
void rp_genome_arrays_makespans(rp_genome_arrays *arrays, const rp_genome *genome, uint32_t count,
                                double *out);

#endif
