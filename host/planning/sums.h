/* Prefix sums of layer costs: any range of layers on any board takes one subtraction. */
#ifndef RP_PLANNING_SUMS_H
#define RP_PLANNING_SUMS_H

#include "planning/profile.h"

/* Each array of [layers + 1] has the sum of all layers before the index. */
typedef struct {
    const rp_runfile *run;
    const rp_profile *profile;
    uint32_t layers;
    double *pass[2];  /* [boards][layers + 1], by place: seconds of forwards, of backwards */
    double *flops[2]; /* [layers + 1]: of one sample */
    const rp_throttle **throttle; /* [boards]; NULL: not throttled */
} rp_sums;

/* Sums for the run's microbatch and the boards at their places. errors MEMORY */
rp_err rp_sums_open(rp_arena *arena, const rp_runfile *run, const rp_profile *profile,
                    rp_sums *out) RP_MUST_CHECK;

/* Measured seconds of the layers [first, end). Pure. */
double rp_sums_pass_s(const rp_sums *sums, uint32_t place, uint32_t first, uint32_t end, bool back);

/* Seconds of an op with throttle and slowdown: as rp_cost_op_s(). Pure. */
double rp_sums_op_s(const rp_sums *sums, uint32_t place, uint32_t first, uint32_t end, bool back);

#endif
