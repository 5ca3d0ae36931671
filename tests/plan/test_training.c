/* What boards train so far, and what they are told of a plan that says more. */
#include "plans.h"

static void expect_refusal(const rp_plan *plan, const char *node, const char *why) {
    expect_err(rp_plan_check_training(plan), RP_ERR_USAGE);
    const char *text = rp_err_message();
    if (!strstr(text, node) || !strstr(text, why)) {
        fail_msg("expected '%s' and '%s' in '%s'", node, why, text);
    }
}

static void rows_are_trained(void **state) {
    (void)state;
    static const plan_case cases[] = {{"gpipe", 1, 8, 2, 16, 2},
                                      {"1f1b", 4, 8, 2, 16, 2},
                                      {"pipedream", 4, 8, 2, 16, 4},
                                      {"{kind: interleaved-1f1b, chunks: 2}", 2, 8, 2, 16, 2}};
    rp_arena arena;
    rp_plan *plan;
    rp_arena_init(&arena, "test", 0);
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_ok(make_plan(&arena, &cases[i], &plan));
        expect_ok(rp_plan_check_training(plan));
    }
    rp_arena_finish(&arena);
}

/* Two nodes share the samples of stage 1; a plan that holds together, which no board can train. */
static void shares_are_refused_in_one_message(void **state) {
    (void)state;
    static const spread_stage stage[] = {{.nodes = 1, .micro = 2},
                                         {.nodes = 2, .share = {0.25}, .micro = 2}};
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_plan *plan = spread_plan(&arena, "gpipe", stage, 2, 8);
    expect_ok(rp_plan_measure(plan));
    expect_ok(rp_plan_check(plan, NULL));
    expect_refusal(plan, "node s1.0 holds stage 1 for the samples [0, 0.25)",
                   "several boards can not train one stage together so far");
    rp_arena_finish(&arena);
}

static void roles_apart_are_refused(void **state) {
    (void)state;
    static const spread_stage stage[] = {{.nodes = 1, .micro = 2, .split = true}};
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    const rp_plan *plan = spread_plan(&arena, "gpipe", stage, 1, 8);
    expect_refusal(plan, "s0.0", "role forward");
    rp_arena_finish(&arena);
}

/* A link has a bound, and what shares it adds up. */
static void windows_fit_into_a_link(void **state) {
    (void)state;
    const plan_case c = {"{kind: interleaved-1f1b, chunks: 2}", 2, 8, 2, 16, 2};
    const uint32_t most = RP_PLAN_LINK_WINDOW_MAX - RP_PLAN_LINK_SLACK;
    rp_arena arena;
    rp_plan *plan;
    rp_arena_init(&arena, "test", 0);
    expect_ok(make_plan(&arena, &c, &plan));
    rp_plan_edge *up[2]; /* two that come to board 1 from the same side */
    uint32_t found = 0;
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        plan->edge[e].window = 1;
        if (plan->edge[e].to == 1 && plan->edge[e].carries == RP_CARRIES_ACTIVATION) {
            assert_true(found < 2);
            up[found++] = &plan->edge[e];
        }
    }
    assert_int_equal(found, 2);
    up[0]->window = most - 1;
    expect_ok(rp_plan_check_training(plan));
    up[1]->window = 2;
    expect_refusal(plan, "window: with the edges beside it, 4093 parcels",
                   "from board0 to node board1, and a link takes 4092");
    rp_arena_finish(&arena);
}

/* Stages 0 and 2 on one node, 1 and 3 on two others: it would need two neighbours behind it. */
static void a_second_neighbour_is_refused(void **state) {
    (void)state;
    const plan_case c = {"{kind: interleaved-1f1b, chunks: 2}", 2, 8, 2, 16, 2};
    rp_arena arena;
    rp_plan *plan;
    rp_arena_init(&arena, "test", 0);
    expect_ok(make_plan(&arena, &c, &plan));
    rp_plan_node node[3] = {plan->node[0], plan->node[1], plan->node[1]};
    node[1].hold_count = node[2].hold_count = 1;
    node[2].hold_first++;
    node[2].name = "third";
    plan->node = node;
    plan->node_count = 3;
    plan->hold[node[2].hold_first].node = 2;
    expect_ok(rp_plan_connect(&arena, NULL, NULL, plan));
    expect_refusal(plan, "node board0 has edges to", "one neighbour on each");
    rp_arena_finish(&arena);
}

/* Neighbours follow the edges, in whatever order the nodes hold the stages. */
static void neighbours_are_those_of_the_edges(void **state) {
    (void)state;
    const plan_case c = {"1f1b", 3, 8, 2, 16, 2};
    static const uint32_t stage_of[] = {2, 0, 1};
    static const uint32_t before[] = {2, 1, 1};
    static const uint32_t behind[] = {0, 2, 0};
    rp_arena arena;
    rp_plan *plan;
    rp_arena_init(&arena, "test", 0);
    expect_ok(make_plan(&arena, &c, &plan));
    for (uint32_t k = 0; k < 3; k++) {
        plan->hold[plan->node[k].hold_first].stage = stage_of[k];
    }
    expect_ok(rp_plan_connect(&arena, NULL, NULL, plan));
    for (uint32_t k = 0; k < 3; k++) {
        assert_int_equal(rp_plan_neighbour(plan, k, RP_PLAN_BEFORE), before[k]);
        assert_int_equal(rp_plan_neighbour(plan, k, RP_PLAN_BEHIND), behind[k]);
    }
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_trained),
        cmocka_unit_test(shares_are_refused_in_one_message),
        cmocka_unit_test(roles_apart_are_refused),
        cmocka_unit_test(windows_fit_into_a_link),
        cmocka_unit_test(a_second_neighbour_is_refused),
        cmocka_unit_test(neighbours_are_those_of_the_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
