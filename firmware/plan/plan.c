#include "plan/plan_own.h"

#include <string.h>

#include "sched/split.h"

static const char *const carries_names[RP_CARRIES] = {"input",    "label",           "activation",
                                                      "gradient", "weight_gradient", "stash",
                                                      "weight",   "tied_gradient",   "tied_weight"};
static const char *const role_names[RP_ROLES] = {"both", "forward", "backward", "average"};

const char *rp_carries_name(rp_carries carries) {
    RP_ASSERT((unsigned)carries < RP_CARRIES);
    return carries_names[carries];
}

const char *rp_role_name(rp_role role) {
    RP_ASSERT((unsigned)role < RP_ROLES);
    return role_names[role];
}

/* ---- reading --------------------------------------------------------------------------------- */

uint32_t rp_plan_find_node(const rp_plan *plan, const char *name) {
    uint32_t node = 0;
    while (node < plan->node_count && strcmp(plan->node[node].name, name) != 0) {
        node++;
    }
    return node;
}

const char *rp_plan_node_name(const rp_plan *plan, uint32_t node) {
    return node < plan->node_count ? plan->node[node].name : "host";
}

const rp_plan_hold *rp_plan_find_hold(const rp_plan *plan, uint32_t node, uint32_t stage) {
    if (node >= plan->node_count) {
        return NULL;
    }
    const rp_plan_node *at = &plan->node[node];
    for (uint32_t h = at->hold_first; h < at->hold_first + at->hold_count; h++) {
        if (plan->hold[h].stage == stage) {
            return &plan->hold[h];
        }
    }
    return NULL;
}

const uint32_t *rp_plan_node_edges(const rp_plan *plan, uint32_t node, uint32_t *count) {
    const uint32_t at = node < plan->node_count ? node : plan->node_count;
    *count = plan->node_edge_first[at + 1] - plan->node_edge_first[at];
    return plan->node_edge + plan->node_edge_first[at];
}

uint32_t rp_plan_step_samples(const rp_plan *plan, uint64_t step) {
    const rp_sched_shape shape = {.batch = plan->batch, .epoch_samples = plan->epoch_samples};
    return rp_sched_step_samples(&shape, step);
}

bool rp_plan_has_sizes(const rp_plan *plan) {
    return plan->method.kind->sizes;
}

bool rp_plan_takes_parts(const rp_plan *plan, uint32_t stage) {
    return rp_plan_has_sizes(plan) && !plan->stage[stage].as_forward;
}

rp_err rp_plan_sizes(rp_arena *arena, const rp_plan *plan, const uint32_t (**out)[2]) {
    uint32_t(*size)[2];
    rp_err err;
    *out = NULL;
    if (!rp_plan_has_sizes(plan)) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, plan->stage_count, &size));
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        const rp_plan_stage *stage = &plan->stage[k];
        size[k][0] = stage->micro_forward;
        size[k][1] = stage->as_forward ? 0 : stage->micro_backward;
    }
    *out = (const uint32_t(*)[2])size;
fail:
    return err;
}

rp_err rp_plan_cut(rp_arena *arena, const rp_plan *plan, const rp_model *model, rp_cut *out) {
    uint32_t layer = 0;
    uint32_t *first;
    rp_err err;
    if (plan->stage_count > RP_CUT_STAGES_MAX) {
        return rp_fail(RP_ERR_USAGE, "%s: stages: %u stages, expected at most %d", plan->source,
                       plan->stage_count, RP_CUT_STAGES_MAX);
    }
    RP_TRY(RP_ARENA_NEW(arena, (size_t)plan->stage_count + 1, &first));
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        const rp_plan_stage *stage = &plan->stage[k];
        first[k] = layer;
        for (uint32_t i = 0; i < stage->layer_count; i++, layer++) {
            const char *name = layer < model->layer_count ? model->layer[layer].name : "none";
            if (strcmp(stage->layer[i], name) != 0) {
                return rp_fail(RP_ERR_USAGE,
                               "%s: stages[%u].layers: layer %u is '%.60s', but in the model '%s'",
                               plan->source, k, layer, stage->layer[i], name);
            }
        }
    }
    first[plan->stage_count] = layer;
    if (layer != model->layer_count) {
        return rp_fail(RP_ERR_USAGE, "%s: stages: have %u layers, but the model has %u",
                       plan->source, layer, model->layer_count);
    }
    *out = (rp_cut){.stage_count = plan->stage_count, .first = first};
    RP_TRY(rp_cut_check(model, out));
fail:
    return err;
}

/* FNV-1a, as for the names of random streams. */
static uint64_t mix_bytes(uint64_t digest, const void *bytes, size_t count) {
    const uint8_t *byte = bytes;
    for (size_t i = 0; i < count; i++) {
        digest = (digest ^ byte[i]) * UINT64_C(0x100000001b3);
    }
    return digest;
}

static uint64_t mix_text(uint64_t digest, const char *text) {
    return mix_bytes(digest, text, strlen(text) + 1);
}

static uint64_t mix_shape(uint64_t digest, const rp_shape *shape) {
    for (uint32_t i = 0; i <= shape->dims; i++) { /* the number of dimensions, then each of them */
        const uint32_t value = i == 0 ? shape->dims : shape->dim[i - 1];
        const uint8_t bytes[] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                                 (uint8_t)(value >> 24)};
        digest = mix_bytes(digest, bytes, sizeof bytes);
    }
    return digest;
}

static uint64_t mix_u64(uint64_t digest, uint64_t value) {
    uint8_t bytes[8];
    for (uint32_t i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(value >> 8 * i);
    }
    return mix_bytes(digest, bytes, sizeof bytes);
}

uint64_t rp_plan_model_digest(const rp_model *model) {
    uint64_t digest = mix_shape(UINT64_C(0xcbf29ce484222325), &model->input);
    for (uint32_t i = 0; i < model->layer_count; i++) {
        digest = mix_text(digest, model->layer[i].name);
        digest = mix_text(digest, model->layer[i].kind->name);
        digest = mix_shape(digest, &model->plan[i].out);
        digest = model->layer[i].frozen ? mix_text(digest, "frozen") : digest;
    }
    for (uint32_t p = 0; p < model->param_count; p++) {
        digest = mix_text(digest, model->param[p].name);
        digest = mix_shape(digest, &model->param[p].shape);
    }
    for (uint32_t k = 0; k < model->view_count; k++) {
        digest = mix_u64(digest, model->view[k].time);
    }
    return digest;
}

uint64_t rp_plan_digest(const rp_plan *plan) {
    char method[512];
    uint64_t digest = mix_text(plan->model_digest, plan->model);
    rp_method_text(&plan->method, method, sizeof method);
    digest = mix_text(digest, method);
    digest = mix_u64(mix_u64(digest, plan->method.chunks), plan->batch);
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        const rp_plan_stage *stage = &plan->stage[k];
        digest = mix_u64(mix_u64(digest, stage->micro_forward), stage->layer_count);
        if (rp_plan_has_sizes(plan)) {
            digest = mix_u64(mix_u64(digest, stage->micro_backward), stage->as_forward);
        }
    }
    for (uint32_t h = 0; h < plan->hold_count; h++) {
        const rp_plan_hold *hold = &plan->hold[h];
        digest = mix_u64(mix_u64(mix_u64(digest, hold->node), hold->stage), hold->role);
        digest = mix_bytes(digest, hold->share, sizeof hold->share);
    }
    /* omitted without codecs, as in former versions */
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        if (edge->codec != RP_CODEC_F32) {
            digest = mix_u64(mix_u64(digest, edge->carries), edge->stage);
            digest = mix_text(digest, rp_codec_name(edge->codec));
        }
    }
    return digest;
}

/* ---- parts of a checkpoint ------------------------------------------------------------------- */

uint32_t rp_plan_parts(const rp_plan *plan) {
    return plan->method.kind->splits ? rp_method_boards(&plan->method, plan->stage_count)
                                     : plan->stage_count;
}

uint32_t rp_plan_part_of(const rp_plan *plan, uint32_t node) {
    const rp_plan_hold *hold = &plan->hold[plan->node[node].hold_first];
    return hold->role == RP_ROLE_FORWARD
               ? plan->stage_count + rp_sched_split_count(plan->method.whole, 0, hold->stage)
               : hold->stage;
}

bool rp_plan_saves(const rp_plan *plan, uint32_t node) {
    uint32_t first = 0;
    while (rp_plan_part_of(plan, first) != rp_plan_part_of(plan, node)) {
        first++;
    }
    return first == node;
}
