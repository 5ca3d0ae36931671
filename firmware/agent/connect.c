/* The edges of a node, as the plan has them. */
#include "agent/connect.h"

/* Parcels that a link takes beyond its edges' windows: credit is on its way back meanwhile. */
enum { CREDIT_SLACK = 4 };

static uint32_t other_end(const rp_plan_edge *edge, uint32_t node) {
    return edge->from == node ? edge->to : edge->from;
}

/* All edges between two nodes share the link that the sender of activations dials. */
static rp_runner_side side_of(const rp_plan_edge *edge, uint32_t node) {
    if (edge->from == edge->to) {
        return RP_SIDE_HERE;
    }
    if (other_end(edge, node) == RP_PLAN_HOST) {
        return RP_SIDE_HOST;
    }
    const bool comes = edge->to == node;
    return comes == (edge->carries == RP_CARRIES_ACTIVATION) ? RP_SIDE_BEFORE : RP_SIDE_BEHIND;
}

static uint32_t slots_of(const rp_plan_edge *edge) {
    return edge->window < RP_RUNNER_SLOTS ? edge->window : RP_RUNNER_SLOTS;
}

rp_runner_use rp_runner_use_of(const rp_plan *plan, uint32_t node, rp_runner_side side) {
    rp_runner_use use = {0};
    uint32_t count;
    const uint32_t *index = rp_plan_node_edges(plan, node, &count);
    for (uint32_t i = 0; i < count; i++) {
        const rp_plan_edge *edge = &plan->edge[index[i]];
        if (side_of(edge, node) != side) {
            continue;
        }
        use.edges++;
        if (edge->to == node) {
            use.window += edge->window + (use.window == 0 ? CREDIT_SLACK : 0);
        } else {
            use.send_window += slots_of(edge);
        }
    }
    /* an end that only sends (or only receives) still has a window the other way */
    use.window = use.window > 0 ? use.window : 1;
    use.send_window = use.send_window > 0 ? use.send_window : 1;
    return use;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static rp_err check_hold(const rp_plan *plan, const rp_plan_hold *hold) {
    if (hold->role != RP_ROLE_BOTH || hold->share[0] > 0 || hold->share[1] < 1) {
        return rp_fail(RP_ERR_USAGE,
                       "plan: %s holds stage %u in role %s for samples [%g, %g) of a step: boards "
                       "train whole stages in both directions so far",
                       rp_plan_node_name(plan, hold->node), hold->stage, rp_role_name(hold->role),
                       hold->share[0], hold->share[1]);
    }
    return RP_OK;
}

/* One node on each side. */
static rp_err check_sides(const rp_plan *plan, uint32_t node) {
    uint32_t peer[2] = {node, node}; /* none yet */
    uint32_t count;
    const uint32_t *index = rp_plan_node_edges(plan, node, &count);
    for (uint32_t i = 0; i < count; i++) {
        const rp_plan_edge *edge = &plan->edge[index[i]];
        const rp_runner_side side = side_of(edge, node);
        if (side != RP_SIDE_BEFORE && side != RP_SIDE_BEHIND) {
            continue;
        }
        const uint32_t other = other_end(edge, node);
        uint32_t *known = &peer[side == RP_SIDE_BEHIND];
        if (*known != node && *known != other) {
            return rp_fail(RP_ERR_USAGE,
                           "plan: %s has edges to %s and to %s on the same side: boards have one "
                           "neighbour on each so far",
                           rp_plan_node_name(plan, node), rp_plan_node_name(plan, *known),
                           rp_plan_node_name(plan, other));
        }
        *known = other;
    }
    return RP_OK;
}

rp_err rp_runner_check_plan(const rp_plan *plan, uint32_t node) {
    rp_err err = RP_OK;
    if (node >= plan->node_count) {
        return rp_fail(RP_ERR_USAGE, "plan: has no node %u, it has %u", node, plan->node_count);
    }
    const rp_plan_node *own = &plan->node[node];
    if (own->hold_count == 0 || own->hold_count > RP_RUNNER_STAGES_MAX) {
        return rp_fail(RP_ERR_USAGE, "plan: %s holds %u stages, expected 1 to %d",
                       rp_plan_node_name(plan, node), own->hold_count, RP_RUNNER_STAGES_MAX);
    }
    for (uint32_t h = 0; h < own->hold_count; h++) {
        RP_TRY(check_hold(plan, &plan->hold[own->hold_first + h]));
    }
    RP_TRY(check_sides(plan, node));
fail:
    return err;
}

/* ---- edges ----------------------------------------------------------------------------------- */

static uint32_t held_index(const rp_plan *plan, uint32_t node, uint32_t stage) {
    const rp_plan_node *own = &plan->node[node];
    uint32_t h = 0;
    while (h < own->hold_count && plan->hold[own->hold_first + h].stage != stage) {
        h++;
    }
    RP_ASSERT(h < own->hold_count); /* the parser and rp_plan_check() have seen to it */
    return h;
}

static rp_err find_kind(const rp_plan_edge *edge, rp_kind *kind, uint32_t *from_stage) {
    switch (edge->carries) {
    case RP_CARRIES_INPUT:
        *kind = RP_KIND_INPUT;
        *from_stage = 0;
        return RP_OK;
    case RP_CARRIES_LABEL:
        *kind = RP_KIND_LABEL;
        *from_stage = 0;
        return RP_OK;
    case RP_CARRIES_ACTIVATION:
        *kind = RP_KIND_ACTIVATION;
        *from_stage = edge->stage - 1;
        return RP_OK;
    case RP_CARRIES_GRADIENT:
        *kind = RP_KIND_GRADIENT;
        *from_stage = edge->stage + 1;
        return RP_OK;
    default:
        return rp_fail(RP_ERR_USAGE, "plan: an edge carries %s, which boards do not send so far",
                       rp_carries_name(edge->carries));
    }
}

static rp_err add_edge(rp_runner_options *options, const rp_plan *plan, uint32_t node,
                       const rp_plan_edge *edge, rp_link *link) {
    rp_runner_edge out = {.link = link, .outgoing = edge->from == node};
    uint32_t from_stage = 0;
    rp_err err;
    RP_TRY(find_kind(edge, &out.carries, &from_stage));
    if (options->edge_count == RP_RUNNER_EDGES_MAX) {
        return rp_fail(RP_ERR_LIMIT, "plan: %s has more than %d edges",
                       rp_plan_node_name(plan, node), RP_RUNNER_EDGES_MAX);
    }
    if (out.outgoing) {
        const rp_plan_hold *far = rp_plan_find_hold(plan, edge->to, edge->stage);
        out.held = held_index(plan, node, from_stage);
        out.far_held = edge->to == node ? held_index(plan, node, edge->stage) : 0;
        out.share[0] = far->share[0];
        out.share[1] = far->share[1];
        out.window = slots_of(edge);
    } else {
        out.held = held_index(plan, node, edge->stage);
        out.far_stage = from_stage;
        out.window = edge->window + CREDIT_SLACK;
    }
    options->edge[options->edge_count++] = out;
fail:
    return err;
}

rp_err rp_runner_connect(rp_runner_options *options, const rp_plan *plan, uint32_t node,
                         rp_link *const link[RP_SIDES]) {
    uint32_t count;
    const uint32_t *index = rp_plan_node_edges(plan, node, &count);
    for (uint32_t i = 0; i < count; i++) {
        const rp_plan_edge *edge = &plan->edge[index[i]];
        const rp_runner_side side = side_of(edge, node);
        const rp_err err = add_edge(options, plan, node, edge, link[side]);
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}
