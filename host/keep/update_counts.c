/* Numbers of updates that the boards' stages have done, as reported by the boards. */
#include <string.h>

#include "keep/keep_own.h"

uint32_t rp_keep_applied_count(const rp_plan *plan, uint32_t board) {
    const rp_plan_node *node = &plan->node[board];
    RP_ASSERT(board < plan->node_count && node->hold_count > 0);
    return node->hold_count > 1 ? node->hold_count
                                : rp_method_replicas(&plan->method, plan->stage_count,
                                                     plan->hold[node->hold_first].stage);
}

uint64_t *rp_applied_of(rp_ring *ring, const rp_plan *plan, const rp_plan_hold *hold,
                        uint32_t *count) {
    const rp_plan_node *node = &plan->node[hold->node];
    const ptrdiff_t at = hold - &plan->hold[node->hold_first];
    RP_ASSERT(hold->node < ring->count && at >= 0 && at < (ptrdiff_t)node->hold_count);
    *count = node->hold_count > 1 ? 1 : RP_REPLICAS_MAX;
    return ring->board[hold->node].train.applied + at;
}

/* The first hold of a stage that updates it. */
static const rp_plan_hold *find_hold(const rp_plan *plan, uint32_t stage) {
    uint32_t h = 0;
    while (plan->hold[h].stage != stage || plan->hold[h].role == RP_ROLE_FORWARD) {
        h++;
        RP_ASSERT(h < plan->hold_count);
    }
    return &plan->hold[h];
}

rp_err rp_applied_gather(rp_ring *ring, const rp_plan *plan, rp_arena *arena, rp_applied *applied,
                         uint64_t **in_flight_bytes) {
    rp_err err;
    RP_ASSERT(plan->node_count == ring->count);
    *applied = (rp_applied){.stages = plan->stage_count};
    RP_TRY(RP_ARENA_NEW(arena, applied->stages, &applied->of));
    for (uint32_t s = 0; s < applied->stages; s++) {
        uint32_t count;
        const uint64_t *own = rp_applied_of(ring, plan, find_hold(plan, s), &count);
        memcpy(applied->of[s], own, count * sizeof *own);
    }
    RP_TRY(RP_ARENA_NEW(arena, rp_plan_parts(plan), in_flight_bytes));
    for (uint32_t k = 0; k < ring->count; k++) {
        if (rp_plan_saves(plan, k)) {
            (*in_flight_bytes)[rp_plan_part_of(plan, k)] = ring->board[k].train.in_flight_bytes;
        }
    }
fail:
    return err;
}
