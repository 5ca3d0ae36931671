/* The edges of a node, from the plan. */
#include "agent/connect.h"

_Static_assert((int)RP_PLAN_LINK_WINDOW_MAX == (int)RP_LINK_WINDOW_MAX,
               "a plan knows what a link takes");

rp_runner_use rp_runner_use_of(const rp_plan *plan, uint32_t node, uint32_t far) {
    rp_runner_use use = {0};
    uint32_t count;
    const uint32_t *index = rp_plan_node_edges(plan, node, &count);
    for (uint32_t i = 0; i < count; i++) {
        const rp_plan_edge *edge = &plan->edge[index[i]];
        if (rp_plan_far_end(edge, node) != far) {
            continue;
        }
        use.edges++;
        use.weights |=
            edge->carries == RP_CARRIES_WEIGHT_GRADIENT || edge->carries == RP_CARRIES_WEIGHT;
        use.ties |=
            edge->carries == RP_CARRIES_TIED_GRADIENT || edge->carries == RP_CARRIES_TIED_WEIGHT;
        use.stashes |= edge->carries == RP_CARRIES_STASH;
        if (edge->to == node) {
            use.window += edge->window + (use.window == 0 ? RP_PLAN_LINK_SLACK : 0);
        } else {
            use.send_window += edge->window;
        }
    }
    /* an end that only sends (or only receives) still needs a window in both directions */
    use.window = use.window > 0 ? use.window : 1;
    use.send_window = use.send_window > 0 ? use.send_window : 1;
    return use;
}

/* ---- edges ----------------------------------------------------------------------------------- */

static rp_err find_kind(const rp_plan_edge *edge, rp_kind *kind) {
    static const rp_kind kinds[RP_CARRIES] = {[RP_CARRIES_INPUT] = RP_KIND_INPUT,
                                              [RP_CARRIES_LABEL] = RP_KIND_LABEL,
                                              [RP_CARRIES_ACTIVATION] = RP_KIND_ACTIVATION,
                                              [RP_CARRIES_GRADIENT] = RP_KIND_GRADIENT,
                                              [RP_CARRIES_WEIGHT_GRADIENT] =
                                                  RP_KIND_WEIGHT_GRADIENT,
                                              [RP_CARRIES_STASH] = RP_KIND_STASH,
                                              [RP_CARRIES_WEIGHT] = RP_KIND_WEIGHT,
                                              [RP_CARRIES_TIED_GRADIENT] = RP_KIND_TIED_GRADIENT,
                                              [RP_CARRIES_TIED_WEIGHT] = RP_KIND_TIED_WEIGHT};
    *kind = kinds[edge->carries];
    return *kind != RP_KIND_NONE
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "plan: an edge carries %s, which this version does not support",
                         rp_carries_name(edge->carries));
}

static rp_runner_edge *edge_at(rp_runner_options *options, uint32_t edge) {
    uint32_t e = 0;
    while (e < options->edge_count && options->edge[e].edge != edge) {
        e++;
    }
    RP_ASSERT(e < options->edge_count); /* the plan lists only transfers of this node's edges */
    return &options->edge[e];
}

static uint32_t find_held(const rp_plan *plan, const rp_plan_node *node, uint32_t stage) {
    uint32_t h = 0;
    while (plan->hold[node->hold_first + h].stage != stage) {
        h++;
        RP_ASSERT(h < node->hold_count);
    }
    return h;
}

/* Finds the stages here that send and take over an edge, by the transfers of their ops. */
static void find_ends(rp_runner_options *options, const rp_plan *plan, uint32_t node) {
    static const rp_op_kind kinds[] = {RP_OP_FORWARD, RP_OP_BACKWARD, RP_OP_UPDATE};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    const rp_plan_node *own = &plan->node[node];
    rp_transfer transfer[RP_RUNNER_EDGES_MAX];
    for (uint32_t i = 0; i < KINDS * own->hold_count; i++) {
        const rp_plan_hold *hold = &plan->hold[own->hold_first + i / KINDS];
        const rp_op op = {.kind = kinds[i % KINDS],
                          .stage = hold->stage,
                          .role = hold->role,
                          .step = plan->step_first,
                          .samples = {0, rp_plan_step_samples(plan, plan->step_first)}};
        const uint32_t count = rp_plan_transfers(plan, node, &op, 0, transfer);
        for (uint32_t t = 0; t < count; t++) {
            rp_runner_edge *edge = edge_at(options, transfer[t].edge);
            const rp_plan_edge *of = &plan->edge[transfer[t].edge];
            *(transfer[t].send ? &edge->sender : &edge->taker) =
                transfer[t].send && of->carries == RP_CARRIES_TIED_GRADIENT
                    ? find_held(plan, own, of->stage) /* the first update sends for all stages */
                    : i / KINDS;
        }
    }
}

static rp_link *link_to(const rp_runner_far *far, uint32_t count, uint32_t node) {
    uint32_t i = 0;
    while (i < count && far[i].far != node) {
        i++;
    }
    return i < count ? far[i].link : NULL;
}

rp_err rp_runner_connect(rp_runner_options *options, const rp_plan *plan, uint32_t node,
                         const rp_runner_far *far, uint32_t far_count) {
    uint32_t count;
    const uint32_t *index = rp_plan_node_edges(plan, node, &count);
    rp_err err = RP_OK;
    if (count > RP_RUNNER_EDGES_MAX) {
        return rp_fail(RP_ERR_LIMIT, "plan: %s has more than %d edges",
                       rp_plan_node_name(plan, node), RP_RUNNER_EDGES_MAX);
    }
    options->plan = plan;
    options->node = node;
    options->edge_count = count;
    for (uint32_t i = 0; i < count; i++) {
        const rp_plan_edge *edge = &plan->edge[index[i]];
        const bool outgoing = edge->from == node;
        options->edge[i] =
            (rp_runner_edge){.edge = index[i],
                             .outgoing = outgoing,
                             .link = link_to(far, far_count, rp_plan_far_end(edge, node)),
                             .window = edge->window + (outgoing ? 0 : RP_PLAN_LINK_SLACK)};
        RP_TRY(find_kind(edge, &options->edge[i].carries));
    }
    find_ends(options, plan, node);
fail:
    return err;
}
