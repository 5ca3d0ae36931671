/* Named, counter-based random streams: the same seed and name give the same numbers wherever and in
 * whatever order they are drawn, so weights, shuffles and dropout masks do not depend on the cut.
 *
 * source  Philox4x32-10, Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11;
 *         kernels/philox.clh holds the same function for the device */
#ifndef RP_BASE_RNG_H
#define RP_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t key[2]; /* from seed and name */
    uint64_t next;   /* index of the next 32-bit word; may be set to jump */
} rp_rng;

/* Stream `name` of `seed`, e.g. "init/conv1/weight", at word 0. */
rp_rng rp_rng_named(uint64_t seed, const char *name);

/* Block `counter` of the stream: four independent words. */
void rp_rng_block(const rp_rng *rng, uint64_t counter, uint32_t out[4]);

/* Word `index` of the stream (word i is out[i % 4] of block i / 4). */
uint32_t rp_rng_word_at(const rp_rng *rng, uint64_t index);

uint32_t rp_rng_u32(rp_rng *rng);

/* Uniform in [0, 1), 24 bits: word >> 8, times 2^-24. */
float rp_rng_uniform(rp_rng *rng);

/* Uniform in [0, n), no modulo bias; n > 0. */
uint32_t rp_rng_below(rp_rng *rng, uint32_t n);

/* Fisher-Yates. */
void rp_rng_shuffle(rp_rng *rng, uint32_t *items, uint32_t count);
/* The order of the numbers below `count` in an epoch: stream "order/<epoch>" of the seed. */
void rp_rng_epoch_order(uint64_t seed, uint32_t epoch, uint32_t *order, uint32_t count);

#endif
