/* The digests that a run must end with, by a loop in one process over the definition of its method
 * (firmware/sched/METHODS.md): every version of the weights is kept, and each microbatch goes
 * forward and backward at once, on the versions that the equations name.
 *
 * It shares with the digest executor what a layer, a loss and an optimiser make of their operands
 * (stage/digest.h). The order of ops, the bookkeeping of versions, slots and parcels are not used,
 * but for the length of SpecTrain's round trip, which a replay of the schedule measures. */
#ifndef RP_SIM_REFERENCE_H
#define RP_SIM_REFERENCE_H

#include "stage/digest.h"

typedef struct {
    const rp_job *job; /* of any stage; the whole run is walked, from step 0 */
    bool strict;       /* as the executors' site */
    /* Digests (rp_digest_of_bytes) of the data and the target of sample `index` of a step. */
    void (*sample)(void *context, uint64_t step, uint32_t index, rp_digest *data,
                   rp_digest *target);
    void *context;
} rp_reference;

/* out: by parameter of the job's model, the model that is evaluated; zero for those that are
 * exported nowhere.
 * errors  USAGE: a method that depends on more than the definition (horizon: measured; clipping);
 *         MEMORY */
rp_err rp_reference_run(const rp_reference *reference, rp_digest *out) RP_MUST_CHECK;

#endif
