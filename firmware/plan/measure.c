/* Bounds that follow from the order of ops: stashes on a node, parcels on an edge. */
#include "plan/plan_own.h"

/* Most microbatches that any node has in flight, as far as the beginning of its list shows. */
static uint32_t most_in_flight(const rp_plan *plan) {
    uint32_t most = 1;
    for (uint32_t k = 0; k < plan->node_count; k++) {
        rp_plan_list list;
        rp_plan_list_start(plan, k, &list);
        const uint32_t open = rp_sched_in_flight(plan->method.kind, &list.state.shape);
        most = open > most ? open : most;
    }
    return most;
}

rp_plan rp_plan_shorten(const rp_plan *plan) {
    rp_plan out = *plan;
    const uint64_t epoch = (plan->epoch_samples - 1) / plan->batch + 1;
    /* with a flush, one full step and one short one suffice */
    const bool flushed = plan->method.kind->flushed;
    const uint64_t micros = (plan->batch - 1) / plan->micro + 1;
    const uint64_t open = most_in_flight(plan) / micros + 1; /* steps */
    const uint64_t enough = flushed ? 2 : 2 * open + plan->method.replicas + 2;
    out.step_first = out.fill_step = 0;
    if (epoch > enough && out.steps >= epoch) {
        out.epoch_samples -= (epoch - enough) * plan->batch;
        out.steps -= epoch - enough;
    }
    out.steps = out.steps < 2 * enough ? out.steps : 2 * enough;
    return out;
}

/* A forward, or a stash received instead of one, takes a slot; the (weight) gradient frees it. */
static void count_slots(const rp_plan *plan, rp_plan_hold *hold) {
    rp_plan_list list;
    rp_op op;
    uint32_t open = 0;
    hold->slots = 0;
    rp_plan_list_start(plan, hold->node, &list);
    while (rp_plan_list_next(&list, &op)) {
        if (op.stage == hold->stage) {
            open = rp_sched_open_behind(plan->method.kind, open, &op, RP_OP_BACKWARD_WEIGHT);
            hold->slots = open > hold->slots ? open : hold->slots;
            open = hold->role == RP_ROLE_FORWARD ? 0 : open;
        }
    }
}

/* Stashes of nodes with only the backward arrive over edges, whose windows are known by now. */
static void count_stashes(rp_plan *plan) {
    for (uint32_t h = 0; h < plan->hold_count; h++) {
        rp_plan_hold *hold = &plan->hold[h];
        for (uint32_t e = 0; hold->role == RP_ROLE_BACKWARD && e < plan->edge_count; e++) {
            const rp_plan_edge *edge = &plan->edge[e];
            const bool comes = edge->carries == RP_CARRIES_STASH && edge->to == hold->node &&
                               edge->stage == hold->stage;
            hold->slots += comes ? edge->window : 0;
        }
    }
}

/* Parcels that cover rate x delay of a path, limited by the receiver's memory. */
static uint32_t path_parcels(const rp_plan *plan, const rp_plan_edge *edge) {
    const uint64_t memory = plan->node[edge->to].memory_bytes / RP_PLAN_PATH_SHARE;
    const uint64_t bytes = memory && memory < RP_PLAN_PATH_BYTES ? memory : RP_PLAN_PATH_BYTES;
    const uint64_t parcels = edge->parcel_bytes ? bytes / edge->parcel_bytes : 0;
    return parcels < RP_PLAN_PATH_PARCELS ? (uint32_t)parcels : RP_PLAN_PATH_PARCELS;
}

static uint32_t larger_of(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* Finds windows by replays, one for each node as the lazy one. */
static rp_err find_windows(rp_plan *plan, const rp_plan *walked) {
    const bool flushed = plan->method.kind->flushed;
    rp_arena arena;
    rp_err err = RP_OK;
    rp_arena_init(&arena, "windows", 0);
    for (uint32_t k = 0; k < plan->node_count; k++) {
        rp_sched_facts facts;
        RP_TRY(rp_plan_replay(&arena, walked, NULL, false, NULL, k, &facts));
        for (uint32_t e = 0; e < plan->edge_count; e++) {
            rp_plan_edge *edge = &plan->edge[e];
            const uint32_t waiting = facts.edge[e].waiting_max;
            const uint32_t most =
                larger_of(plan->stage_count + RP_PLAN_WINDOW_SLACK - 1 + facts.edge[e].taken_max,
                          path_parcels(plan, edge));
            const bool all = !flushed || edge->carries == RP_CARRIES_STASH;
            if (edge->to == k && edge->carries != RP_CARRIES_INPUT) {
                edge->window = waiting < 1 ? 1 : all || waiting < most ? waiting : most;
            }
        }
        rp_arena_finish(&arena);
        rp_arena_init(&arena, "windows", 0);
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

/* Most parcels that an op takes from one sender. */
static uint32_t parcels_of_op(const rp_plan *plan, const rp_plan_edge *edge) {
    const rp_plan_stage *to = &plan->stage[edge->stage];
    const bool gradient = edge->carries == RP_CARRIES_GRADIENT;
    const uint32_t size = gradient ? to->micro_backward : to->micro_forward;
    const bool cut = gradient || edge->carries == RP_CARRIES_ACTIVATION;
    return cut ? (size - 1) / rp_plan_parcel_samples(plan, edge) + 2 : 1;
}

/* A waiting parcel's backward has not run on the node that has its microbatch in flight, so
 * in-flight counts bound the windows. */
static void bound_windows(rp_plan *plan) {
    uint32_t most = 1;
    for (uint32_t h = 0; h < plan->hold_count; h++) {
        most = plan->hold[h].slots > most ? plan->hold[h].slots : most;
    }
    const uint32_t bound = most + RP_PLAN_WINDOW_SLACK;
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        rp_plan_edge *edge = &plan->edge[e];
        const bool sizes = rp_plan_has_sizes(plan);
        const uint32_t slack = RP_PLAN_WINDOW_SLACK + (sizes ? parcels_of_op(plan, edge) : 0);
        const uint32_t flushed = larger_of(plan->stage_count + slack, path_parcels(plan, edge));
        const bool capped = plan->method.kind->flushed && edge->carries != RP_CARRIES_STASH;
        if (edge->carries != RP_CARRIES_INPUT) {
            edge->window = capped && (sizes || flushed < bound) ? flushed : bound;
        }
    }
}

/* Allows inputs in flight as far as covers the path from the host, and as many labels, which
 * accompany them. */
static void widen_feeds(rp_plan *plan) {
    uint32_t more = 0;
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        rp_plan_edge *edge = &plan->edge[e];
        if (edge->carries == RP_CARRIES_INPUT) {
            edge->window = larger_of(RP_PLAN_INPUT_WINDOW, path_parcels(plan, edge));
            more = larger_of(more, edge->window - RP_PLAN_INPUT_WINDOW);
        }
    }
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        plan->edge[e].window += plan->edge[e].carries == RP_CARRIES_LABEL ? more : 0;
    }
}

/* Whether every stage is on one node as a whole, or on several with a share of the samples each. */
static bool is_row(const rp_plan *plan) {
    bool row = true;
    for (uint32_t h = 0; row && h < plan->hold_count; h++) {
        row = plan->hold[h].role == RP_ROLE_BOTH;
    }
    return row;
}

static bool keeps_forwards(const rp_plan_hold *hold) {
    return hold->role == RP_ROLE_BOTH || hold->role == RP_ROLE_FORWARD;
}

void rp_plan_set_steps(rp_plan *plan, uint64_t steps) {
    plan->steps = steps;
    plan->step_first = plan->step_first < steps ? plan->step_first : steps;
    plan->fill_step = plan->fill_step < steps ? plan->fill_step : steps;
    const rp_plan walked = rp_plan_shorten(plan);
    for (uint32_t h = 0; h < plan->hold_count; h++) {
        rp_plan_hold needed = plan->hold[h];
        if (keeps_forwards(&needed)) {
            count_slots(&walked, &needed);
            const uint32_t was = plan->hold[h].slots;
            plan->hold[h].slots = needed.slots > was ? needed.slots : was;
        }
    }
}

rp_err rp_plan_measure(rp_plan *plan) {
    const rp_plan walked = rp_plan_shorten(plan);
    rp_err err = RP_OK;
    for (uint32_t h = 0; h < plan->hold_count; h++) {
        plan->hold[h].slots = 0;
        if (keeps_forwards(&plan->hold[h])) {
            count_slots(&walked, &plan->hold[h]);
        }
    }
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        rp_plan_edge *edge = &plan->edge[e];
        const bool input = edge->carries == RP_CARRIES_INPUT;
        edge->window = input ? RP_PLAN_INPUT_WINDOW : 1;
    }
    if (plan->node_count > RP_PLAN_LAZY_NODES_MAX && is_row(plan)) {
        bound_windows(plan);
    } else {
        RP_TRY(find_windows(plan, &walked));
    }
    widen_feeds(plan);
    count_stashes(plan);
fail:
    return err;
}
