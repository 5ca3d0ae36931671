/* Which sites are asked to take part in a round: a pure function of seed, round and the sites that
 * are there. */
#ifndef RP_FEDERATION_SAMPLE_H
#define RP_FEDERATION_SAMPLE_H

#include "base/arena.h"
#include "run/federated.h"

/* Number of sites in a round, 1 to `sites`: by count, by share (rounded), or all. */
uint32_t rp_sample_size(const rp_federated_keys *keys, uint32_t sites);

/* Draws `size` of the sites `there` [count], which ascend, without replacement; all of them if
 * there are not more. Writes them in ascending order to out [size], and returns how many.
 * errors  MEMORY */
rp_err rp_sample_draw(rp_arena *arena, uint64_t seed, uint64_t round, const uint32_t *there,
                      uint32_t count, uint32_t size, uint32_t *out, uint32_t *drawn) RP_MUST_CHECK;

#endif
