/* Random rings, for comparisons and tests. */
#ifndef RP_PLANNERS_INSTANCE_H
#define RP_PLANNERS_INSTANCE_H

#include "base/rng.h"
#include "planners/problem.h"

/* How a ring is drawn. METHODS leaves open what the units of a transfer are and what a backward
 * costs; here: */
typedef struct {
    uint32_t stages_min, stages_max; /* METHODS: 4 to 16 */
    uint32_t samples;                /* METHODS: 32 and 128 */
    double backward;                 /* times the forward, both the base and a sample's cost */
    bool own_backward;               /* the backward's base and sample costs are drawn like the
                                        forward's, then multiplied */
    double latency;                  /* up to so many times the mean compute; 0: none */
} rp_instance_draw;

/* Seconds of stage l for b samples: a_l + c_l b, a_l log-uniform in 0.1 to 10 and c_l 0.25 times
 * such a number; a sample on wire l takes log-uniform 0.1 to 10 times the mean of all c_l, both
 * ways the same. source  METHODS 10.4, "Instances for comparison" errors  of rp_problem_open() */
rp_err rp_instance_random(rp_arena *arena, rp_rng *rng, const rp_instance_draw *draw,
                          rp_problem *out) RP_MUST_CHECK;

/* Standard deviation of log10(a_l / c_l) over the stages' forwards. */
double rp_instance_spread(const rp_problem *problem);

#endif
