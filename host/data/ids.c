#include "data/ids.h"

rp_err rp_ids_open(rp_arena *arena, rp_ids *ids, uint32_t below, uint64_t room) {
    *ids = (rp_ids){.bytes = below <= 1u << 8 ? 1 : below <= 1u << 16 ? 2 : 4, .room = room};
    return rp_arena_alloc(arena, (size_t)room + 1, ids->bytes, &ids->at);
}

void rp_ids_add(rp_ids *ids, uint32_t id) {
    RP_ASSERT(ids->count < ids->room);
    if (ids->bytes == 1) {
        ((uint8_t *)ids->at)[ids->count] = (uint8_t)id;
    } else if (ids->bytes == 2) {
        ((uint16_t *)ids->at)[ids->count] = (uint16_t)id;
    } else {
        ((uint32_t *)ids->at)[ids->count] = id;
    }
    ids->count++;
}

rp_err rp_ids_store(rp_arena *arena, rp_ids *ids, uint32_t below, const uint32_t *id,
                    uint64_t count) {
    rp_err err;
    RP_TRY(rp_ids_open(arena, ids, below, count));
    for (uint64_t i = 0; i < count; i++) {
        rp_ids_add(ids, id[i]);
    }
fail:
    return err;
}

void rp_ids_copy(const rp_ids *ids, uint64_t first, uint32_t count, int32_t *out) {
    RP_ASSERT(first <= ids->count && count <= ids->count - first);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t at = first + i;
        out[i] = ids->bytes == 1   ? ((const uint8_t *)ids->at)[at]
                 : ids->bytes == 2 ? ((const uint16_t *)ids->at)[at]
                                   : (int32_t)((const uint32_t *)ids->at)[at];
    }
}
