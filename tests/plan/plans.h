/* Plans for tests: today's topology, and stages spread over several nodes. */
#ifndef RP_TESTS_PLAN_PLANS_H
#define RP_TESTS_PLAN_PLANS_H

#include "expect.h"

#include "plan/plan.h"

typedef struct {
    const char *schedule; /* as in a run file */
    uint32_t boards, batch, micro;
    uint64_t epoch_samples, steps;
} plan_case;

static inline rp_method method_of(const char *schedule, uint32_t boards) {
    rp_arena arena;
    rp_node *root;
    rp_method method;
    char text[256];
    rp_arena_init(&arena, "test", 0);
    (void)snprintf(text, sizeof text, "schedule: %s", schedule);
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "test", &root));
    expect_ok(rp_method_parse(root, boards, &method));
    rp_arena_finish(&arena);
    return method;
}

static inline rp_err make_plan(rp_arena *arena, const plan_case *c, rp_plan **out) {
    const rp_method method = method_of(c->schedule, c->boards);
    const rp_cut cut = {.stage_count = c->boards * method.chunks};
    const rp_plan_options options = {.model_name = "none",
                                     .cut = &cut,
                                     .method = &method,
                                     .batch = c->batch,
                                     .micro = c->micro,
                                     .epoch_samples = c->epoch_samples,
                                     .steps = c->steps};
    return rp_plan_make(arena, &options, out);
}

/* A stage on `nodes` nodes, which take the samples up to share[0], share[1], .. (the last: 1). */
typedef struct {
    uint32_t nodes;
    double share[32];
    uint32_t micro;
    bool split; /* every share's backward is on a node of its own */
} spread_stage;

/* One step of a flushed schedule and a short one, stages spread as told. Not measured, not checked.
 */
static inline rp_plan *spread_plan(rp_arena *arena, const char *schedule, const spread_stage *stage,
                                   uint32_t stages, uint32_t batch) {
    const rp_cut cut = {.stage_count = stages};
    const rp_method method = method_of(schedule, stages);
    const rp_plan_options options = {.model_name = "none",
                                     .cut = &cut,
                                     .method = &method,
                                     .batch = batch,
                                     .micro = stage[0].micro,
                                     .epoch_samples = batch + batch / 2,
                                     .steps = 4};
    rp_plan *plan;
    uint32_t nodes = 0;
    expect_ok(rp_plan_make(arena, &options, &plan));
    for (uint32_t k = 0; k < stages; k++) {
        nodes += stage[k].nodes * (stage[k].split ? 2 : 1);
    }
    expect_ok(RP_ARENA_NEW(arena, nodes, &plan->node));
    expect_ok(RP_ARENA_NEW(arena, nodes, &plan->hold));
    plan->node_count = plan->hold_count = 0;
    for (uint32_t k = 0; k < stages; k++) {
        plan->stage[k].micro_forward = plan->stage[k].micro_backward = stage[k].micro;
        double first = 0;
        for (uint32_t i = 0; i < stage[k].nodes; i++) {
            const double end = i + 1 < stage[k].nodes ? stage[k].share[i] : 1;
            for (uint32_t half = 0; half < (stage[k].split ? 2u : 1u); half++) {
                const uint32_t node = plan->node_count++;
                char *name;
                expect_ok(rp_arena_printf(arena, &name, "s%u.%u%s", k, i, half ? "b" : ""));
                plan->node[node] = (rp_plan_node){
                    .name = name, .executor = "opencl", .hold_first = node, .hold_count = 1};
                plan->hold[plan->hold_count++] =
                    (rp_plan_hold){.node = node,
                                   .stage = k,
                                   .role = !stage[k].split ? RP_ROLE_BOTH
                                           : half          ? RP_ROLE_BACKWARD
                                                           : RP_ROLE_FORWARD,
                                   .share = {first, end}};
            }
            first = end;
        }
    }
    expect_ok(rp_plan_connect(arena, NULL, NULL, plan));
    return plan;
}

#endif
