/* A lower bound for the memory of a stage on its board, which rules out impossible plans. Parcels
 * do not count, because a device with its own memory has them elsewhere (agent/parcels.h). */
#ifndef RP_PLANNING_LEAST_MEMORY_H
#define RP_PLANNING_LEAST_MEMORY_H

#include "planning/profile.h"
#include "run/runfile.h"

/* `weights` and `kept` are sums over all layers before the index. */
typedef struct {
    double *weights; /* [layers + 1]: bytes of weights, gradients and optimiser state */
    double *kept;    /* [layers + 1]: bytes that a microbatch leaves for its backward: the inputs of
                        layers with weights. Only the board's layout knows what else is kept */
    uint32_t *in_flight; /* [stages]: least microbatches in flight, by stages after this one */
} rp_least_memory;

/* errors MEMORY */
rp_err rp_least_memory_open(rp_arena *arena, const rp_runfile *run, uint32_t stages,
                            rp_least_memory *out) RP_MUST_CHECK;

/* Least bytes of a stage of layers [first, end), with `later` stages after it. Pure. */
double rp_least_memory_of(const rp_least_memory *memory, uint32_t first, uint32_t end,
                          uint32_t later);

/* Bytes that the board at a place may use, by the run file and the board; 0: unknown. Pure. */
uint64_t rp_least_memory_limit(const rp_runfile *run, const rp_profile *profile, uint32_t place);

#endif
