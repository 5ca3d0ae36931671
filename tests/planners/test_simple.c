/* The plans without chance, which a genetic search begins with. */
#include "planners/asked.h"

static void even_is_the_best_of_all_even_sizes(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(1, "test/even");
    for (uint32_t trial = 0; trial < 200; trial++) {
        rp_arena arena;
        rp_problem p;
        begun_search begun;
        double best = (double)INFINITY;
        rp_arena_init(&arena, "test", 0);
        draw_ring(&arena, &rng, 1, 16, 32, trial % 2, &p);
        begin_search(&begun, &p);
        const rp_genome found = rp_simple_even(&begun.search);
        for (uint8_t size = 0; size < p.size_count; size++) {
            const rp_genome even = rp_problem_even(&p, size);
            best = fmin(best, asked_step_s(&arena, &p, &even));
        }
        expect_close(asked_step_s(&arena, &p, &found), best, 0, 0);
        expect_close(begun.answer.step_s, best, 1e-9, 0);
        assert_int_equal(begun.answer.evaluations, p.size_count);
        rp_arena_finish(&begun.search.arena);
        rp_arena_finish(&arena);
    }
}

/* METHODS 10.4: with costs a + c b it takes all samples at once, forward; it proves nothing. */
static void a_line_makes_greedy_take_all_samples(void **state) {
    (void)state;
    rp_arena arena;
    rp_problem p;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_problem_open(&arena, 1, 16, &p));
    fill_row(&p, p.pass[RP_WAY_FORWARD], 0, 1, 0.5);
    fill_row(&p, p.pass[RP_WAY_BACKWARD], 0, 1, 0.5);
    const rp_planner_answer a = asked_simple(false, &p);
    assert_int_equal(p.size[a.genome.gene[RP_WAY_FORWARD][0]], 16);
    assert_int_equal(p.size[a.genome.gene[RP_WAY_BACKWARD][0]], 16);
    expect_close(a.step_s, 18, 1e-12, 0);
    rp_arena_finish(&arena);
}

/* Stage 0 takes 1 s and 1 s a sample: 4 at once are over at 5. Then stage 1, without a base, takes
 * 4 s more: over at 9 whatever its size; the smallest is the first. */
static void stages_decide_one_by_one(void **state) {
    (void)state;
    rp_arena arena;
    rp_problem p;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_problem_open(&arena, 2, 4, &p));
    fill_row(&p, p.pass[RP_WAY_FORWARD], 0, 1, 1);
    fill_row(&p, p.pass[RP_WAY_FORWARD], 1, 0, 1);
    const rp_planner_answer a = asked_simple(false, &p);
    assert_int_equal(a.genome.gene[RP_WAY_FORWARD][0], 2);
    assert_int_equal(a.genome.gene[RP_WAY_FORWARD][1], 0);
    expect_close(a.step_s, 9, 1e-12, 0);
    rp_arena_finish(&arena);
}

static void greedy_keeps_to_the_memory(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(4, "test/greedy");
    uint32_t smaller = 0;
    for (uint32_t trial = 0; trial < 300; trial++) {
        rp_arena arena;
        rp_problem p;
        rp_arena_init(&arena, "test", 0);
        draw_ring(&arena, &rng, 2, 8, 32, true, &p);
        const rp_planner_answer a = asked_simple(false, &p); /* asserts that it fits */
        smaller += a.genome.gene[RP_WAY_FORWARD][0] + 1u < p.size_count;
        rp_arena_finish(&arena);
    }
    assert_int_equal(smaller, 300);
}

static void dp_is_exact_for_two_forwards(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(5, "test/dp");
    for (uint32_t trial = 0; trial < 300; trial++) {
        rp_arena arena;
        rp_problem p;
        rp_arena_init(&arena, "test", 0);
        draw_ring(&arena, &rng, 2, 2, 32, false, &p);
        for (uint32_t i = 0; i < 2 * 33; i++) { /* the step is the forward */
            p.pass[RP_WAY_BACKWARD][i] = p.send[RP_WAY_BACKWARD][i] = 0;
        }
        p.latency[RP_WAY_BACKWARD][1] = 0;
        expect_close(asked_simple(true, &p).step_s, brute_step_s(&arena, &p), 1e-9, 0);
        rp_arena_finish(&arena);
    }
}

static void dp_keeps_to_the_memory_and_mostly_beats_greedy(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(6, "test/dp");
    uint32_t better = 0;
    uint32_t worse = 0;
    for (uint32_t trial = 0; trial < 100; trial++) {
        rp_arena arena;
        rp_problem p;
        rp_arena_init(&arena, "test", 0);
        draw_ring(&arena, &rng, 4, 16, 32, trial % 2, &p);
        const double dp = asked_simple(true, &p).step_s;
        const double greedy = asked_simple(false, &p).step_s;
        better += dp < greedy * (1 - 1e-9);
        worse += dp > greedy * (1 + 1e-9);
        rp_arena_finish(&arena);
    }
    assert_true(better > 50 && worse < 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(even_is_the_best_of_all_even_sizes),
        cmocka_unit_test(a_line_makes_greedy_take_all_samples),
        cmocka_unit_test(stages_decide_one_by_one),
        cmocka_unit_test(greedy_keeps_to_the_memory),
        cmocka_unit_test(dp_is_exact_for_two_forwards),
        cmocka_unit_test(dp_keeps_to_the_memory_and_mostly_beats_greedy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
