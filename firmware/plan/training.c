/* What boards train so far: less than a plan can say. */
#include "plan/plan_own.h"

static uint32_t other_end(const rp_plan_edge *edge, uint32_t node) {
    return edge->from == node ? edge->to : edge->from;
}

rp_plan_side rp_plan_side_of(const rp_plan_edge *edge, uint32_t node) {
    if (edge->from == edge->to) {
        return RP_PLAN_HERE;
    }
    if (other_end(edge, node) == RP_PLAN_HOST) {
        return RP_PLAN_AT_HOST;
    }
    const bool comes = edge->to == node;
    return comes == (edge->carries == RP_CARRIES_ACTIVATION) ? RP_PLAN_BEFORE : RP_PLAN_BEHIND;
}

uint32_t rp_plan_neighbour(const rp_plan *plan, uint32_t node, rp_plan_side side) {
    uint32_t count;
    const uint32_t *index = rp_plan_node_edges(plan, node, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (rp_plan_side_of(&plan->edge[index[i]], node) == side) {
            return other_end(&plan->edge[index[i]], node);
        }
    }
    return node;
}

static rp_err check_hold(const rp_plan *plan, const rp_plan_hold *hold) {
    const char *name = rp_plan_node_name(plan, hold->node);
    const uint32_t number = (uint32_t)(hold - &plan->hold[plan->node[hold->node].hold_first]);
    if (hold->role != RP_ROLE_BOTH) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: nodes[%u].holds[%u].role: node %s holds stage %u in role %s: boards "
                       "train a stage in both directions so far (role both)",
                       plan->source, hold->node, number, name, hold->stage,
                       rp_role_name(hold->role));
    }
    if (hold->share[0] > 0 || hold->share[1] < 1) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: nodes[%u].holds[%u].samples: node %s holds stage %u for the samples "
                       "[%g, %g) of every step: several boards can not train one stage together so "
                       "far (share [0, 1])",
                       plan->source, hold->node, number, name, hold->stage, hold->share[0],
                       hold->share[1]);
    }
    return RP_OK;
}

static rp_err check_sides(const rp_plan *plan, uint32_t node) {
    uint32_t peer[2] = {node, node}; /* none yet */
    uint32_t count;
    const uint32_t *index = rp_plan_node_edges(plan, node, &count);
    for (uint32_t i = 0; i < count; i++) {
        const rp_plan_edge *edge = &plan->edge[index[i]];
        const rp_plan_side side = rp_plan_side_of(edge, node);
        if (side != RP_PLAN_BEFORE && side != RP_PLAN_BEHIND) {
            continue;
        }
        const uint32_t other = other_end(edge, node);
        uint32_t *known = &peer[side == RP_PLAN_BEHIND];
        if (*known != node && *known != other) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: nodes[%u]: node %s has edges to %s and to %s on the same side: "
                           "boards have one neighbour on each so far",
                           plan->source, node, rp_plan_node_name(plan, node),
                           rp_plan_node_name(plan, *known), rp_plan_node_name(plan, other));
        }
        *known = other;
    }
    return RP_OK;
}

/* The edges that come from one side share a link. */
static rp_err check_windows(const rp_plan *plan, uint32_t node) {
    uint64_t window[RP_PLAN_SIDES] = {0};
    uint32_t count;
    const uint32_t *index = rp_plan_node_edges(plan, node, &count);
    for (uint32_t i = 0; i < count; i++) {
        const rp_plan_edge *edge = &plan->edge[index[i]];
        const rp_plan_side side = rp_plan_side_of(edge, node);
        if (edge->to != node || side == RP_PLAN_HERE) {
            continue;
        }
        window[side] += edge->window;
        if (window[side] + RP_PLAN_LINK_SLACK > RP_PLAN_LINK_WINDOW_MAX) {
            return rp_fail(
                RP_ERR_USAGE,
                "%s: edges[%u].window: with the edges beside it, %llu parcels may be on "
                "their way from %s to node %s, and a link takes %d; use fewer and larger "
                "microbatches (train.microbatch), or a smaller window",
                plan->source, index[i], (unsigned long long)window[side],
                rp_plan_node_name(plan, edge->from), rp_plan_node_name(plan, node),
                RP_PLAN_LINK_WINDOW_MAX - RP_PLAN_LINK_SLACK);
        }
    }
    return RP_OK;
}

rp_err rp_plan_check_training(const rp_plan *plan) {
    rp_err err = RP_OK;
    for (uint32_t h = 0; h < plan->hold_count; h++) {
        RP_TRY(check_hold(plan, &plan->hold[h]));
    }
    for (uint32_t k = 0; k < plan->node_count; k++) {
        const uint32_t holds = plan->node[k].hold_count;
        if (holds == 0 || holds > RP_CHUNKS_MAX) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: nodes[%u].holds: node %s holds %u stages, expected 1 to %d",
                           plan->source, k, rp_plan_node_name(plan, k), holds, RP_CHUNKS_MAX);
        }
        RP_TRY(check_sides(plan, k));
        RP_TRY(check_windows(plan, k));
    }
fail:
    return err;
}
