/* A number for each pair of token ids. Private to the room. */
#ifndef RP_DATA_PAIR_MAP_H
#define RP_DATA_PAIR_MAP_H

#include "base/arena.h"

typedef struct {
    uint64_t key; /* left << 32 | right */
    int64_t value;
    bool used;
} rp_pair_slot;

typedef struct {
    rp_arena *arena;
    rp_pair_slot *slot; /* [slots], by hash */
    uint32_t count, slots;
} rp_pair_map;

static inline uint64_t rp_pair_key(uint32_t left, uint32_t right) {
    return (uint64_t)left << 32 | right;
}

void rp_pair_map_init(rp_pair_map *pairs, rp_arena *arena);
/* The pair's number, or NULL. It is borrowed until a pair is added. */
int64_t *rp_pair_map_find(const rp_pair_map *pairs, uint64_t key);
/* Adds the pair with the number 0 unless the map has it. *out: its number, borrowed until another
 * pair is added. errors  MEMORY; LIMIT */
rp_err rp_pair_map_add(rp_pair_map *pairs, uint64_t key, int64_t **out) RP_MUST_CHECK;

#endif
