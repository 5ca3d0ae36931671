/* Computes the digests that a run must end with, in one loop over the definition of its method
 * (firmware/sched/METHODS.md): it keeps every version of the weights, and each microbatch goes
 * forward and backward at once, on the versions that the equations name.
 *
 * It shares with the digest executor how a layer, a loss and an optimiser combine their operands
 * (stage/digest.h). It uses none of the executor's op order or bookkeeping of versions, slots and
 * parcels; only the length of SpecTrain's round trip comes from a replay of the schedule. */
#ifndef RP_SIM_REFERENCE_H
#define RP_SIM_REFERENCE_H

#include "stage/digest.h"

typedef struct {
    const rp_job *job; /* job of any stage; the loop covers all stages, from step 0 */
    bool strict;       /* same as the flag of rp_site */
    /* Digests (rp_digest_of_bytes) of the data and the target of sample `index` of a step. */
    void (*sample)(void *context, uint64_t step, uint32_t index, rp_digest *data,
                   rp_digest *target);
    void *context;
} rp_reference;

/* out: digests of the model that is evaluated, by parameter; zero for scratch parameters, which are
 * never exported.
 * errors  USAGE: the method depends on more than its definition (horizon: measured; clip_norm);
 *         MEMORY */
rp_err rp_reference_run(const rp_reference *reference, rp_digest *out) RP_MUST_CHECK;

#endif
