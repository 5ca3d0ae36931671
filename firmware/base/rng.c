#include "base/rng.h"

#include <math.h>
#include <stdio.h>

static uint64_t hash_name(const char *name) {
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *name; name++) {
        hash = (hash ^ (uint8_t)*name) * 0x100000001b3u;
    }
    return hash;
}

static uint64_t mix_bits(uint64_t z) { /* splitmix64's finaliser */
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

rp_rng rp_rng_named(uint64_t seed, const char *name) {
    uint64_t key = mix_bits(mix_bits(seed) ^ hash_name(name));
    return (rp_rng){.key = {(uint32_t)key, (uint32_t)(key >> 32)}};
}

void rp_rng_block(const rp_rng *rng, uint64_t counter, uint32_t out[4]) {
    uint32_t c0 = (uint32_t)counter;
    uint32_t c1 = (uint32_t)(counter >> 32);
    uint32_t c2 = 0;
    uint32_t c3 = 0;
    uint32_t k0 = rng->key[0];
    uint32_t k1 = rng->key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

uint32_t rp_rng_word_at(const rp_rng *rng, uint64_t index) {
    uint32_t block[4];
    rp_rng_block(rng, index / 4, block);
    return block[index % 4];
}

uint32_t rp_rng_u32(rp_rng *rng) {
    return rp_rng_word_at(rng, rng->next++);
}

float rp_rng_uniform(rp_rng *rng) {
    return (float)(rp_rng_u32(rng) >> 8) * 0x1p-24f;
}

uint32_t rp_rng_below(rp_rng *rng, uint32_t n) {
    uint32_t reject = (0u - n) % n; /* 2^32 mod n */
    for (;;) {
        uint64_t product = (uint64_t)rp_rng_u32(rng) * n; /* Lemire's method */
        if ((uint32_t)product >= reject) {
            return (uint32_t)(product >> 32);
        }
    }
}

void rp_rng_shuffle(rp_rng *rng, uint32_t *items, uint32_t count) {
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = rp_rng_below(rng, i);
        uint32_t swap = items[i - 1];
        items[i - 1] = items[j];
        items[j] = swap;
    }
}

void rp_rng_epoch_order(uint64_t seed, uint32_t epoch, uint32_t *order, uint32_t count) {
    char name[32];
    (void)snprintf(name, sizeof name, "order/%u", epoch);
    rp_rng rng = rp_rng_named(seed, name);
    for (uint32_t i = 0; i < count; i++) {
        order[i] = i;
    }
    rp_rng_shuffle(&rng, order, count);
}
