/* What boards train so far, and what they are told of a plan that says more. */
#include "plans.h"

static void expect_refusal(const rp_plan *plan, const char *node, const char *why) {
    expect_err(rp_plan_check_training(plan, NULL), RP_ERR_USAGE);
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
                                      {"pipefb", 2, 8, 2, 16, 4},
                                      {"{kind: interleaved-1f1b, chunks: 2}", 2, 8, 2, 16, 2}};
    rp_arena arena;
    rp_plan *plan;
    rp_arena_init(&arena, "test", 0);
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_ok(make_plan(&arena, &cases[i], &plan));
        expect_ok(rp_plan_check_training(plan, NULL));
    }
    rp_arena_finish(&arena);
}

/* Two nodes share the samples of stage 1: of layers that look at one sample. */
static const spread_stage shared[] = {{.nodes = 1, .micro = 2},
                                      {.nodes = 2, .share = {0.25}, .micro = 2}};

static void shares_are_trained(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_plan *plan = spread_plan(&arena, "gpipe", shared, 2, 8);
    expect_ok(rp_plan_measure(plan));
    expect_ok(rp_plan_check(plan, NULL));
    expect_ok(rp_plan_check_training(plan, NULL));
    plan->stage[1].micro_forward = plan->stage[1].micro_backward = 1;
    expect_refusal(plan, "stages[1].forward: is 1, but microbatch is 2",
                   "only umpipe allows others");
    rp_arena_finish(&arena);
}

static void batch_statistics_are_not_shared(void **state) {
    (void)state;
    static const char text[] = "input: [4]\nlayers:\n- {name: fc1, kind: dense, out: 4}\n"
                               "- {name: n, kind: batchnorm}\n"
                               "- {name: fc2, kind: dense, out: 3}\n";
    static const char *names[] = {"fc1", "n", "fc2"};
    const rp_model_data data = {.sample = rp_shape_1(4), .classes = 3};
    rp_arena arena;
    rp_node *root;
    rp_model *model;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "model", &root));
    expect_ok(rp_model_parse(&arena, root, &data, &model));
    rp_plan *plan = spread_plan(&arena, "gpipe", shared, 2, 8);
    expect_ok(rp_plan_measure(plan));
    plan->stage[0].layer = names;
    plan->stage[0].layer_count = 2;
    plan->stage[1].layer = &names[2];
    plan->stage[1].layer_count = 1;
    expect_ok(rp_plan_check_training(plan, model)); /* it is on the stage that nobody shares */
    plan->stage[0].layer_count = 1;
    plan->stage[1].layer = &names[1];
    plan->stage[1].layer_count = 2;
    expect_err(rp_plan_check_training(plan, model), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "layer 'n' has batch statistics"));
    rp_arena_finish(&arena);
}

/* Whoever can not be dialled dials; two of them are no neighbours. */
static void boards_may_only_dial(void **state) {
    (void)state;
    const plan_case row = {"1f1b", 3, 8, 2, 16, 2};
    rp_arena arena;
    rp_plan *plan;
    rp_arena_init(&arena, "test", 0);
    expect_ok(make_plan(&arena, &row, &plan));
    for (uint32_t k = 0; k + 1 < 3; k++) {
        assert_true(rp_plan_dials(plan, k, k + 1) && !rp_plan_dials(plan, k + 1, k));
    }
    plan->node[1].dials = true;
    expect_ok(rp_plan_check_training(plan, NULL));
    assert_true(rp_plan_dials(plan, 1, 0) && !rp_plan_dials(plan, 0, 1));
    assert_true(rp_plan_dials(plan, 1, 2) && !rp_plan_dials(plan, 2, 1));
    plan->node[2].dials = true;
    expect_refusal(plan, "nodes[1].dials: boards board1 and board2", "order the boards");
    plan->node[1].dials = false;
    plan->node[0].dials = true;
    expect_ok(rp_plan_check_training(plan, NULL));
    rp_arena_finish(&arena);
}

static void a_board_has_so_many_links(void **state) {
    (void)state;
    spread_stage many[] = {{.nodes = RP_PLAN_NEIGHBOURS_MAX, .micro = 1}, {.nodes = 2, .micro = 1}};
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    for (uint32_t i = 0; i + 1 < many[0].nodes; i++) {
        many[0].share[i] = (i + 1.0) / many[0].nodes;
    }
    many[1].share[0] = 0.5;
    const rp_plan *plan = spread_plan(&arena, "gpipe", many, 2, 32);
    expect_ok(rp_plan_check_training(plan, NULL)); /* 15 beside it and one behind */
    many[1].nodes = 1;
    many[1].micro = 1;
    many[0].nodes = RP_PLAN_NEIGHBOURS_MAX + 1;
    for (uint32_t i = 0; i + 1 < many[0].nodes; i++) {
        many[0].share[i] = (i + 1.0) / many[0].nodes;
    }
    plan = spread_plan(&arena, "gpipe", many, 2, 34);
    expect_refusal(plan, "s0.0 has edges with more than 16 other nodes", "links to at most 16");
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
    up[0]->window = most - 2; /* a gradient comes over the same link */
    expect_ok(rp_plan_check_training(plan, NULL));
    up[1]->window = 2;
    expect_refusal(plan, "window: with all edges of the same link, 4093 parcels",
                   "from board0 to node board1, but a link allows 4092");
    rp_arena_finish(&arena);
}

/* Stages 0 and 2 on one node, 1 and 3 on two others: no list of ops is about them. */
static void other_stages_than_the_schedules_are_refused(void **state) {
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
    expect_err(rp_plan_check(plan, NULL), RP_ERR_USAGE);
    rp_arena_finish(&arena);
}

/* Neighbours follow the edges, in whatever order the nodes hold the stages: stages 0, 1, 2 are on
 * nodes 1, 2, 0. */
static void neighbours_are_those_of_the_edges(void **state) {
    (void)state;
    const plan_case c = {"1f1b", 3, 8, 2, 16, 2};
    static const uint32_t stage_of[] = {2, 0, 1};
    static const uint32_t count[] = {1, 1, 2};
    static const uint32_t neighbour[][2] = {{2}, {2}, {0, 1}};
    rp_arena arena;
    rp_plan *plan;
    rp_arena_init(&arena, "test", 0);
    expect_ok(make_plan(&arena, &c, &plan));
    for (uint32_t k = 0; k < 3; k++) {
        plan->hold[plan->node[k].hold_first].stage = stage_of[k];
    }
    expect_ok(rp_plan_connect(&arena, NULL, NULL, plan));
    for (uint32_t k = 0; k < 3; k++) {
        uint32_t found[RP_PLAN_NEIGHBOURS_MAX];
        assert_int_equal(rp_plan_neighbours(plan, k, found), count[k]);
        assert_memory_equal(found, neighbour[k], count[k] * sizeof *found);
    }
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_trained),
        cmocka_unit_test(shares_are_trained),
        cmocka_unit_test(batch_statistics_are_not_shared),
        cmocka_unit_test(boards_may_only_dial),
        cmocka_unit_test(a_board_has_so_many_links),
        cmocka_unit_test(roles_apart_are_refused),
        cmocka_unit_test(windows_fit_into_a_link),
        cmocka_unit_test(other_stages_than_the_schedules_are_refused),
        cmocka_unit_test(neighbours_are_those_of_the_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
