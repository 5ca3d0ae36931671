/* `validation:`: holds samples out of a training part. Private to the room. */
#ifndef RP_DATA_VALIDATION_H
#define RP_DATA_VALIDATION_H

#include "base/arena.h"
#include "base/config.h"

/* Both parts as ascending indices of stored samples, in the arena. */
typedef struct {
    const uint32_t *train, *validation;
    uint32_t train_count,
        validation_count; /* validation_count 0: no sample is held out, no lists */
} rp_validation;

/* Reads `validation:` of `node`, a share between 0 and 1 or a count of the `all` samples. Only the
 * stream "validation" of the seed chooses the samples.
 * errors  USAGE with the key's line: invalid share or count, or one that leaves a part empty */
rp_err rp_validation_choose(rp_arena *arena, rp_node *node, uint32_t all, uint64_t seed,
                            rp_validation *out) RP_MUST_CHECK;

#endif
