/* Derives the edges of a plan from its holds. */
#include "plan/plan_own.h"

/* Iterates over stage s's holds in the order of their nodes. */
static const rp_plan_hold *next_hold(const rp_plan *plan, uint32_t stage, uint32_t *index) {
    while (*index < plan->hold_count) {
        const rp_plan_hold *hold = &plan->hold[(*index)++];
        if (hold->stage == stage) {
            return hold;
        }
    }
    return NULL;
}

static bool may_send(const rp_plan_hold *from, const rp_plan_hold *to, rp_carries carries) {
    const bool meet = rp_plan_overlap(from->share, to->share);
    switch (carries) {
    case RP_CARRIES_ACTIVATION:
        return meet && rp_plan_does_forward(from) && rp_plan_does_forward(to);
    case RP_CARRIES_GRADIENT:
        return meet && rp_plan_does_backward(from) && rp_plan_does_backward(to);
    case RP_CARRIES_STASH:
        return meet && from->role == RP_ROLE_FORWARD && to->role == RP_ROLE_BACKWARD;
    case RP_CARRIES_WEIGHT_GRADIENT:
        return from->node != to->node && rp_plan_does_backward(from) && rp_plan_does_backward(to);
    /* sent by the first node that updates, because all have the same weights */
    case RP_CARRIES_WEIGHT:
        return rp_plan_does_backward(from) &&
               (to->role == RP_ROLE_FORWARD || to->role == RP_ROLE_AVERAGE);
    default:
        return false;
    }
}

static rp_err visit_pairs(const rp_plan *plan, const rp_plan_edge_visitor *visitor,
                          uint32_t from_stage, uint32_t stage, rp_carries carries) {
    rp_err err = RP_OK;
    const rp_plan_hold *from;
    const rp_plan_hold *to;
    for (uint32_t i = 0; (from = next_hold(plan, from_stage, &i));) {
        for (uint32_t j = 0; (to = next_hold(plan, stage, &j));) {
            if (may_send(from, to, carries)) {
                const rp_plan_edge edge = {
                    .from = from->node, .to = to->node, .stage = stage, .carries = carries};
                RP_TRY(visitor->each(visitor->context, &edge));
            }
        }
        if (carries == RP_CARRIES_WEIGHT && rp_plan_does_backward(from)) {
            break;
        }
    }
fail:
    return err;
}

static rp_err visit_host(const rp_plan *plan, const rp_plan_edge_visitor *visitor, uint32_t stage,
                         rp_carries carries) {
    rp_err err = RP_OK;
    const rp_plan_hold *to;
    for (uint32_t j = 0; (to = next_hold(plan, stage, &j));) {
        const bool wants =
            carries == RP_CARRIES_INPUT ? rp_plan_does_forward(to) : to->role != RP_ROLE_AVERAGE;
        if (wants) {
            const rp_plan_edge edge = {
                .from = RP_PLAN_HOST, .to = to->node, .stage = stage, .carries = carries};
            RP_TRY(visitor->each(visitor->context, &edge));
        }
    }
fail:
    return err;
}

rp_err rp_plan_needed_edges(const rp_plan *plan, const rp_plan_edge_visitor *visitor) {
    const uint32_t last = plan->stage_count - 1;
    rp_err err = RP_OK;
    for (uint32_t s = 0; s <= last; s++) {
        if (s == 0) {
            RP_TRY(visit_host(plan, visitor, s, RP_CARRIES_INPUT));
        } else {
            RP_TRY(visit_pairs(plan, visitor, s - 1, s, RP_CARRIES_ACTIVATION));
        }
        if (s == last) {
            RP_TRY(visit_host(plan, visitor, s, RP_CARRIES_LABEL));
        } else {
            RP_TRY(visit_pairs(plan, visitor, s + 1, s, RP_CARRIES_GRADIENT));
        }
        RP_TRY(visit_pairs(plan, visitor, s, s, RP_CARRIES_WEIGHT_GRADIENT));
        RP_TRY(visit_pairs(plan, visitor, s, s, RP_CARRIES_STASH));
        RP_TRY(visit_pairs(plan, visitor, s, s, RP_CARRIES_WEIGHT));
        RP_TRY(rp_plan_visit_ties(plan, visitor, s));
    }
fail:
    return err;
}

/* ---- building -------------------------------------------------------------------------------- */

typedef struct {
    rp_arena *arena;
    const rp_model *model;
    const rp_cut *cut;
    rp_plan *plan;
} building;

static rp_err count_edge(void *context, const rp_plan_edge *edge) {
    rp_plan *plan = ((building *)context)->plan;
    (void)edge;
    return ++plan->edge_count <= RP_PLAN_EDGES_MAX
               ? RP_OK
               : rp_fail(RP_ERR_LIMIT, "plan: needs more than %d edges", RP_PLAN_EDGES_MAX);
}

/* Names the tensors that cross the boundary; the data has no gradient. */
static rp_err name_tensors(const building *b, rp_plan_edge *edge) {
    const bool gradient = edge->carries == RP_CARRIES_GRADIENT;
    rp_boundary boundary;
    rp_err err;
    RP_TRY(rp_cut_boundary(b->model, b->cut, edge->stage + gradient, &boundary));
    RP_TRY(RP_ARENA_NEW(b->arena, boundary.count + 1, &edge->tensor));
    for (uint32_t i = 0; i < boundary.count; i++) {
        const uint32_t producer = boundary.producer[i];
        const bool data = producer == RP_LAYER_DATA;
        char *name;
        if (data && gradient) {
            continue;
        }
        RP_TRY(rp_arena_string(b->arena, data ? "data" : b->model->layer[producer].name, &name));
        edge->tensor[edge->tensor_count++] = name;
    }
    edge->parcel_bytes = (uint64_t)boundary.sample_bytes * rp_plan_parcel_samples(b->plan, edge);
fail:
    return err;
}

static rp_err add_edge(void *context, const rp_plan_edge *edge) {
    building *b = context;
    rp_plan_edge *added = &b->plan->edge[b->plan->edge_count++];
    *added = *edge;
    added->codec = RP_CODEC_F32;
    added->window = 1;
    if (b->model &&
        (edge->carries == RP_CARRIES_ACTIVATION || edge->carries == RP_CARRIES_GRADIENT)) {
        return name_tensors(b, added);
    }
    if (b->model && edge->carries == RP_CARRIES_INPUT) {
        added->parcel_bytes = (uint64_t)rp_shape_count(&b->model->input) * sizeof(float) *
                              rp_plan_parcel_samples(b->plan, added);
    }
    return RP_OK;
}

static uint32_t bucket_of(const rp_plan *plan, uint32_t node) {
    return node < plan->node_count ? node : plan->node_count;
}

rp_err rp_plan_index_edges(rp_arena *arena, rp_plan *plan) {
    const uint32_t buckets = plan->node_count + 1;
    uint32_t *first;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)buckets + 1, &first));
    RP_TRY(RP_ARENA_NEW(arena, 2 * (size_t)plan->edge_count + 1, &plan->node_edge));
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const uint32_t from = bucket_of(plan, plan->edge[e].from);
        const uint32_t to = bucket_of(plan, plan->edge[e].to);
        first[from + 1]++;
        first[to + 1] += to != from;
    }
    for (uint32_t k = 1; k <= buckets; k++) {
        first[k] += first[k - 1];
    }
    /* backwards, because buckets are filled from their ends */
    for (uint32_t e = plan->edge_count; e-- > 0;) {
        const uint32_t from = bucket_of(plan, plan->edge[e].from);
        const uint32_t to = bucket_of(plan, plan->edge[e].to);
        plan->node_edge[--first[from + 1]] = e;
        if (to != from) {
            plan->node_edge[--first[to + 1]] = e;
        }
    }
    /* first[k + 1] is now the start of bucket k */
    for (uint32_t k = 0; k < buckets; k++) {
        first[k] = first[k + 1];
    }
    first[buckets] = 0;
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        first[buckets] += plan->edge[e].from != plan->edge[e].to ? 2 : 1;
    }
    plan->node_edge_first = first;
fail:
    return err;
}

rp_err rp_plan_connect(rp_arena *arena, const rp_model *model, const rp_cut *cut, rp_plan *plan) {
    building b = {.arena = arena, .model = model, .cut = cut, .plan = plan};
    const rp_plan_edge_visitor count = {count_edge, &b};
    const rp_plan_edge_visitor add = {add_edge, &b};
    rp_err err;
    plan->edge_count = 0;
    RP_TRY(model && cut ? rp_plan_find_ties(arena, model, cut, plan) : RP_OK);
    RP_TRY(rp_plan_needed_edges(plan, &count));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)plan->edge_count + 1, &plan->edge));
    plan->edge_count = 0;
    RP_TRY(rp_plan_needed_edges(plan, &add));
    RP_TRY(rp_plan_index_edges(arena, plan));
fail:
    return err;
}
