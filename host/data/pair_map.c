#include "data/pair_map.h"

enum { SLOTS_FIRST = 1024, SLOTS_MAX = 1 << 30 };

static uint32_t hash_key(uint64_t key) { /* the end of MurmurHash3 */
    key = (key ^ key >> 33) * UINT64_C(0xff51afd7ed558ccd);
    key = (key ^ key >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return (uint32_t)(key ^ key >> 33);
}

/* The pair's slot, or the free slot where it belongs. At most half of the slots are taken. */
static rp_pair_slot *find_slot(const rp_pair_map *pairs, uint64_t key) {
    uint32_t at = hash_key(key) & (pairs->slots - 1);
    while (pairs->slot[at].used && pairs->slot[at].key != key) {
        at = (at + 1) & (pairs->slots - 1);
    }
    return &pairs->slot[at];
}

void rp_pair_map_init(rp_pair_map *pairs, rp_arena *arena) {
    *pairs = (rp_pair_map){.arena = arena};
}

int64_t *rp_pair_map_find(const rp_pair_map *pairs, uint64_t key) {
    rp_pair_slot *slot = pairs->slots > 0 ? find_slot(pairs, key) : NULL;
    return slot && slot->used ? &slot->value : NULL;
}

static rp_err grow_pairs(rp_pair_map *pairs) {
    const rp_pair_map old = *pairs;
    rp_err err;
    if (old.slots == SLOTS_MAX) {
        return rp_fail(RP_ERR_LIMIT, "the text has more than %d different pairs of tokens",
                       SLOTS_MAX / 2);
    }
    const uint32_t slots = old.slots > 0 ? 2 * old.slots : SLOTS_FIRST;
    RP_TRY(RP_ARENA_NEW(pairs->arena, slots, &pairs->slot));
    pairs->slots = slots;
    for (uint32_t i = 0; i < old.slots; i++) {
        if (old.slot[i].used) {
            *find_slot(pairs, old.slot[i].key) = old.slot[i];
        }
    }
fail:
    return err;
}

rp_err rp_pair_map_add(rp_pair_map *pairs, uint64_t key, int64_t **out) {
    rp_err err;
    *out = rp_pair_map_find(pairs, key);
    if (*out) {
        return RP_OK;
    }
    if (2 * (pairs->count + 1) > pairs->slots) {
        RP_TRY(grow_pairs(pairs));
    }
    rp_pair_slot *slot = find_slot(pairs, key);
    *slot = (rp_pair_slot){.key = key, .used = true};
    pairs->count++;
    *out = &slot->value;
    return RP_OK;
fail:
    return err;
}
