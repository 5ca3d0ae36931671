/* The best even size, and what all planners have in common. */
#include "planners/asked.h"

static void it_is_the_best_of_all_even_sizes(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(1, "test/even");
    for (uint32_t trial = 0; trial < 200; trial++) {
        rp_arena arena;
        rp_problem p;
        double best = (double)INFINITY;
        rp_arena_init(&arena, "test", 0);
        draw_ring(&arena, &rng, 1, 16, 32, trial % 2, &p);
        const rp_planner_answer a = asked("even", &p);
        for (uint8_t size = 0; size < p.size_count; size++) {
            const rp_genome even = rp_problem_even(&p, size);
            best = fmin(best, asked_step_s(&arena, &p, &even));
        }
        expect_close(a.step_s, best, 1e-9, 0);
        expect_close(a.step_s, asked_step_s(&arena, &p, &a.genome), 0, 0);
        assert_int_equal(a.evaluations, p.size_count);
        assert_true(a.is_complete);
        rp_arena_finish(&arena);
    }
}

static void every_planner_answers_and_repeats_itself(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(2, "test/even");
    for (uint32_t trial = 0; trial < 12; trial++) {
        rp_arena arena;
        rp_problem p;
        rp_arena_init(&arena, "test", 0);
        draw_ring(&arena, &rng, 1, 3, 4, trial % 2, &p);
        draw_held(&p, &rng);
        if (rp_problem_check(&p) != RP_OK) { /* held at what does not fit */
            rp_arena_finish(&arena);
            continue;
        }
        for (const rp_planner_kind *const *kind = rp_planner_kinds; *kind; kind++) {
            const rp_planner_answer a = asked((*kind)->name, &p);
            const rp_planner_answer b = asked((*kind)->name, &p);
            assert_true((*kind)->source[0] != 0);
            assert_memory_equal(&a.genome, &b.genome, sizeof a.genome);
            assert_int_equal(a.evaluations, b.evaluations);
            expect_close(a.step_s, asked_step_s(&arena, &p, &a.genome), 0, 0);
        }
        rp_arena_finish(&arena);
    }
    assert_null(rp_planner_find("evenly"));
}

static void what_can_not_be_asked_is_refused(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(3, "test/even");
    rp_arena arena;
    rp_problem p;
    rp_planner_answer out;
    rp_arena_init(&arena, "test", 0);
    draw_ring(&arena, &rng, 4, 4, 8, false, &p);
    const rp_planner_kind *kind = rp_planner_find("tidgap");
    rp_planner_ask ask = {.problem = &p, .limit_ns = 1};
    expect_err(rp_planner_search(kind, &ask, &out), RP_ERR_USAGE);
    ask = (rp_planner_ask){.problem = &p, .population = 3};
    expect_err(rp_planner_search(kind, &ask, &out), RP_ERR_USAGE);
    p.pass[0][1] = (double)NAN;
    ask = (rp_planner_ask){.problem = &p, .rounds = 1};
    expect_err(rp_planner_search(kind, &ask, &out), RP_ERR_USAGE);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_best_of_all_even_sizes),
        cmocka_unit_test(every_planner_answers_and_repeats_itself),
        cmocka_unit_test(what_can_not_be_asked_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
