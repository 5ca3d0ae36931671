/* A row of token ids that takes 1, 2 or 4 bytes for each. Private to the room. */
#ifndef RP_DATA_IDS_H
#define RP_DATA_IDS_H

#include "base/arena.h"

typedef struct {
    void *at;       /* [room] of `bytes` each */
    uint32_t bytes; /* in an id */
    uint64_t count, room;
} rp_ids;

/* An empty row with room for `room` ids below `below`. errors MEMORY */
rp_err rp_ids_open(rp_arena *arena, rp_ids *ids, uint32_t below, uint64_t room) RP_MUST_CHECK;
/* A row of ids below `below`. errors MEMORY */
rp_err rp_ids_store(rp_arena *arena, rp_ids *ids, uint32_t below, const uint32_t *id,
                    uint64_t count) RP_MUST_CHECK;
/* There is room. */
void rp_ids_add(rp_ids *ids, uint32_t id);
/* Copies ids [first, first + count), which exist. */
void rp_ids_copy(const rp_ids *ids, uint64_t first, uint32_t count, int32_t *out);

#endif
