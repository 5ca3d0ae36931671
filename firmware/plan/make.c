/* Makes a plan of the usual topology from a model and a cut. */
#include "plan/plan_own.h"
#include "sched/split.h"

static rp_err make_nodes(rp_arena *arena, const rp_plan_options *options, rp_plan *plan) {
    const uint32_t nodes = plan->node_count;
    const bool splits = plan->method.kind->splits;
    const uint32_t whole = plan->method.whole;
    const uint32_t chunks = splits ? 1 : plan->method.chunks;
    uint32_t stage = 0;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, nodes, &plan->node));
    RP_TRY(RP_ARENA_NEW(arena, plan->hold_count, &plan->hold));
    for (uint32_t k = 0; k < nodes; k++) {
        char *name;
        if (options->boards) {
            RP_TRY(rp_arena_string(arena, options->boards[k], &name));
        } else {
            RP_TRY(rp_arena_printf(arena, &name, "board%u", k));
        }
        plan->node[k] =
            (rp_plan_node){.name = name,
                           .executor = "opencl",
                           .memory_bytes = options->memory_bytes ? options->memory_bytes[k] : 0,
                           .hold_first = k * chunks,
                           .hold_count = chunks};
        for (uint32_t c = 0; c < chunks; c++) {
            plan->hold[k * chunks + c] =
                (rp_plan_hold){.node = k, .stage = k + c * nodes, .share = {0, 1}};
        }
        if (options->group) {
            rp_plan_hold *hold = &plan->hold[k];
            stage += k == options->group[stage + 1];
            const bool first = k == options->group[stage];
            hold->stage = stage;
            hold->share[0] = first ? 0 : options->share[k - 1];
            hold->share[1] = k + 1 == options->group[stage + 1] ? 1 : options->share[k];
        }
        if (splits) { /* forwards in the order of stages, then backwards in reverse order */
            plan->hold[k].stage = rp_sched_split_stage(plan->stage_count, whole, k);
            plan->hold[k].role = rp_sched_split_role(plan->stage_count, whole, k);
        }
    }
fail:
    return err;
}

/* For a schedule with sizes. */
static rp_err take_sizes(const rp_plan_options *options, uint32_t k, rp_plan_stage *out) {
    if (!options->method->kind->sizes) {
        return RP_OK;
    }
    if (options->size) {
        out->micro_forward = options->size[k][0];
        out->micro_backward = options->size[k][1];
    }
    if (!options->model) {
        return RP_OK;
    }
    const rp_layer *layer = rp_cut_whole_layer(options->model, options->cut, k);
    out->as_forward = layer != NULL;
    return rp_plan_check_whole("plan", k, out, options->micro, layer);
}

static rp_err make_stages(rp_arena *arena, const rp_plan_options *options, rp_plan *plan) {
    const rp_cut *cut = options->cut;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, plan->stage_count, &plan->stage));
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        rp_plan_stage *stage = &plan->stage[k];
        *stage = (rp_plan_stage){
            .micro_forward = options->micro, .micro_backward = options->micro, .offload = "none"};
        stage->layer_count = options->model ? cut->first[k + 1] - cut->first[k] : 0;
        RP_TRY(RP_ARENA_NEW(arena, stage->layer_count + 1, &stage->layer));
        for (uint32_t i = 0; i < stage->layer_count; i++) {
            char *name;
            const char *of_model = options->model->layer[cut->first[k] + i].name;
            RP_TRY(rp_arena_string(arena, of_model, &name));
            stage->layer[i] = name;
        }
        RP_TRY(take_sizes(options, k, stage));
    }
fail:
    return err;
}

rp_err rp_plan_make(rp_arena *arena, const rp_plan_options *options, rp_plan **out) {
    const uint32_t stages = options->cut->stage_count;
    const uint32_t chunks = options->method->chunks;
    rp_plan *plan;
    char *name;
    rp_err err;
    RP_ASSERT(stages > 0 && chunks > 0);
    if (stages % chunks > 0) {
        return rp_fail(RP_ERR_USAGE, "plan: %u stages cannot be divided into %u for each board",
                       stages, chunks);
    }
    if (options->group && (chunks > 1 || options->method->kind->splits)) {
        return rp_fail(RP_ERR_USAGE, "plan: schedule %s does not let boards share a stage",
                       options->method->kind->name);
    }
    if (options->method->kind->splits && stages > RP_SPLIT_STAGES_MAX) {
        return rp_fail(RP_ERR_USAGE,
                       "plan: schedule %s has two nodes for each stage: expected 1 "
                       "to %d stages, found %u",
                       options->method->kind->name, RP_SPLIT_STAGES_MAX, stages);
    }
    if (options->method->split_count > 0 && options->method->split_count != stages) {
        return rp_fail(RP_ERR_USAGE, "plan: split: has %u entries for %u stages",
                       options->method->split_count, stages);
    }
    RP_TRY(RP_ARENA_NEW(arena, 1, &plan));
    RP_TRY(rp_arena_string(arena, options->model_name ? options->model_name : "", &name));
    *plan = (rp_plan){.source = "plan",
                      .model = name,
                      .model_digest = options->model ? rp_plan_model_digest(options->model) : 0,
                      .method = *options->method,
                      .batch = options->batch,
                      .micro = options->micro,
                      .epoch_samples = options->epoch_samples,
                      .step_first = options->step_first,
                      .fill_step = options->step_first,
                      .steps = options->steps,
                      .node_count = options->group ? options->group[stages]
                                                   : rp_method_boards(options->method, stages),
                      .stage_count = stages};
    const bool as_nodes = options->group || options->method->kind->splits;
    plan->hold_count = as_nodes ? plan->node_count : stages;
    RP_TRY(make_nodes(arena, options, plan));
    RP_TRY(make_stages(arena, options, plan));
    RP_TRY(rp_plan_connect(arena, options->model, options->model ? options->cut : NULL, plan));
    if (options->codec) {
        rp_plan_set_codecs(plan, options->model, options->codec);
    }
    if (options->input_codec != RP_CODEC_F32) {
        rp_plan_set_input_codec(plan, options->model, options->input_codec);
    }
    RP_TRY(rp_plan_measure(plan));
    *out = plan;
fail:
    return err;
}
