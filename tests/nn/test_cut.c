#include "expect.h"

#include <math.h>

#include "nn/cut.h"

static rp_arena arena;

static int setup(void **state) {
    (void)state;
    rp_arena_init(&arena, "test cut", 0);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rp_arena_finish(&arena);
    return 0;
}

/* data -> a -> b -> c -> sum(a, c) -> d(4) -> cat(d, data) */
static const char text[] = "input: [8]\n"
                           "layers:\n"
                           "  - {name: a, kind: dense, out: 16}\n"
                           "  - {name: b, kind: relu}\n"
                           "  - {name: c, kind: dense, out: 16}\n"
                           "  - {name: sum, kind: add, from: [a, c]}\n"
                           "  - {name: d, kind: dense, out: 4}\n"
                           "  - {name: cat, kind: concat, from: [d, data]}\n";

static rp_model *skip_model(void) {
    rp_node *root;
    rp_model *model;
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "m.yaml", &root));
    expect_ok(rp_model_parse(&arena, root, &(rp_model_data){0}, &model));
    return model;
}

/* The cut that a run file's `cut: list` gives. */
static rp_err parse_cut(const rp_model *model, const char *list, rp_cut *out) {
    char cut[256];
    rp_node *root;
    (void)snprintf(cut, sizeof cut, "cut: %s", list);
    expect_ok(rp_config_read_text(&arena, cut, strlen(cut), "run.yaml", &root));
    return rp_cut_parse(&arena, model, rp_node_find(root, "cut"), out);
}

static void names(void **state) {
    (void)state;
    const rp_model *model = skip_model();
    rp_cut cut;
    expect_ok(parse_cut(model, "[b, d]", &cut));
    assert_int_equal(cut.stage_count, 3);
    assert_int_equal(cut.first[0], 0);
    assert_int_equal(cut.first[1], 1);
    assert_int_equal(cut.first[2], 4);
    assert_int_equal(cut.first[3], 6);
    expect_ok(parse_cut(model, "[]", &cut));
    assert_int_equal(cut.stage_count, 1);
    assert_int_equal(cut.first[1], 6);
    expect_err(parse_cut(model, "[x]", &cut), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "'x'"));
    expect_err(parse_cut(model, "[a]", &cut), RP_ERR_USAGE);
    expect_err(parse_cut(model, "[d, d]", &cut), RP_ERR_USAGE);
    expect_err(parse_cut(model, "[d, b]", &cut), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "'b'"));
}

static void the_same(void **state) {
    (void)state;
    const rp_model *model = skip_model();
    const char *const lists[] = {"[b, d]", "[b, d]", "[b, cat]", "[b]", "[]"};
    rp_cut cut[5];
    for (size_t i = 0; i < 5; i++) {
        expect_ok(parse_cut(model, lists[i], &cut[i]));
        assert_int_equal(rp_cut_is_same(&cut[0], &cut[i]), i < 2);
    }
}

static void list(void **state) {
    (void)state;
    const rp_model *model = skip_model();
    const char *const lists[] = {"[c, sum]", "[c, q]", "[[c]]", "word"};
    for (size_t i = 0; i < 4; i++) {
        rp_cut cut;
        expect_err(parse_cut(model, lists[i], &cut), i == 0 ? RP_OK : RP_ERR_USAGE);
        if (i > 0) {
            assert_non_null(strstr(rp_err_message(), "run.yaml:1"));
        } else {
            assert_int_equal(cut.first[2], 3);
        }
    }
}

/* Tensors that skip stages pass through all of them, the model's input too. */
static void boundaries(void **state) {
    (void)state;
    const rp_model *model = skip_model();
    const struct {
        uint32_t first, count, producer[3];
        size_t floats;
    } want[] = {
        {1, 2, {RP_LAYER_DATA, 0}, 8 + 16},         {2, 3, {RP_LAYER_DATA, 0, 1}, 8 + 16 + 16},
        {3, 3, {RP_LAYER_DATA, 0, 2}, 8 + 16 + 16}, {4, 2, {RP_LAYER_DATA, 3}, 8 + 16},
        {5, 2, {RP_LAYER_DATA, 4}, 8 + 4},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        rp_boundary b;
        expect_ok(rp_cut_boundary_at(model, want[i].first, &b));
        assert_int_equal(b.count, want[i].count);
        assert_memory_equal(b.producer, want[i].producer, b.count * sizeof *b.producer);
        assert_int_equal(b.sample_bytes, want[i].floats * sizeof(float));
        rp_cut cut = {.stage_count = 2, .first = (const uint32_t[]){0, want[i].first, 6}};
        rp_boundary same;
        expect_ok(rp_cut_boundary(model, &cut, 1, &same));
        assert_memory_equal(&b, &same, sizeof b);
    }
}

static void too_many_tensors(void **state) {
    (void)state;
    char wide[4096] = "input: [2]\nlayers:\n";
    size_t used = strlen(wide);
    for (int i = 0; i < 9; i++) {
        used += (size_t)snprintf(wide + used, sizeof wide - used,
                                 "  - {name: r%d, kind: relu, from: data}\n", i);
    }
    snprintf(wide + used, sizeof wide - used,
             "  - {name: x, kind: add, from: [r0, r1, r2, r3, r4]}\n"
             "  - {name: y, kind: add, from: [x, r5, r6, r7, r8]}\n");
    rp_node *root;
    rp_model *model;
    rp_boundary b;
    rp_cut cut;
    expect_ok(rp_config_read_text(&arena, wide, strlen(wide), "m.yaml", &root));
    expect_ok(rp_model_parse(&arena, root, &(rp_model_data){0}, &model));
    expect_ok(rp_cut_boundary_at(model, 7, &b));
    assert_int_equal(b.count, 8);
    expect_err(rp_cut_boundary_at(model, 9, &b), RP_ERR_LIMIT);
    expect_err(parse_cut(model, "[x]", &cut), RP_ERR_LIMIT);
}

static void checks(void **state) {
    (void)state;
    const rp_model *model = skip_model();
    expect_ok(rp_cut_check(model, &(rp_cut){2, (const uint32_t[]){0, 3, 6}}));
    expect_err(rp_cut_check(model, &(rp_cut){2, (const uint32_t[]){0, 0, 6}}), RP_ERR_USAGE);
    expect_err(rp_cut_check(model, &(rp_cut){2, (const uint32_t[]){1, 3, 6}}), RP_ERR_USAGE);
    expect_err(rp_cut_check(model, &(rp_cut){2, (const uint32_t[]){0, 3, 5}}), RP_ERR_USAGE);
    expect_err(rp_cut_check(model, &(rp_cut){0, (const uint32_t[]){0}}), RP_ERR_USAGE);
}

/* ---- balance -------------------------------------------------------------------------------- */

static double cost_of(const double *layer, const double *boundary, uint32_t count,
                      const rp_cut *cut) {
    double largest = 0;
    for (uint32_t k = 0; k < cut->stage_count; k++) {
        double cost = 0;
        for (uint32_t i = cut->first[k]; i < cut->first[k + 1]; i++) {
            cost += layer[i];
        }
        if (boundary && cut->first[k] > 0) {
            cost += boundary[cut->first[k]];
        }
        if (boundary && cut->first[k + 1] < count) {
            cost += boundary[cut->first[k + 1]];
        }
        largest = fmax(largest, cost);
    }
    return largest;
}

/* All cuts, the earliest first. */
static void search_cuts(const double *layer, const double *boundary, uint32_t count, uint32_t stage,
                        rp_cut *cut, uint32_t *first, double *best) {
    if (stage == cut->stage_count) {
        *best = fmin(*best, cost_of(layer, boundary, count, cut));
        return;
    }
    for (uint32_t at = cut->first[stage - 1] + 1; at + cut->stage_count - stage <= count; at++) {
        first[stage] = at;
        search_cuts(layer, boundary, count, stage + 1, cut, first, best);
    }
}

static void balance_equals_brute_force(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(1, "balance");
    for (int trial = 0; trial < 500; trial++) {
        double layer[9];
        double boundary[9];
        uint32_t count = 1 + rp_rng_below(&rng, 9);
        uint32_t stages = 1 + rp_rng_below(&rng, count);
        for (uint32_t i = 0; i < count; i++) {
            layer[i] = rp_rng_below(&rng, 10);
            boundary[i] = rp_rng_below(&rng, 5);
        }
        const double *costs = trial % 3 ? boundary : NULL;
        rp_cut cut;
        expect_ok(rp_cut_balance(&arena, layer, costs, count, stages, &cut));
        assert_int_equal(cut.stage_count, stages);
        assert_int_equal(cut.first[0], 0);
        assert_int_equal(cut.first[stages], count);
        for (uint32_t k = 0; k < stages; k++) {
            assert_true(cut.first[k] < cut.first[k + 1]);
        }
        uint32_t at[10] = {0};
        rp_cut brute = {.stage_count = stages, .first = at};
        at[stages] = count;
        double best = INFINITY;
        search_cuts(layer, costs, count, 1, &brute, at, &best);
        expect_close(cost_of(layer, costs, count, &cut), best, 0, 0);
    }
}

static void balance_rules(void **state) {
    (void)state;
    rp_cut cut;
    const double even[] = {1, 1, 1, 1, 1, 1, 1, 1};
    expect_ok(rp_cut_balance(&arena, even, NULL, 8, 4, &cut));
    assert_int_equal(cut.first[1], 2);
    assert_int_equal(cut.first[2], 4);
    assert_int_equal(cut.first[3], 6);
    /* Of equal cuts the earliest. */
    const double heavy[] = {10, 1, 1, 1};
    expect_ok(rp_cut_balance(&arena, heavy, NULL, 4, 3, &cut));
    assert_int_equal(cut.first[1], 1);
    assert_int_equal(cut.first[2], 2);
    /* Where cutting is forbidden, nothing is cut. */
    const double forbidden[] = {0, INFINITY, 1, INFINITY};
    expect_ok(rp_cut_balance(&arena, even, forbidden, 4, 2, &cut));
    assert_int_equal(cut.first[1], 2);
    expect_err(rp_cut_balance(&arena, even, forbidden, 4, 3, &cut), RP_ERR_USAGE);
    expect_err(rp_cut_balance(&arena, even, NULL, 3, 4, &cut), RP_ERR_USAGE);
    expect_err(rp_cut_balance(&arena, even, NULL, 3, 0, &cut), RP_ERR_USAGE);
    expect_err(rp_cut_balance(&arena, even, NULL, 3, RP_CUT_STAGES_MAX + 1, &cut), RP_ERR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names, setup, teardown),
        cmocka_unit_test_setup_teardown(the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(list, setup, teardown),
        cmocka_unit_test_setup_teardown(boundaries, setup, teardown),
        cmocka_unit_test_setup_teardown(too_many_tensors, setup, teardown),
        cmocka_unit_test_setup_teardown(checks, setup, teardown),
        cmocka_unit_test_setup_teardown(balance_equals_brute_force, setup, teardown),
        cmocka_unit_test_setup_teardown(balance_rules, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
