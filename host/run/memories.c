#include "run/memories.h"

#include <string.h>

static const double MB = 1e6;
static const double MB_MAX = 1e7;

static rp_err read_list(rp_arena *arena, const rp_node *list, const rp_roster_entry *roster,
                        uint32_t boards, rp_memories *out) {
    rp_board_memory *own;
    rp_err err;
    if (roster || rp_node_count(list) != boards) {
        return rp_node_fail(list,
                            roster ? "a list is for local boards; for boards of a roster expected "
                                     "one number, or a map by name"
                                   : "expected one number, or a list with one for each of the %u "
                                     "boards",
                            boards);
    }
    RP_TRY(RP_ARENA_NEW(arena, boards, &own));
    for (uint32_t k = 0; k < boards; k++) {
        double mb = 0;
        char *name;
        RP_TRY(rp_node_item_f64(list, k, 0, MB_MAX, &mb));
        RP_TRY(rp_arena_printf(arena, &name, "%u", k));
        own[k] = (rp_board_memory){name, (uint64_t)(mb * MB)};
    }
    out->own = own;
    out->count = boards;
fail:
    return err;
}

static rp_err read_map(rp_arena *arena, rp_node *map, const rp_roster_entry *roster,
                       uint32_t boards, rp_memories *out) {
    const uint32_t count = rp_node_count(map);
    rp_board_memory *own;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, count + 1, &own));
    for (uint32_t i = 0; i < count; i++) {
        const char *name = rp_node_key(map, i);
        double mb = 0;
        RP_TRY(rp_roster_check_name(rp_node_item(map, i), name, roster, boards));
        RP_TRY(rp_node_f64(map, name, 0, MB_MAX, &mb));
        own[i] = (rp_board_memory){name, (uint64_t)(mb * MB)};
    }
    RP_TRY(rp_node_done(map));
    out->own = own;
    out->count = count;
fail:
    return err;
}

rp_err rp_memories_read(rp_arena *arena, rp_node *ring, const rp_roster_entry *roster,
                        uint32_t boards, rp_memories *out) {
    rp_node *said = rp_node_find(ring, "memory_mb");
    uint32_t mib = 0;
    double mb = 0;
    rp_err err;
    *out = (rp_memories){0};
    RP_TRY(rp_node_u32(ring, "memory_mib", 0, 1u << 24, &mib));
    if (said && rp_node_is_list(said)) {
        RP_TRY(read_list(arena, said, roster, boards, out));
    } else if (said && rp_node_is_map(said)) {
        RP_TRY(read_map(arena, said, roster, boards, out));
    } else {
        RP_TRY(rp_node_f64(ring, "memory_mb", 0, MB_MAX, &mb));
    }
    if (mib > 0 && (mb > 0 || out->count > 0)) {
        return rp_node_fail(said, "`memory_mb` and `memory_mib` exclude each other");
    }
    out->all = mib > 0 ? (uint64_t)mib << 20 : (uint64_t)(mb * MB);
fail:
    return err;
}

uint64_t rp_memories_of(const rp_memories *memories, const char *name) {
    for (uint32_t i = 0; i < memories->count; i++) {
        if (strcmp(memories->own[i].board, name) == 0) {
            return memories->own[i].bytes;
        }
    }
    return memories->all;
}
