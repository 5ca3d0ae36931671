#include "planners/known.h"

#include <string.h>

rp_err rp_known_open(rp_arena *arena, uint32_t stages, rp_known *out) {
    rp_err err;
    *out = (rp_known){.stages = stages, .now = 1};
    RP_TRY(RP_ARENA_NEW(arena, RP_KNOWN_MAX, &out->round));
    RP_TRY(RP_ARENA_NEW(arena, RP_KNOWN_MAX, &out->genome));
    RP_TRY(RP_ARENA_NEW(arena, RP_KNOWN_MAX, &out->value));
fail:
    return err;
}

/* Genes after the last stage are 0 in every genome. */
static uint32_t hash_of(const rp_known *known, const rp_genome *genome) {
    uint64_t hash = 0;
    for (int way = 0; way < RP_WAYS; way++) {
        for (uint32_t at = 0; at < known->stages; at += 8) {
            uint64_t part;
            memcpy(&part, &genome->gene[way][at], sizeof part);
            hash = (hash ^ part) * UINT64_C(0x9e3779b97f4a7c15);
            hash ^= hash >> 29;
        }
    }
    return (uint32_t)(hash >> 20) % RP_KNOWN_MAX;
}

static bool is_same(const rp_known *known, const rp_genome *a, const rp_genome *b) {
    return memcmp(a->gene[0], b->gene[0], known->stages) == 0 &&
           memcmp(a->gene[1], b->gene[1], known->stages) == 0;
}

uint32_t rp_known_place(rp_known *known, const rp_genome *genome, bool *is_new) {
    uint32_t place = hash_of(known, genome);
    while (known->round[place] == known->now && !is_same(known, &known->genome[place], genome)) {
        place = (place + 1) % RP_KNOWN_MAX;
    }
    *is_new = known->round[place] != known->now;
    if (*is_new) {
        known->round[place] = known->now;
        known->genome[place] = *genome;
        known->count++;
    }
    return place;
}

void rp_known_make_room(rp_known *known, uint32_t count) {
    RP_ASSERT(count <= RP_KNOWN_MAX / 2);
    if (known->count + count > RP_KNOWN_MAX / 2) {
        known->now++;
        known->count = 0;
    }
}
