/* Stages that share tensors: the pairs, the edges and the transfers that they need. */
#include "plan/plans.h"

#include "nn/model.h"

static const char text[] = "input: [4]\nlayers:\n"
                           "  - {name: a, kind: dense, out: 4}\n"
                           "  - {name: b, kind: dense, out: 4}\n"
                           "  - {name: c, kind: dense, out: 4, names: {weight: a.weight}}\n"
                           "  - {name: d, kind: dense, out: 4, names: {weight: a.weight}}\n";

static rp_model *read_model(rp_arena *arena) {
    const rp_model_data data = {.sample = rp_shape_1(4), .classes = 4};
    rp_node *root;
    rp_model *model;
    expect_ok(rp_config_read_text(arena, text, strlen(text), "m.yaml", &root));
    expect_ok(rp_model_parse(arena, root, &data, &model));
    return model;
}

/* One layer a stage; with chunks, on half as many nodes. */
static rp_plan *plan_of(rp_arena *arena, const char *schedule, const rp_model *model) {
    static const uint32_t first[] = {0, 1, 2, 3, 4};
    const rp_cut cut = {.stage_count = 4, .first = first};
    const bool chunks = strstr(schedule, "chunks") != NULL;
    const rp_method method = method_of(schedule, chunks ? 2 : 4);
    const rp_plan_options options = {.model_name = "none",
                                     .model = model,
                                     .cut = &cut,
                                     .method = &method,
                                     .batch = 8,
                                     .micro = 2,
                                     .epoch_samples = 20,
                                     .steps = 5};
    rp_plan *plan;
    expect_ok(rp_plan_make(arena, &options, &plan));
    expect_ok(rp_plan_check(plan, model));
    return plan;
}

static uint32_t count_edges(const rp_plan *plan, rp_carries carries, uint32_t from, uint32_t to) {
    uint32_t count = 0;
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        count += edge->carries == carries && edge->from == from && edge->to == to;
    }
    return count;
}

/* Transfers of tied tensors among those of an op. */
static uint32_t count_tied(const rp_plan *plan, uint32_t node, const rp_op *op, bool send) {
    rp_transfer t[32];
    const uint32_t all = rp_plan_transfers(plan, node, op, 0, t);
    uint32_t count = 0;
    for (uint32_t i = 0; i < all; i++) {
        const rp_carries carries = plan->edge[t[i].edge].carries;
        const bool tied = carries == RP_CARRIES_TIED_GRADIENT || carries == RP_CARRIES_TIED_WEIGHT;
        count += tied && t[i].send == send;
    }
    return count;
}

/* With a flush all stages with a use send their gradients to each other, once a step. */
static void with_a_flush(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    const rp_model *model = read_model(&arena);
    const rp_plan *plan = plan_of(&arena, "1f1b", model);
    static const uint32_t users[] = {0, 2, 3};
    assert_int_equal(plan->tie_count, 3);
    assert_int_equal(plan->tie[2].first, 2);
    assert_int_equal(plan->tie[2].second, 3);
    for (uint32_t a = 0; a < 3; a++) {
        for (uint32_t b = 0; b < 3; b++) {
            assert_int_equal(count_edges(plan, RP_CARRIES_TIED_GRADIENT, users[a], users[b]),
                             a != b);
        }
        const rp_op update = {.kind = RP_OP_UPDATE, .stage = users[a], .samples = {0, 8}};
        const rp_op forward = {.kind = RP_OP_FORWARD, .stage = users[a], .samples = {0, 2}};
        assert_int_equal(count_tied(plan, users[a], &update, true), 2);
        assert_int_equal(count_tied(plan, users[a], &update, false), 2);
        assert_int_equal(count_tied(plan, users[a], &forward, false), 0);
    }
    assert_int_equal(count_edges(plan, RP_CARRIES_TIED_GRADIENT, 1, 0), 0);
    assert_int_equal(count_edges(plan, RP_CARRIES_TIED_WEIGHT, 0, 3), 0);
    rp_arena_finish(&arena);
}

/* A node with several stages exchanges all rows before its first update. */
static void with_chunks(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    const rp_model *model = read_model(&arena);
    const rp_plan *plan = plan_of(&arena, "{kind: interleaved-1f1b, chunks: 2}", model);
    const rp_op first = {.kind = RP_OP_UPDATE, .stage = 0, .samples = {0, 8}};
    const rp_op second = {.kind = RP_OP_UPDATE, .stage = 2, .samples = {0, 8}};
    assert_int_equal(plan->node_count, 2);
    /* stages 0 and 2 are on node 0, which also sends their rows to itself */
    assert_int_equal(count_edges(plan, RP_CARRIES_TIED_GRADIENT, 0, 0), 2);
    assert_int_equal(count_edges(plan, RP_CARRIES_TIED_GRADIENT, 0, 1), 2);
    assert_int_equal(count_edges(plan, RP_CARRIES_TIED_GRADIENT, 1, 0), 1);
    assert_int_equal(count_tied(plan, 0, &first, true), 4);
    assert_int_equal(count_tied(plan, 0, &first, false), 3);
    assert_int_equal(count_tied(plan, 0, &second, true), 0);
    rp_arena_finish(&arena);
}

/* Without a flush gradients go to the owner, and values of each forward come from it. */
static void without_a_flush(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    const rp_model *model = read_model(&arena);
    const rp_plan *plan = plan_of(&arena, "pipedream", model);
    assert_int_equal(plan->tie_count, 2);
    for (uint32_t k = 2; k < 4; k++) {
        assert_int_equal(plan->tie[k - 2].first, 0);
        assert_int_equal(plan->tie[k - 2].second, k);
        assert_int_equal(count_edges(plan, RP_CARRIES_TIED_GRADIENT, k, 0), 1);
        assert_int_equal(count_edges(plan, RP_CARRIES_TIED_GRADIENT, 0, k), 0);
        assert_int_equal(count_edges(plan, RP_CARRIES_TIED_WEIGHT, 0, k), 1);
        const rp_op forward = {.kind = RP_OP_FORWARD, .stage = k, .samples = {0, 2}};
        assert_int_equal(count_tied(plan, k, &forward, false), 1);
    }
    const rp_op forward = {.kind = RP_OP_FORWARD, .samples = {2, 2}, .micro = 1};
    const rp_op update = {.kind = RP_OP_UPDATE, .samples = {0, 8}};
    assert_int_equal(count_tied(plan, 0, &forward, true), 2);
    assert_int_equal(count_tied(plan, 0, &update, false), 2);
    assert_int_equal(count_tied(plan, 0, &update, true), 0);
    rp_arena_finish(&arena);
}

static void the_text_has_the_pairs(void **state) {
    (void)state;
    rp_arena arena;
    rp_plan *again;
    char *written;
    rp_arena_init(&arena, "test", 0);
    const rp_model *model = read_model(&arena);
    rp_plan *plan = plan_of(&arena, "gpipe", model);
    expect_ok(rp_plan_text(&arena, plan, &written));
    expect_ok(rp_plan_parse(&arena, written, strlen(written), "p.json", &again));
    assert_true(rp_plan_same(plan, again));
    expect_ok(rp_plan_check(again, model));
    /* a plan with other pairs is not of this model */
    again->tie_count = 0;
    assert_int_equal(rp_plan_check(again, model), RP_ERR_USAGE);
    char *wrong = strstr(written, "\"ties\"");
    assert_non_null(wrong);
    char *pair = strchr(wrong, '0');
    *pair = '3'; /* [3, 2] */
    assert_int_equal(rp_plan_parse(&arena, written, strlen(written), "p.json", &again),
                     RP_ERR_FORMAT);
    assert_non_null(strstr(rp_err_message(), "ties: entry 0: expected two stages"));
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_a_flush),
        cmocka_unit_test(with_chunks),
        cmocka_unit_test(without_a_flush),
        cmocka_unit_test(the_text_has_the_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
