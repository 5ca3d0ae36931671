/* What boards can train: less than a plan can express. */
#include "plan/plan_own.h"

#include <string.h>

/* ---- neighbours ------------------------------------------------------------------------------ */

uint32_t rp_plan_far_end(const rp_plan_edge *edge, uint32_t node) {
    return edge->from == node ? edge->to : edge->from;
}

/* Inserts into an ascending array, once. */
static void add_neighbour(uint32_t *row, uint32_t *count, uint32_t node) {
    uint32_t at = *count;
    while (at > 0 && row[at - 1] > node) {
        at--;
    }
    if (at > 0 && row[at - 1] == node) {
        return;
    }
    memmove(&row[at + 1], &row[at], (*count - at) * sizeof *row);
    row[at] = node;
    ++*count;
}

/* Finds one more than the limit, which means too many. */
static uint32_t find_neighbours(const rp_plan *plan, uint32_t node,
                                uint32_t out[RP_PLAN_NEIGHBOURS_MAX + 1]) {
    uint32_t count = 0;
    uint32_t edges;
    const uint32_t *index = rp_plan_node_edges(plan, node, &edges);
    for (uint32_t i = 0; i < edges && count <= RP_PLAN_NEIGHBOURS_MAX; i++) {
        const uint32_t far = rp_plan_far_end(&plan->edge[index[i]], node);
        if (far != node && far != RP_PLAN_HOST) {
            add_neighbour(out, &count, far);
        }
    }
    return count;
}

uint32_t rp_plan_neighbours(const rp_plan *plan, uint32_t node,
                            uint32_t out[RP_PLAN_NEIGHBOURS_MAX]) {
    uint32_t found[RP_PLAN_NEIGHBOURS_MAX + 1];
    const uint32_t count = find_neighbours(plan, node, found);
    RP_ASSERT(count <= RP_PLAN_NEIGHBOURS_MAX);
    memcpy(out, found, count * sizeof *out);
    return count;
}

static bool sends_to(const rp_plan *plan, uint32_t from, uint32_t to) {
    uint32_t count;
    const uint32_t *edge = rp_plan_node_edges(plan, from, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (plan->edge[edge[i]].from == from && plan->edge[edge[i]].to == to) {
            return true;
        }
    }
    return false;
}

uint32_t rp_plan_keeper(const rp_plan *plan, uint32_t node) {
    for (uint32_t i = 1; i < plan->node_count; i++) {
        const uint32_t next = (node + i) % plan->node_count;
        if (sends_to(plan, node, next)) {
            return next;
        }
    }
    return RP_PLAN_HOST;
}

/* ---- shares ---------------------------------------------------------------------------------- */

static bool is_share(const rp_plan_hold *hold) {
    return hold->share[0] > 0 || hold->share[1] < 1;
}

static const rp_layer *find_layer(const rp_model *model, const char *name) {
    uint32_t i = 0;
    while (i < model->layer_count && strcmp(model->layer[i].name, name) != 0) {
        i++;
    }
    return i < model->layer_count ? &model->layer[i] : NULL;
}

/* A layer of the stage whose output depends on all samples of the microbatch; NULL: none. */
static const rp_layer *find_statistics(const rp_model *model, const rp_plan_stage *stage) {
    for (uint32_t i = 0; model && i < stage->layer_count; i++) {
        const rp_layer *layer = find_layer(model, stage->layer[i]);
        for (uint32_t p = 0; layer && p < model->param_count; p++) {
            if (&model->layer[model->param[p].layer] == layer &&
                model->param[p].role == RP_PARAM_STATE) {
                return layer;
            }
        }
    }
    return NULL;
}

static rp_err check_share(const rp_plan *plan, const rp_plan_hold *hold, const rp_model *model) {
    const uint32_t number = (uint32_t)(hold - &plan->hold[plan->node[hold->node].hold_first]);
    const rp_layer *layer = find_statistics(model, &plan->stage[hold->stage]);
    char why[160] = "";
    if (plan->method.chunks > 1) {
        (void)snprintf(why, sizeof why,
                       "but schedule %s gives a board %u stages, and a board that shares a stage "
                       "may hold no other",
                       plan->method.kind->name, plan->method.chunks);
    } else if (layer) {
        (void)snprintf(why, sizeof why,
                       "but layer '%.60s' has batch statistics, so its stage cannot be shared",
                       layer->name);
    }
    return why[0] == '\0'
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "%s: nodes[%u].holds[%u].samples: node %s holds stage %u for the samples "
                         "[%g, %g) of every step, %s",
                         plan->source, hold->node, number, rp_plan_node_name(plan, hold->node),
                         hold->stage, hold->share[0], hold->share[1], why);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static rp_err check_sizes(const rp_plan *plan) {
    for (uint32_t k = 0; k < plan->stage_count && !rp_plan_has_sizes(plan); k++) {
        if (plan->stage[k].micro_forward != plan->micro) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: stages[%u].forward: is %u, but microbatch is %u; schedule %s needs "
                           "one size for all stages, only umpipe allows others",
                           plan->source, k, plan->stage[k].micro_forward, plan->micro,
                           plan->method.kind->name);
        }
    }
    return RP_OK;
}

/* Halves of a stage need a schedule that splits stages; rp_plan_check() ensures that. */
static rp_err check_hold(const rp_plan *plan, const rp_plan_hold *hold, const rp_model *model) {
    const uint32_t number = (uint32_t)(hold - &plan->hold[plan->node[hold->node].hold_first]);
    const bool is_half = hold->role == RP_ROLE_FORWARD || hold->role == RP_ROLE_BACKWARD;
    if (hold->role != RP_ROLE_BOTH && !(is_half && plan->method.kind->splits)) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: nodes[%u].holds[%u].role: node %s holds stage %u in role %s: with "
                       "schedule %s a board does both directions of a stage (role both)",
                       plan->source, hold->node, number, rp_plan_node_name(plan, hold->node),
                       hold->stage, rp_role_name(hold->role), plan->method.kind->name);
    }
    return is_share(hold) ? check_share(plan, hold, model) : RP_OK;
}

static rp_err check_neighbours(const rp_plan *plan, uint32_t node) {
    uint32_t found[RP_PLAN_NEIGHBOURS_MAX + 1];
    return find_neighbours(plan, node, found) <= RP_PLAN_NEIGHBOURS_MAX
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "%s: nodes[%u]: node %s has edges with more than %d other nodes, but a "
                         "board has links to at most %d",
                         plan->source, node, rp_plan_node_name(plan, node), RP_PLAN_NEIGHBOURS_MAX,
                         RP_PLAN_NEIGHBOURS_MAX);
}

/* Edges from the same node share a link. */
static rp_err check_window(const rp_plan *plan, uint32_t node, uint32_t from) {
    uint64_t window = RP_PLAN_LINK_SLACK;
    uint32_t count;
    const uint32_t *index = rp_plan_node_edges(plan, node, &count);
    for (uint32_t i = 0; i < count; i++) {
        const rp_plan_edge *edge = &plan->edge[index[i]];
        window += edge->to == node && edge->from == from ? edge->window : 0;
        if (window > RP_PLAN_LINK_WINDOW_MAX) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: edges[%u].window: with all edges of the same link, %llu parcels "
                           "may be in flight from %s to node %s, but a link allows %d; use fewer "
                           "and larger microbatches (train.microbatch), or a smaller window",
                           plan->source, index[i], (unsigned long long)window - RP_PLAN_LINK_SLACK,
                           rp_plan_node_name(plan, from), rp_plan_node_name(plan, node),
                           RP_PLAN_LINK_WINDOW_MAX - RP_PLAN_LINK_SLACK);
        }
    }
    return RP_OK;
}

static rp_err check_dials(const rp_plan *plan, uint32_t node, uint32_t neighbour) {
    return !plan->node[node].dials || !plan->node[neighbour].dials
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "%s: nodes[%u].dials: boards %s and %s are neighbours, but neither can be "
                         "dialled: order the boards so that no two such boards are neighbours, or "
                         "give one of them an address",
                         plan->source, node, rp_plan_node_name(plan, node),
                         rp_plan_node_name(plan, neighbour));
}

static rp_err check_node(const rp_plan *plan, uint32_t node) {
    uint32_t from[RP_PLAN_NEIGHBOURS_MAX + 1];
    rp_err err;
    RP_TRY(check_neighbours(plan, node));
    uint32_t count = rp_plan_neighbours(plan, node, from);
    for (uint32_t i = 0; i < count; i++) {
        RP_TRY(check_dials(plan, node, from[i]));
    }
    from[count++] = RP_PLAN_HOST;
    for (uint32_t i = 0; i < count; i++) {
        RP_TRY(check_window(plan, node, from[i]));
    }
fail:
    return err;
}

rp_err rp_plan_check_training(const rp_plan *plan, const rp_model *model) {
    rp_err err;
    RP_TRY(check_sizes(plan));
    for (uint32_t h = 0; h < plan->hold_count; h++) {
        RP_TRY(check_hold(plan, &plan->hold[h], model));
    }
    for (uint32_t k = 0; k < plan->node_count; k++) {
        RP_TRY(check_node(plan, k));
    }
fail:
    return err;
}
