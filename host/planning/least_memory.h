/* What a stage needs on its board at least: a bound from below, for plans that can not be. Parcels
 * do not count: a board whose device has memory of its own keeps them elsewhere (agent/parcels.h).
 */
#ifndef RP_PLANNING_LEAST_MEMORY_H
#define RP_PLANNING_LEAST_MEMORY_H

#include "planning/profile.h"
#include "run/runfile.h"

/* Sums over the layers in front of each. */
typedef struct {
    double *weights; /* [layers + 1]: bytes of weights, their gradients, the optimiser's states */
    double *kept;    /* .. of what a microbatch leaves for its backward */
    uint32_t *in_flight; /* [stages]: microbatches, by the stages behind */
} rp_least_memory;

/* For up to so many stages. errors MEMORY */
rp_err rp_least_memory_open(rp_arena *arena, const rp_runfile *run, uint32_t stages,
                            rp_least_memory *out) RP_MUST_CHECK;

/* Bytes of the layers [first, end) with so many stages behind them. Pure. The inputs of layers with
 * weights are kept; what else is, only the board's layout knows. */
double rp_least_memory_of(const rp_least_memory *memory, uint32_t first, uint32_t end,
                          uint32_t behind);

/* What the board at a place has, as far as run file and board say; 0: nobody knows. Pure. */
uint64_t rp_least_memory_limit(const rp_runfile *run, const rp_profile *profile, uint32_t place);

#endif
