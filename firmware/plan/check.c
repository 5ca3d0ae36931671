#include <string.h>

#include "nn/recompute.h"
#include "plan/plan_own.h"

/* ---- sizes ----------------------------------------------------------------------------------- */

static rp_err check_sizes(const rp_plan *plan) {
    if (plan->batch < 1 || plan->epoch_samples < 1) {
        return rp_fail(RP_ERR_USAGE, "%s: batch, epoch_samples: expected at least one sample",
                       plan->source);
    }
    if (plan->step_first > plan->steps) {
        return rp_fail(RP_ERR_USAGE, "%s: step_first: is %llu, after the last of %llu steps",
                       plan->source, (unsigned long long)plan->step_first,
                       (unsigned long long)plan->steps);
    }
    if (plan->node_count < 1 || plan->node_count > RP_PLAN_NODES_MAX || plan->stage_count < 1 ||
        plan->stage_count > RP_PLAN_STAGES_MAX || plan->edge_count > RP_PLAN_EDGES_MAX) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: nodes, stages, edges: expected 1 to %d nodes, 1 to %d stages and at "
                       "most %d edges, found %u, %u and %u",
                       plan->source, RP_PLAN_NODES_MAX, RP_PLAN_STAGES_MAX, RP_PLAN_EDGES_MAX,
                       plan->node_count, plan->stage_count, plan->edge_count);
    }
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        const rp_plan_stage *stage = &plan->stage[k];
        if (stage->micro_forward < 1 || stage->micro_forward > plan->batch) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: stages[%u].forward: a microbatch of %u samples, expected 1 to %u",
                           plan->source, k, stage->micro_forward, plan->batch);
        }
        if (stage->micro_backward > plan->batch) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: stages[%u].backward: a microbatch of %u samples, expected 1 to %u",
                           plan->source, k, stage->micro_backward, plan->batch);
        }
        if (stage->micro_backward != stage->micro_forward && !rp_plan_has_sizes(plan)) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: stages[%u].backward: microbatches of %u samples forward and %u "
                           "backward; schedule %s needs equal sizes",
                           plan->source, k, stage->micro_forward, stage->micro_backward,
                           plan->method.kind->name);
        }
        if (stage->as_forward &&
            (!rp_plan_has_sizes(plan) || stage->micro_backward != stage->micro_forward)) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: stages[%u].as_forward: expected only in schedule umpipe, for equal "
                           "sizes in both directions",
                           plan->source, k);
        }
        if (rp_offload_find(stage->offload) >= RP_OFFLOAD_AUTO) {
            return rp_fail(RP_ERR_USAGE, "%s: stages[%u].offload: expected none, host or flash",
                           plan->source, k);
        }
        if (stage->leave_tensors > 0 && strcmp(stage->offload, "none") == 0) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: stages[%u].offload_tensors: is %u without offload; expected "
                           "offload host or flash",
                           plan->source, k, stage->leave_tensors);
        }
        if (rp_method_is_split(&plan->method, k) && strcmp(stage->offload, "none") != 0) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: stages[%u].offload: the stage is split (schedule %s), so its "
                           "stashes are sent to another board anyway; expected none",
                           plan->source, k, plan->method.kind->name);
        }
    }
    return RP_OK;
}

/* Further groups begin at layers of the stage, in their order. */
static rp_err check_groups(const rp_plan *plan, uint32_t k) {
    const rp_plan_stage *stage = &plan->stage[k];
    uint32_t layer = 0;
    for (uint32_t g = 0; g < stage->group_count; g++, layer++) {
        while (layer < stage->layer_count && strcmp(stage->layer[layer], stage->group[g]) != 0) {
            layer++;
        }
        if (layer >= stage->layer_count) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: stages[%u].recompute[%u]: expected layers of the stage in their "
                           "order, found '%.60s'",
                           plan->source, k, g, stage->group[g]);
        }
    }
    return RP_OK;
}

static rp_err check_recompute(const rp_plan *plan) {
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        const rp_plan_stage *stage = &plan->stage[k];
        const bool parts = rp_plan_takes_parts(plan, k);
        char whose[RP_METHOD_WHOSE_BYTES];
        const char *why =
            stage->recompute ? rp_method_refuses_again(&plan->method, k, parts) : NULL;
        const rp_err err =
            why ? rp_fail(RP_ERR_USAGE,
                          "%s: stages[%u].recompute: is not for %s: %s; expected false",
                          plan->source, k, rp_method_whose(&plan->method, k, whose), why)
                : check_groups(plan, k);
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}

/* Without a flush, weight versions are counted in microbatches. */
static rp_err check_micro(const rp_plan *plan) {
    for (uint32_t k = 0; k < plan->stage_count && !plan->method.kind->flushed; k++) {
        if (plan->stage[k].micro_forward != plan->stage[0].micro_forward) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: stages[%u].forward: a microbatch of %u samples, but stage 0 has "
                           "%u; schedule %s, which does not flush, needs one size for all stages",
                           plan->source, k, plan->stage[k].micro_forward,
                           plan->stage[0].micro_forward, plan->method.kind->name);
        }
    }
    return RP_OK;
}

rp_err rp_plan_check_whole(const char *source, uint32_t k, const rp_plan_stage *stage,
                           uint32_t micro, const rp_layer *layer) {
    const bool alike = stage->micro_forward == micro && stage->micro_backward == micro;
    if (!layer || (alike && stage->as_forward)) {
        return RP_OK;
    }
    return alike ? rp_fail(RP_ERR_USAGE,
                           "%s: stages[%u].as_forward: expected true, because layer '%s' has batch "
                           "statistics",
                           source, k, layer->name)
                 : rp_fail(RP_ERR_USAGE,
                           "%s: stages[%u]: microbatches of %u samples forward and %u backward, "
                           "and layer '%s' normalises over a microbatch: with another size it "
                           "is another model; expected train.microbatch, %u, in both directions",
                           source, k, stage->micro_forward, stage->micro_backward, layer->name,
                           micro);
}

/* For a schedule with sizes. */
static rp_err check_whole(const rp_plan *plan, const rp_model *model, const rp_cut *cut) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; err == RP_OK && k < cut->stage_count && rp_plan_has_sizes(plan); k++) {
        err = rp_plan_check_whole(plan->source, k, &plan->stage[k], plan->micro,
                                  rp_cut_whole_layer(model, cut, k));
    }
    return err;
}

static rp_err check_model(rp_arena *arena, const rp_plan *plan, const rp_model *model) {
    rp_cut cut;
    const uint64_t digest = rp_plan_model_digest(model);
    if (plan->model_digest != digest) {
        return rp_fail(
            RP_ERR_USAGE,
            "%s: model_digest: the plan is for a model with digest %016llx, this model has %016llx",
            plan->source, (unsigned long long)plan->model_digest, (unsigned long long)digest);
    }
    const rp_err err = rp_plan_cut(arena, plan, model, &cut);
    return err == RP_OK ? check_whole(plan, model, &cut) : err;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* One list of ops must serve all stages of a node: those of an interleaved schedule. */
static rp_err check_node(const rp_plan *plan, uint32_t k) {
    const rp_plan_node *node = &plan->node[k];
    const uint32_t chunks = plan->method.chunks;
    const uint32_t apart = plan->stage_count / chunks;
    const rp_plan_hold *first = &plan->hold[node->hold_first];
    if (node->hold_count != chunks) {
        return rp_fail(
            RP_ERR_USAGE,
            "%s: nodes[%u].holds: node %s holds %u stages; schedule %s needs %u for each node",
            plan->source, k, node->name, node->hold_count, plan->method.kind->name, chunks);
    }
    for (uint32_t c = 0; c < chunks; c++) {
        const rp_plan_hold *hold = first + c;
        if (hold->stage >= plan->stage_count) {
            return rp_fail(
                RP_ERR_USAGE,
                "%s: nodes[%u].holds[%u].stage: node %s holds stage %u, but the plan has %u stages",
                plan->source, k, c, node->name, hold->stage, plan->stage_count);
        }
        if (first->stage >= apart || hold->stage != first->stage + c * apart) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: nodes[%u].holds[%u].stage: node %s holds stage %u as its number "
                           "%u; expected every %uth, from one of the first %u",
                           plan->source, k, c, node->name, hold->stage, c + 1, apart, apart);
        }
        if (!(hold->share[0] >= 0 && hold->share[0] < hold->share[1] && hold->share[1] <= 1)) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: nodes[%u].holds[%u].samples: node %s: expected a share within [0, "
                           "1] of the samples, found [%g, %g)",
                           plan->source, k, c, node->name, hold->share[0], hold->share[1]);
        }
        const rp_plan_stage *own = &plan->stage[hold->stage];
        const rp_plan_stage *other = &plan->stage[first->stage];
        if (hold->role != first->role || hold->share[0] != first->share[0] ||
            hold->share[1] != first->share[1] || own->micro_forward != other->micro_forward ||
            own->micro_backward != other->micro_backward) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: nodes[%u].holds[%u]: node %s: its stages differ in role, samples "
                           "or microbatch",
                           plan->source, k, c, node->name);
        }
    }
    return RP_OK;
}

static rp_err check_nodes(const rp_plan *plan) {
    rp_err err = RP_OK;
    if (plan->method.kind->splits &&
        (plan->stage_count > RP_SPLIT_STAGES_MAX ||
         (plan->method.ahead_count > 1 && plan->method.ahead_count != plan->stage_count))) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: stages, method.ahead: %u stages and %u numbers; expected at most %d "
                       "stages, and one number for each stage or for all",
                       plan->source, plan->stage_count, plan->method.ahead_count,
                       RP_SPLIT_STAGES_MAX);
    }
    if (plan->method.split_count > 0 && plan->method.split_count != plan->stage_count) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: stages, method.split: %u stages and %u entries; expected one for each",
                       plan->source, plan->stage_count, plan->method.split_count);
    }
    if (plan->stage_count % plan->method.chunks > 0) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: stages: %u stages cannot be divided into %u for each node",
                       plan->source, plan->stage_count, plan->method.chunks);
    }
    for (uint32_t k = 0; k < plan->node_count; k++) {
        RP_TRY(check_node(plan, k));
        if (rp_plan_find_node(plan, plan->node[k].name) != k || !plan->node[k].name[0] ||
            strcmp(plan->node[k].name, "host") == 0) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: nodes[%u].name: '%s' is empty, `host`, or the name of another node",
                           plan->source, k, plan->node[k].name);
        }
        if (strcmp(plan->node[k].executor, "opencl") != 0 &&
            strcmp(plan->node[k].executor, "timed") != 0 &&
            strcmp(plan->node[k].executor, "digest") != 0) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: nodes[%u].executor: expected opencl, timed or digest, found '%s'",
                           plan->source, k, plan->node[k].executor);
        }
    }
fail:
    return err;
}

/* Checks that the shares of a stage's holds in one direction start at sample 0 and have no gap. */
static rp_err check_covered(const rp_plan *plan, uint32_t stage, bool forward) {
    double end = 0;
    uint32_t in_row = 0; /* consecutive holds found so far */
    for (uint32_t found = 1; found > 0 && end < 1; in_row += found) {
        found = 0;
        double next = end;
        for (uint32_t h = 0; h < plan->hold_count; h++) {
            const rp_plan_hold *hold = &plan->hold[h];
            const bool does = forward ? rp_plan_does_forward(hold) : rp_plan_does_backward(hold);
            if (hold->stage == stage && does && hold->share[0] == end) {
                found++;
                next = hold->share[1];
            }
        }
        if (found > 1) {
            return rp_fail(
                RP_ERR_USAGE,
                "%s: holds.samples: stage %u: %u nodes do the %s from %g of the samples on",
                plan->source, stage, found, forward ? "forward" : "backward", end);
        }
        end = next;
    }
    uint32_t all = 0;
    for (uint32_t h = 0; h < plan->hold_count; h++) {
        const rp_plan_hold *hold = &plan->hold[h];
        const bool does = forward ? rp_plan_does_forward(hold) : rp_plan_does_backward(hold);
        all += hold->stage == stage && does;
    }
    if (end < 1) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: holds.samples: stage %u: no node does the %s from %g of the samples on",
                       plan->source, stage, forward ? "forward" : "backward", end);
    }
    return in_row == all
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "%s: holds.samples: stage %u: the shares of %u nodes for the %s overlap",
                         plan->source, stage, all - in_row, forward ? "forward" : "backward");
}

static rp_err check_holds(const rp_plan *plan) {
    const bool flushed = plan->method.kind->flushed;
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        RP_TRY(check_covered(plan, k, true));
        RP_TRY(check_covered(plan, k, false));
    }
    for (uint32_t h = 0; h < plan->hold_count && !flushed; h++) {
        const rp_plan_hold *hold = &plan->hold[h];
        const bool whole = hold->share[0] <= 0 && hold->share[1] >= 1;
        const bool both = hold->role == RP_ROLE_BOTH;
        const bool apart = hold->role == RP_ROLE_FORWARD || hold->role == RP_ROLE_BACKWARD;
        const bool splits = rp_method_is_split(&plan->method, hold->stage);
        if (plan->method.kind->splits && whole && (splits ? apart : both)) {
            continue;
        }
        if (plan->method.kind->splits && !splits) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: nodes[%u].holds: node %s holds stage %u in role %s for [%g, %g) of "
                           "the samples, but method.split does not split this stage: expected one "
                           "node in role both for all samples",
                           plan->source, hold->node, plan->node[hold->node].name, hold->stage,
                           rp_role_name(hold->role), hold->share[0], hold->share[1]);
        }
        if (plan->method.kind->splits) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: nodes[%u].holds: node %s holds stage %u in role %s for [%g, %g) of "
                           "the samples; schedule %s needs one node in role forward and one in "
                           "role backward for all samples of every stage",
                           plan->source, hold->node, plan->node[hold->node].name, hold->stage,
                           rp_role_name(hold->role), hold->share[0], hold->share[1],
                           plan->method.kind->name);
        }
        if (hold->role != RP_ROLE_BOTH || !whole) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: nodes[%u].holds: node %s holds a share of stage %u; schedule %s, "
                           "which does not flush, needs each stage on one node",
                           plan->source, hold->node, plan->node[hold->node].name, hold->stage,
                           plan->method.kind->name);
        }
    }
fail:
    return err;
}

/* ---- edges ----------------------------------------------------------------------------------- */

typedef struct {
    const rp_plan *plan;
    uint32_t needed;
} finding;

static rp_err find_edge(void *context, const rp_plan_edge *needed) {
    finding *f = context;
    const rp_plan *plan = f->plan;
    uint32_t count;
    uint32_t found = 0;
    const uint32_t *edge = rp_plan_node_edges(plan, needed->to, &count);
    for (uint32_t i = 0; i < count; i++) {
        const rp_plan_edge *e = &plan->edge[edge[i]];
        found += e->from == needed->from && e->to == needed->to && e->stage == needed->stage &&
                 e->carries == needed->carries;
    }
    f->needed++;
    return found == 1 ? RP_OK
                      : rp_fail(RP_ERR_USAGE,
                                "%s: edges: expected one edge with the %s of stage %u from %s to "
                                "%s, found %u",
                                plan->source, rp_carries_name(needed->carries), needed->stage,
                                rp_plan_node_name(plan, needed->from),
                                rp_plan_node_name(plan, needed->to), found);
}

static rp_err check_edges(const rp_plan *plan) {
    finding f = {.plan = plan};
    const rp_plan_edge_visitor visitor = {find_edge, &f};
    rp_err err;
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        const char *to = rp_plan_node_name(plan, edge->to);
        if (edge->window < 1) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: edges[%u].window: to %s: expected a window of 1 or more",
                           plan->source, e, to);
        }
    }
    RP_TRY(rp_plan_check_codecs(plan));
    RP_TRY(rp_plan_needed_edges(plan, &visitor));
    if (f.needed != plan->edge_count) {
        return rp_fail(RP_ERR_USAGE, "%s: edges: found %u edges, expected the %u that are needed",
                       plan->source, plan->edge_count, f.needed);
    }
fail:
    return err;
}

/* With sizes, an op may take its samples from many parcels; `facts` are of the plan's replay. */
static rp_err check_pieces(const rp_plan *plan, const rp_sched_facts *facts) {
    for (uint32_t e = 0; rp_plan_has_sizes(plan) && e < plan->edge_count; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        uint32_t pieces = 0;
        for (uint32_t other = 0; other < plan->edge_count; other++) {
            const rp_plan_edge *own = &plan->edge[other];
            const bool same = own->to == edge->to && own->stage == edge->stage;
            pieces += same && own->carries == edge->carries ? facts->edge[other].taken_max : 0;
        }
        if (pieces > RP_PLAN_PIECES_MAX) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: stages[%u]: an op needs %ss from %u parcels of the stage %s, but "
                           "at most %d are possible; choose sizes that differ less",
                           plan->source, edge->stage, rp_carries_name(edge->carries), pieces,
                           edge->carries == RP_CARRIES_GRADIENT ? "above" : "below",
                           RP_PLAN_PIECES_MAX);
        }
    }
    return RP_OK;
}

/* ---- the whole plan -------------------------------------------------------------------------- */

rp_err rp_plan_check(const rp_plan *plan, const rp_model *model) {
    rp_arena arena;
    rp_sched_facts facts;
    rp_err err;
    rp_arena_init(&arena, "check of a plan", 0);
    RP_TRY(check_sizes(plan));
    RP_TRY(check_micro(plan));
    RP_TRY(check_recompute(plan));
    RP_TRY(check_nodes(plan));
    RP_TRY(check_holds(plan));
    RP_TRY(check_edges(plan));
    if (model) {
        RP_TRY(check_model(&arena, plan, model));
        RP_TRY(rp_plan_check_ties(&arena, plan, model));
    }
    const rp_plan walked = rp_plan_shorten(plan);
    RP_TRY(rp_plan_replay(&arena, &walked, NULL, true, NULL, RP_NO_NODE, &facts));
    RP_TRY(check_pieces(plan, &facts));
fail:
    rp_arena_finish(&arena);
    return err;
}

/* ---- equality -------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_texts(const char *const *a, uint32_t a_count, const char *const *b,
                       uint32_t b_count) {
    bool same = a_count == b_count;
    for (uint32_t i = 0; same && i < a_count; i++) {
        same = same_text(a[i], b[i]);
    }
    return same;
}

static bool same_method(const rp_method *a, const rp_method *b) {
    char first[RP_METHOD_TEXT_BYTES];
    char second[RP_METHOD_TEXT_BYTES];
    rp_method_text(a, first, sizeof first);
    rp_method_text(b, second, sizeof second);
    return strcmp(first, second) == 0 && a->chunks == b->chunks && a->alpha == b->alpha;
}

static bool same_measured(const rp_plan_measured *a, const rp_plan_measured *b) {
    return same_text(a->board, b->board) && a->slots == b->slots &&
           a->weight_copies == b->weight_copies && a->device_bytes == b->device_bytes &&
           a->weight_bytes == b->weight_bytes && a->resident_bytes == b->resident_bytes &&
           a->has_seconds == b->has_seconds &&
           (!a->has_seconds || (a->forward_s == b->forward_s && a->backward_s == b->backward_s));
}

static bool same_stage(const rp_plan_stage *a, const rp_plan_stage *b) {
    return same_texts(a->layer, a->layer_count, b->layer, b->layer_count) &&
           a->micro_forward == b->micro_forward && a->micro_backward == b->micro_backward &&
           a->as_forward == b->as_forward && a->recompute == b->recompute &&
           same_texts(a->group, a->group_count, b->group, b->group_count) &&
           same_text(a->offload, b->offload) && a->leave_tensors == b->leave_tensors &&
           same_measured(&a->measured, &b->measured);
}

static bool same_node(const rp_plan_node *a, const rp_plan_node *b) {
    return same_text(a->name, b->name) && same_text(a->executor, b->executor) &&
           a->memory_bytes == b->memory_bytes && a->dials == b->dials &&
           a->hold_first == b->hold_first && a->hold_count == b->hold_count;
}

static bool same_hold(const rp_plan_hold *a, const rp_plan_hold *b) {
    return a->node == b->node && a->stage == b->stage && a->role == b->role &&
           a->share[0] == b->share[0] && a->share[1] == b->share[1] && a->slots == b->slots;
}

static bool same_edge(const rp_plan_edge *a, const rp_plan_edge *b) {
    return a->from == b->from && a->to == b->to && a->stage == b->stage &&
           a->carries == b->carries && a->window == b->window && a->codec == b->codec &&
           same_texts(a->tensor, a->tensor_count, b->tensor, b->tensor_count);
}

bool rp_plan_same(const rp_plan *a, const rp_plan *b) {
    bool same = same_text(a->model, b->model) && a->model_digest == b->model_digest &&
                same_method(&a->method, &b->method) && a->batch == b->batch &&
                a->micro == b->micro && a->epoch_samples == b->epoch_samples &&
                a->step_first == b->step_first && a->steps == b->steps &&
                a->node_count == b->node_count && a->hold_count == b->hold_count &&
                a->stage_count == b->stage_count && a->edge_count == b->edge_count &&
                a->predicted_step_s == b->predicted_step_s &&
                same_text(a->predicted_limits, b->predicted_limits) &&
                a->has_advance == b->has_advance && a->advance_tried == b->advance_tried &&
                a->agent_program_bytes == b->agent_program_bytes && a->tie_count == b->tie_count;
    for (uint32_t i = 0; same && i < a->tie_count; i++) {
        same = a->tie[i].first == b->tie[i].first && a->tie[i].second == b->tie[i].second;
    }
    for (uint32_t i = 0; same && a->has_advance && i < a->advance_tried; i++) {
        same = a->advance_busy[i] == b->advance_busy[i];
    }
    for (uint32_t i = 0; same && i < a->node_count; i++) {
        same = same_node(&a->node[i], &b->node[i]);
    }
    for (uint32_t i = 0; same && i < a->hold_count; i++) {
        same = same_hold(&a->hold[i], &b->hold[i]);
    }
    for (uint32_t i = 0; same && i < a->stage_count; i++) {
        same = same_stage(&a->stage[i], &b->stage[i]);
    }
    for (uint32_t i = 0; same && i < a->edge_count; i++) {
        same = same_edge(&a->edge[i], &b->edge[i]);
    }
    return same;
}
