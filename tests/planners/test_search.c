/* What all planners have in common. */
#include "planners/asked.h"

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
            assert_memory_equal(&a.even, &b.even, sizeof a.even);
            assert_int_equal(a.evaluations, b.evaluations);
            expect_close(a.step_s, asked_step_s(&arena, &p, &a.genome), 0, 0);
            expect_close(a.even_step_s, asked_step_s(&arena, &p, &a.even), 0, 0);
        }
        rp_arena_finish(&arena);
    }
    assert_null(rp_planner_find("even"));
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
    rp_planner_ask ask = {.problem = &p};
    expect_err(rp_planner_search(kind, &ask, &out), RP_ERR_USAGE);
    ask = (rp_planner_ask){.problem = &p, .rounds = 1, .population = 3};
    expect_err(rp_planner_search(kind, &ask, &out), RP_ERR_USAGE);
    p.pass[0][1] = (double)NAN;
    ask = (rp_planner_ask){.problem = &p, .rounds = 1};
    expect_err(rp_planner_search(kind, &ask, &out), RP_ERR_USAGE);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_planner_answers_and_repeats_itself),
        cmocka_unit_test(what_can_not_be_asked_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
