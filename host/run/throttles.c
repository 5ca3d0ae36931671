#include "run/throttles.h"

#include <string.h>

static rp_err read_board(rp_node *map, const char *name, const rp_throttle *all,
                         rp_board_throttle *out) {
    rp_err err;
    rp_node *own = rp_node_find(map, name);
    if (!rp_node_is_map(own)) {
        return rp_node_fail(own, "expected a map, e.g. {forward_ms: 30, backward_ms: 60}");
    }
    *out = (rp_board_throttle){name, *all}; /* `all` has the defaults of missing keys */
    RP_TRY(rp_throttle_read(own, &out->throttle));
    RP_TRY(rp_node_done(own));
fail:
    return err;
}

static rp_err read_boards(rp_arena *arena, rp_node *map, const rp_roster_entry *roster,
                          uint32_t boards, rp_throttles *out) {
    rp_board_throttle *own;
    rp_err err;
    if (!rp_node_is_map(map)) {
        return rp_node_fail(map, "expected a map by board, e.g. {2: {forward_ms: 30}}");
    }
    const uint32_t count = rp_node_count(map);
    RP_TRY(RP_ARENA_NEW(arena, count + 1, &own));
    for (uint32_t i = 0; i < count; i++) {
        const char *name = rp_node_key(map, i);
        RP_TRY(rp_roster_check_name(rp_node_item(map, i), name, roster, boards));
        RP_TRY(read_board(map, name, &out->all, &own[i]));
    }
    out->own = own;
    out->count = count;
fail:
    return err;
}

rp_err rp_throttles_read(rp_arena *arena, rp_node *ring, const rp_roster_entry *roster,
                         uint32_t boards, rp_throttles *out) {
    rp_node *throttle;
    rp_err err;
    *out = (rp_throttles){0};
    RP_TRY(rp_throttle_find(ring, &throttle));
    if (!throttle) {
        return RP_OK;
    }
    RP_TRY(rp_throttle_read(throttle, &out->all));
    rp_node *own = rp_node_find(throttle, "boards");
    RP_TRY(own ? read_boards(arena, own, roster, boards, out) : RP_OK);
    RP_TRY(rp_node_done(throttle));
fail:
    return err;
}

const rp_throttle *rp_throttles_of(const rp_throttles *throttles, const char *name) {
    for (uint32_t i = 0; i < throttles->count; i++) {
        if (strcmp(throttles->own[i].board, name) == 0) {
            return &throttles->own[i].throttle;
        }
    }
    return &throttles->all;
}

bool rp_throttles_any(const rp_throttles *throttles) {
    bool any = rp_throttle_is_set(&throttles->all);
    for (uint32_t i = 0; i < throttles->count; i++) {
        any = any || rp_throttle_is_set(&throttles->own[i].throttle);
    }
    return any;
}
