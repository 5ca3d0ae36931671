/* What the layers in front of one cost, summed up once: a planner that asks for every run of layers
 * on every board has each in one subtraction. */
#ifndef RP_PLANNING_SUMS_H
#define RP_PLANNING_SUMS_H

#include "planning/profile.h"

typedef struct {
    const rp_runfile *run;
    const rp_profile *profile;
    uint32_t layers;
    double
        *pass[2]; /* [boards][layers + 1]: seconds on the board at the place, forward, backward */
    double *flops[2];             /* [layers + 1], of one sample */
    const rp_throttle **throttle; /* [boards]; NULL: it is not held back */
} rp_sums;

/* Of the run's microbatch, on its boards at their places. errors MEMORY */
rp_err rp_sums_open(rp_arena *arena, const rp_runfile *run, const rp_profile *profile,
                    rp_sums *out) RP_MUST_CHECK;

/* Seconds of the layers [first, end) as they were measured. Pure. */
double rp_sums_pass_s(const rp_sums *sums, uint32_t place, uint32_t first, uint32_t end, bool back);

/* .. of an op, with what holds the board back: as rp_cost_op_s(). Pure. */
double rp_sums_op_s(const rp_sums *sums, uint32_t place, uint32_t first, uint32_t end, bool back);

#endif
