#include "planning/planfile.h"

#include "nn/ties.h"
#include "planning/fit_memory.h"
#include "run/setup.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* The roster says which boards dial, even if an older plan says otherwise. */
static void take_dials(rp_plan *plan, const rp_runfile *run) {
    for (uint32_t k = 0; k < plan->node_count; k++) {
        plan->node[k].dials = !run->local && run->roster[k].dials;
    }
}

static rp_err check_ports(const rp_plan *plan, const rp_runfile *run) RP_MUST_CHECK;
static rp_err check_clip(const rp_plan *plan, const rp_runfile *run) RP_MUST_CHECK;

/* A record of a microbatch has no values of tensors of other stages. */
rp_err rp_planfile_check_ties(const rp_runfile *run, const rp_method *method, const rp_cut *cut) {
    rp_err err;
    RP_TRY(rp_method_fit_ties(method, &run->optim, run->model, cut));
    if (run->safety.verify > 0 && !method->kind->flushed && rp_ties_cross(run->model, cut)) {
        return rp_fail(RP_ERR_USAGE,
                       "ring.verify: with schedule %s it cannot recompute microbatches of stages "
                       "that share a tensor; use a schedule that flushes, or a cut with these "
                       "layers on one board",
                       method->kind->name);
    }
fail:
    return err;
}

/* ---- making ---------------------------------------------------------------------------------- */

rp_err rp_planfile_make(rp_arena *arena, const rp_planfile *chosen, rp_plan **out) {
    const rp_runfile *run = chosen->run;
    uint64_t *memory;
    rp_plan *plan;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, run->boards, &memory));
    for (uint32_t k = 0; k < run->boards; k++) {
        memory[k] = rp_runfile_memory_of(run, k);
    }
    const rp_plan_options options = {.model_name = run->model_name,
                                     .model = run->model,
                                     .cut = chosen->cut,
                                     .method = &run->method,
                                     .boards = chosen->board,
                                     .group = chosen->group,
                                     .share = chosen->share,
                                     .memory_bytes = memory,
                                     .batch = run->batch,
                                     .micro = run->micro,
                                     .size = run->sizes.at,
                                     .epoch_samples = run->data.count[RP_SPLIT_TRAIN],
                                     .steps = run->steps,
                                     .codec = run->codec,
                                     .input_codec = run->input_codec};
    RP_TRY(rp_plan_make(arena, &options, &plan));
    take_dials(plan, run);
    RP_TRY(rp_plan_check_training(plan, run->model));
    RP_TRY(rp_planfile_check_ties(run, &run->method, chosen->cut));
    if (chosen->group) {
        RP_TRY(rp_plan_check(plan, run->model));
        RP_TRY(check_clip(plan, run));
        RP_TRY(check_ports(plan, run));
    }
    RP_TRY(rp_fit_memory(arena, run, chosen->cut, chosen->profile, plan));
    plan->has_advance = chosen->advance != NULL;
    plan->advance_tried = chosen->advance ? chosen->advance->tried : 0;
    for (uint32_t a = 0; a < plan->advance_tried; a++) {
        plan->advance_busy[a] = chosen->advance->busy[a];
    }
    *out = plan;
fail:
    return err;
}

/* The first node that updates the stage. */
static uint32_t first_holder(const rp_plan *plan, uint32_t stage) {
    uint32_t h = 0;
    while (plan->hold[h].stage != stage || plan->hold[h].role == RP_ROLE_FORWARD) {
        h++;
    }
    return plan->hold[h].node;
}

static void keep_largest(uint64_t *most, uint64_t value) {
    *most = value > *most ? value : *most;
}

void rp_planfile_note_board(rp_plan *plan, uint32_t node, const rp_planfile_board *board) {
    const rp_plan_node *at = &plan->node[node];
    for (uint32_t h = at->hold_first; h < at->hold_first + at->hold_count; h++) {
        const uint32_t stage = plan->hold[h].stage;
        rp_plan_measured *to = &plan->stage[stage].measured;
        const bool first = first_holder(plan, stage) == node;
        if (plan->hold[h].role == RP_ROLE_FORWARD) {
            to->forward_bytes = board->device_bytes;
            continue;
        }
        if (first) {
            to->slots = to->weight_copies = 0;
            to->device_bytes = to->weight_bytes = to->resident_bytes = 0;
        }
        if (first || board->device_bytes > to->device_bytes) {
            to->board = board->name;
        }
        keep_largest(&to->slots, board->slots);
        keep_largest(&to->weight_copies, board->weight_copies);
        keep_largest(&to->device_bytes, board->device_bytes);
        keep_largest(&to->weight_bytes, board->weight_bytes);
        keep_largest(&to->resident_bytes, board->resident_bytes);
    }
}

void rp_planfile_note_seconds(rp_plan *plan, const double *layer_seconds) {
    uint32_t layer = 0;
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        rp_plan_measured *to = &plan->stage[k].measured;
        to->has_seconds = true;
        to->forward_s = to->backward_s = 0;
        for (uint32_t i = 0; i < plan->stage[k].layer_count; i++, layer++) {
            to->forward_s += layer_seconds[2 * (size_t)layer];
            to->backward_s += layer_seconds[2 * (size_t)layer + 1];
        }
    }
}

/* ---- a plan that the user gives -------------------------------------------------------------- */

static rp_err check_number(const rp_plan *plan, const char *key, uint64_t is, uint64_t expected,
                           const char *whose) {
    return is == expected ? RP_OK
                          : rp_fail(RP_ERR_USAGE, "%s: %s: is %llu, %s %llu", plan->source, key,
                                    (unsigned long long)is, whose, (unsigned long long)expected);
}

static rp_err check_method(const rp_plan *plan, const rp_runfile *run) {
    rp_method own = run->method;
    char is[RP_METHOD_TEXT_BYTES];
    char expected[RP_METHOD_TEXT_BYTES];
    if (own.advance_auto) {
        rp_method_set_advance(&own, plan->stage_count, plan->method.advance);
    }
    if (own.ahead_measured) {
        own.ahead_count = plan->method.ahead_count;
        memcpy(own.ahead, plan->method.ahead, sizeof own.ahead);
    }
    rp_method_text(&plan->method, is, sizeof is);
    rp_method_text(&own, expected, sizeof expected);
    if (plan->method.kind != own.kind) {
        return rp_fail(RP_ERR_USAGE, "%s: schedule: is %s, the run file's is %s", plan->source,
                       plan->method.kind->name, own.kind->name);
    }
    if (plan->method.chunks != own.chunks) {
        return check_number(plan, "method.chunks", plan->method.chunks, own.chunks,
                            "the run file says");
    }
    return strcmp(is, expected) == 0
               ? RP_OK
               : rp_fail(RP_ERR_USAGE, "%s: method: is \"%s\", the run file's is \"%s\"",
                         plan->source, is, expected);
}

static rp_err check_boards(const rp_plan *plan, const rp_runfile *run, const char *executor) {
    for (uint32_t k = 0; k < plan->node_count; k++) {
        const rp_plan_node *node = &plan->node[k];
        char own[16];
        (void)snprintf(own, sizeof own, "%u", k);
        const char *name = run->local ? own : run->roster[k].name;
        if (strcmp(node->name, name) != 0) {
            return rp_fail(RP_ERR_USAGE, "%s: nodes[%u].name: is '%.60s', board %u is called '%s'",
                           plan->source, k, node->name, k, name);
        }
        if (strcmp(node->executor, "opencl") != 0 && strcmp(node->executor, executor) != 0) {
            return rp_fail(RP_ERR_USAGE, "%s: nodes[%u].executor: is '%.40s', the boards have %s",
                           plan->source, k, node->executor, executor);
        }
    }
    return RP_OK;
}

static uint32_t port_of(const char *endpoint) {
    const char *colon = strrchr(endpoint, ':');
    return colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
}

/* The last port that a board listens on: its own, two for data, and one more for each board after
 * the first that dials it. */
static uint32_t last_port(const rp_plan *plan, const rp_runfile *run, uint32_t board) {
    uint32_t node[RP_PLAN_NEIGHBOURS_MAX];
    const uint32_t count = rp_plan_neighbours(plan, board, node);
    uint32_t dialled = 0;
    for (uint32_t i = 0; i < count; i++) {
        dialled += !rp_plan_dials(plan, board, node[i]);
    }
    return port_of(run->roster[board].endpoint) + (dialled > 1 ? dialled + 1 : 2);
}

/* Two boards of a roster listen on the same machine. */
static bool are_on_one_host(const rp_runfile *run, uint32_t a, uint32_t b) {
    const char *one = run->roster[a].endpoint;
    const char *other = run->roster[b].endpoint;
    const size_t bytes = (size_t)(strrchr(one, ':') - one);
    return strncmp(one, other, bytes) == 0 && strrchr(other, ':') == other + bytes;
}

/* Boards that share a stage listen on more ports than the three of a row, which must be free. */
static rp_err check_ports(const rp_plan *plan, const rp_runfile *run) {
    for (uint32_t k = 0; !run->local && k < plan->node_count; k++) {
        if (run->roster[k].dials) {
            continue; /* it does not listen */
        }
        const uint32_t first = port_of(run->roster[k].endpoint);
        const uint32_t last = last_port(plan, run, k);
        if (last > UINT16_MAX) {
            return rp_fail(
                RP_ERR_USAGE,
                "%s: nodes[%u]: board %s at %s listens on ports up to %u with this plan, "
                "but the last port is %u",
                plan->source, k, run->roster[k].name, run->roster[k].endpoint, last, UINT16_MAX);
        }
        for (uint32_t other = 0; other < plan->node_count; other++) {
            const uint32_t its = port_of(run->roster[other].endpoint);
            if (other != k && !run->roster[other].dials && are_on_one_host(run, k, other) &&
                its >= first && its <= last) {
                return rp_fail(RP_ERR_USAGE,
                               "%s: nodes[%u]: board %s at %s listens on ports up to %u with this "
                               "plan, and board %s has one of them",
                               plan->source, k, run->roster[k].name, run->roster[k].endpoint, last,
                               run->roster[other].name);
            }
        }
    }
    return RP_OK;
}

/* Sizes by stage in the run file must be those of the plan. */
static rp_err check_sizes(const rp_plan *plan, const rp_runfile *run) {
    for (uint32_t k = 0; run->sizes.at && k < plan->stage_count; k++) {
        const rp_plan_stage *stage = &plan->stage[k];
        const uint32_t *own = k < run->stages ? run->sizes.at[k] : NULL;
        if (!own || stage->micro_forward != own[0] || stage->micro_backward != own[1]) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: stages[%u]: microbatches of %u samples forward and %u backward, "
                           "the run file's schedule.forward and backward say other sizes; drop "
                           "them, or drop --plan",
                           plan->source, k, stage->micro_forward, stage->micro_backward);
        }
    }
    return RP_OK;
}

/* A deadlock is an error of the file, because nothing has started yet. */
static rp_err check_order(const rp_plan *plan, const rp_model *model) {
    char text[400];
    const rp_err err = rp_plan_check(plan, model);
    if (err != RP_ERR_FAULT) {
        return err;
    }
    (void)snprintf(text, sizeof text, "%s", rp_err_message());
    return rp_fail(RP_ERR_USAGE, "%s: edges, windows: %s", plan->source, text);
}

/* Each board of a shared stage would compute the stage's norm itself. Different devices may round
 * it differently, and then their weights would diverge. */
static rp_err check_clip(const rp_plan *plan, const rp_runfile *run) {
    for (uint32_t h = 0; run->optim.clip_norm_stage > 0 && h < plan->hold_count; h++) {
        const rp_plan_hold *hold = &plan->hold[h];
        if (hold->share[0] > 0 || hold->share[1] < 1) {
            return rp_fail(
                RP_ERR_USAGE,
                "%s: stage %u is shared by several boards, and optimizer.clip_norm_stage "
                "is for stages on one board; expected optimizer.clip_norm",
                plan->source, hold->stage);
        }
    }
    return RP_OK;
}

/* Codecs in the run file must be those of the plan. */
static rp_err check_codecs(const rp_plan *plan, const rp_runfile *run) {
    const bool said_all = run->codec && !run->codec_auto && plan->stage_count <= run->stages;
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        const bool up = said_all && edge->carries == RP_CARRIES_ACTIVATION;
        const bool down = said_all && edge->carries == RP_CARRIES_GRADIENT;
        const bool no_bytes = edge->codec == RP_CODEC_UINT8 && run->inputs_why;
        const bool input = edge->carries == RP_CARRIES_INPUT && (!run->inputs_auto || no_bytes);
        const rp_codec said = up     ? run->codec[edge->stage - 1][0]
                              : down ? run->codec[edge->stage][1]
                                     : run->input_codec;
        if ((up || down || input) && edge->from != edge->to && edge->codec != said) {
            return rp_fail(RP_ERR_USAGE, "%s: edges[%u].codec: is %s, the run file's links.%s %s",
                           plan->source, e, rp_codec_name(edge->codec), input ? "inputs" : "codec",
                           rp_codec_name(said));
        }
    }
    return RP_OK;
}

rp_err rp_planfile_read(rp_arena *arena, const char *path, const rp_runfile *run,
                        const char *executor, rp_plan **out) {
    static const char said[] = "the run file says";
    rp_cut cut;
    rp_setup setup = rp_setup_of(run);
    rp_runfile own;
    rp_plan *plan;
    rp_err err;
    RP_TRY(rp_plan_read(arena, path, &plan));
    const uint32_t taken = rp_schedules_find(&run->schedules, &plan->method, plan->stage_count);
    if (run->schedule_auto && taken < run->schedules.count) { /* one of plan.schedules */
        rp_setup_take_schedule(&setup, run, taken);
        rp_setup_run(run, &setup, &own);
        run = &own;
    }
    if (strcmp(plan->model, run->model_name) != 0) {
        return rp_fail(RP_ERR_USAGE, "%s: model: is '%.60s', the run file's is '%s'", path,
                       plan->model, run->model_name);
    }
    RP_TRY(check_number(plan, "batch", plan->batch, run->batch, said));
    if (!run->micro_auto) {
        RP_TRY(check_number(plan, "microbatch", plan->micro, run->micro, said));
    }
    RP_TRY(check_number(plan, "epoch_samples", plan->epoch_samples, run->data.count[RP_SPLIT_TRAIN],
                        "the data set has"));
    RP_TRY(check_number(plan, "nodes", plan->node_count, run->boards, "the run has"));
    RP_TRY(check_number(plan, "step_first", plan->step_first, 0, "expected"));
    RP_TRY(check_method(plan, run));
    RP_TRY(check_boards(plan, run, executor));
    take_dials(plan, run);
    RP_TRY(check_order(plan, run->model));
    RP_TRY(check_sizes(plan, run));
    RP_TRY(rp_plan_check_training(plan, run->model));
    RP_TRY(check_codecs(plan, run));
    RP_TRY(check_clip(plan, run));
    RP_TRY(check_ports(plan, run));
    rp_plan_note_bytes(plan, run->model);
    RP_TRY(rp_plan_cut(arena, plan, run->model, &cut));
    RP_TRY(rp_planfile_check_ties(run, &plan->method, &cut));
    RP_TRY(rp_fit_memory_note(run, &cut, plan));
    if (plan->steps != run->steps) {
        rp_plan_set_steps(plan, run->steps);
        RP_TRY(check_order(plan, run->model));
    }
    *out = plan;
fail:
    return err;
}
