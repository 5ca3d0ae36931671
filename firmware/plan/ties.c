/* Stages that share tensors (nn/ties.h), and the edges that they need. */
#include "nn/ties.h"
#include "plan/plan_own.h"

rp_err rp_plan_find_ties(rp_arena *arena, const rp_model *model, const rp_cut *cut, rp_plan *plan) {
    const uint32_t stages = cut->stage_count;
    uint32_t room = 0;
    rp_err err = RP_OK;
    plan->tie = NULL;
    plan->tie_count = 0;
    if (!rp_ties_cross(model, cut)) {
        return RP_OK;
    }
    for (uint32_t pass = 0; pass < 2; pass++) { /* counts first */
        for (uint32_t a = 0; a < stages; a++) {
            for (uint32_t b = a + 1; b < stages; b++) {
                const bool tied = plan->method.kind->flushed ? rp_ties_join(model, cut, a, b)
                                                             : rp_ties_owns(model, cut, a, b);
                if (!tied) {
                    continue;
                }
                if (pass == 0) {
                    room++;
                } else {
                    plan->tie[plan->tie_count++] = (rp_plan_tie){a, b};
                }
            }
        }
        if (pass == 0) {
            RP_TRY(RP_ARENA_NEW(arena, room, &plan->tie));
        }
    }
fail:
    return err;
}

rp_err rp_plan_check_ties(rp_arena *arena, const rp_plan *plan, const rp_model *model) {
    rp_plan wanted = {.method = plan->method};
    rp_cut cut;
    rp_err err;
    RP_TRY(rp_plan_cut(arena, plan, model, &cut));
    RP_TRY(rp_plan_find_ties(arena, model, &cut, &wanted));
    bool same = plan->tie_count == wanted.tie_count;
    for (uint32_t i = 0; same && i < wanted.tie_count; i++) {
        same = plan->tie[i].first == wanted.tie[i].first &&
               plan->tie[i].second == wanted.tie[i].second;
    }
    if (!same) {
        return rp_fail(
            RP_ERR_USAGE,
            "%s: ties: has %u pairs of stages that share tensors, but in the model other "
            "stages do (%u pairs)",
            plan->source, plan->tie_count, wanted.tie_count);
    }
fail:
    return err;
}

static bool are_tied(const rp_plan *plan, uint32_t stage, uint32_t other) {
    bool tied = false;
    for (uint32_t i = 0; i < plan->tie_count; i++) {
        const rp_plan_tie *tie = &plan->tie[i];
        tied |= (tie->first == stage && tie->second == other) ||
                (tie->first == other && tie->second == stage);
    }
    return tied;
}

static bool sends(const rp_plan_hold *hold, rp_carries carries) {
    return carries == RP_CARRIES_TIED_WEIGHT ? rp_plan_does_forward(hold)
                                             : rp_plan_does_backward(hold);
}

/* Whether the row of `stage` is for a stage of the node. Without a flush values go to later stages,
 * and gradients to earlier ones. */
static bool takes_row(const rp_plan *plan, uint32_t node, uint32_t stage, rp_carries carries) {
    const rp_plan_node *at = &plan->node[node];
    bool takes = false;
    for (uint32_t h = at->hold_first; h < at->hold_first + at->hold_count; h++) {
        const rp_plan_hold *hold = &plan->hold[h];
        const bool later = hold->stage > stage;
        takes |= sends(hold, carries) && are_tied(plan, stage, hold->stage) &&
                 (plan->method.kind->flushed || later == (carries == RP_CARRIES_TIED_WEIGHT));
    }
    return takes;
}

/* The first node of the stage sends, because all have the same. */
static rp_err visit_rows(const rp_plan *plan, const rp_plan_edge_visitor *visitor, uint32_t stage,
                         rp_carries carries) {
    rp_err err = RP_OK;
    uint32_t from = 0;
    while (from < plan->hold_count &&
           !(plan->hold[from].stage == stage && sends(&plan->hold[from], carries))) {
        from++;
    }
    for (uint32_t node = 0; from < plan->hold_count && node < plan->node_count; node++) {
        if (takes_row(plan, node, stage, carries)) {
            const rp_plan_edge edge = {
                .from = plan->hold[from].node, .to = node, .stage = stage, .carries = carries};
            RP_TRY(visitor->each(visitor->context, &edge));
        }
    }
fail:
    return err;
}

rp_err rp_plan_visit_ties(const rp_plan *plan, const rp_plan_edge_visitor *visitor,
                          uint32_t stage) {
    rp_err err = RP_OK;
    if (plan->tie_count > 0) {
        RP_TRY(visit_rows(plan, visitor, stage, RP_CARRIES_TIED_GRADIENT));
        RP_TRY(plan->method.kind->flushed
                   ? RP_OK
                   : visit_rows(plan, visitor, stage, RP_CARRIES_TIED_WEIGHT));
    }
fail:
    return err;
}

bool rp_plan_is_first_update(const rp_plan *plan, uint32_t node, const rp_op *op) {
    const rp_plan_node *at = &plan->node[node];
    uint32_t h = at->hold_first;
    while (h < at->hold_first + at->hold_count && !rp_plan_does_backward(&plan->hold[h])) {
        h++;
    }
    return op->kind == RP_OP_UPDATE && h < at->hold_first + at->hold_count &&
           plan->hold[h].stage == op->stage;
}
