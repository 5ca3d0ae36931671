#include "planners/genome_cache.h"

#include <string.h>

rp_err rp_genome_cache_open(rp_arena *arena, uint32_t stages, rp_genome_cache *out) {
    rp_err err;
    *out = (rp_genome_cache){.stages = stages, .now = 1};
    RP_TRY(RP_ARENA_NEW(arena, RP_GENOME_CACHE_MAX, &out->round));
    RP_TRY(RP_ARENA_NEW(arena, RP_GENOME_CACHE_MAX, &out->genome));
    RP_TRY(RP_ARENA_NEW(arena, RP_GENOME_CACHE_MAX, &out->value));
fail:
    return err;
}

/* Genes after the last stage are 0 in every genome. */
static uint32_t hash_of(const rp_genome_cache *cache, const rp_genome *genome) {
    uint64_t hash = 0;
    for (int way = 0; way < RP_WAYS; way++) {
        for (uint32_t at = 0; at < cache->stages; at += 8) {
            uint64_t part;
            memcpy(&part, &genome->gene[way][at], sizeof part);
            hash = (hash ^ part) * UINT64_C(0x9e3779b97f4a7c15);
            hash ^= hash >> 29;
        }
    }
    return (uint32_t)(hash >> 20) % RP_GENOME_CACHE_MAX;
}

static bool is_same(const rp_genome_cache *cache, const rp_genome *a, const rp_genome *b) {
    return memcmp(a->gene[0], b->gene[0], cache->stages) == 0 &&
           memcmp(a->gene[1], b->gene[1], cache->stages) == 0;
}

uint32_t rp_genome_cache_place(rp_genome_cache *cache, const rp_genome *genome, bool *is_new) {
    uint32_t place = hash_of(cache, genome);
    while (cache->round[place] == cache->now && !is_same(cache, &cache->genome[place], genome)) {
        place = (place + 1) % RP_GENOME_CACHE_MAX;
    }
    *is_new = cache->round[place] != cache->now;
    if (*is_new) {
        cache->round[place] = cache->now;
        cache->genome[place] = *genome;
        cache->count++;
    }
    return place;
}

void rp_genome_cache_make_room(rp_genome_cache *cache, uint32_t count) {
    RP_ASSERT(count <= RP_GENOME_CACHE_MAX / 2);
    if (cache->count + count > RP_GENOME_CACHE_MAX / 2) {
        cache->now++;
        cache->count = 0;
    }
}
