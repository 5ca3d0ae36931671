/* What a planner is asked: sizes, what is refused and why, memory by sizes. */
#include <math.h>

#include "expect.h"
#include "planners/problem.h"

static rp_problem opened(rp_arena *arena, uint32_t stages, uint32_t samples) {
    rp_problem p;
    rp_arena_init(arena, "test", 0);
    expect_ok(rp_problem_open(arena, stages, samples, &p));
    return p;
}

static void sizes_are_powers_and_divisors(void **state) {
    (void)state;
    static const uint32_t want[] = {1, 2, 3, 4, 6, 8, 12};
    rp_arena arena;
    rp_problem p = opened(&arena, 3, 12);
    assert_int_equal(p.size_count, 7);
    for (uint32_t i = 0; i < p.size_count; i++) {
        assert_int_equal(p.size[i], want[i]);
    }
    expect_ok(rp_problem_check(&p));
    rp_arena_finish(&arena);
    p = opened(&arena, 1, 2520); /* has 48 divisors: the largest stay */
    assert_int_equal(p.size_count, RP_PLANNERS_SIZES_MAX);
    assert_int_equal(p.size[RP_PLANNERS_SIZES_MAX - 1], 2520);
    assert_true(p.size[0] > 1);
    expect_ok(rp_problem_check(&p));
    expect_err(rp_problem_open(&arena, 0, 8, &p), RP_ERR_USAGE);
    expect_err(rp_problem_open(&arena, RP_PLANNERS_STAGES_MAX + 1, 8, &p), RP_ERR_USAGE);
    expect_err(rp_problem_open(&arena, 2, 0, &p), RP_ERR_USAGE);
    expect_err(rp_problem_open(&arena, 2, RP_PLANNERS_SAMPLES_MAX + 1, &p), RP_ERR_USAGE);
    rp_arena_finish(&arena);
}

static void costs_that_are_none_are_refused(void **state) {
    (void)state;
    static const double bad[] = {-1, (double)NAN, (double)INFINITY};
    rp_arena arena;
    for (uint32_t i = 0; i < 3; i++) {
        rp_problem p = opened(&arena, 2, 4);
        double *const cell[] = {&p.pass[0][9], &p.send[1][3], &p.latency[1][1], &p.update[0]};
        for (uint32_t c = 0; c < 4; c++) {
            const double good = *cell[c];
            expect_ok(rp_problem_check(&p));
            *cell[c] = bad[i];
            expect_err(rp_problem_check(&p), RP_ERR_USAGE);
            assert_non_null(strstr(rp_err_message(), c == 0 || c == 2 ? "stage 1" : "stage 0"));
            *cell[c] = good;
        }
        rp_arena_finish(&arena);
    }
}

static void sizes_that_are_wrong_are_refused(void **state) {
    (void)state;
    rp_arena arena;
    rp_problem p = opened(&arena, 2, 8); /* 1 2 4 8 */
    p.size[1] = 4;
    expect_err(rp_problem_check(&p), RP_ERR_USAGE);
    p.size[1] = 3;
    expect_ok(rp_problem_check(&p));
    p.held[1] = 1;
    expect_err(rp_problem_check(&p), RP_ERR_USAGE); /* 3 does not divide 8 */
    assert_non_null(strstr(rp_err_message(), "stage 1"));
    p.held[1] = 4;
    expect_err(rp_problem_check(&p), RP_ERR_USAGE);
    p.held[1] = RP_PLANNERS_FREE;
    p.size_count = 3;
    expect_err(rp_problem_check(&p), RP_ERR_USAGE); /* the last is not the step */
    p.size_count = 0;
    expect_err(rp_problem_check(&p), RP_ERR_USAGE);
    rp_arena_finish(&arena);
}

static void memory_is_counted_by_sizes(void **state) {
    (void)state;
    rp_arena arena;
    rp_problem p = opened(&arena, 3, 8); /* 1 2 4 8 */
    p.memory[1] = (rp_problem_memory){.limit_bytes = 1000 + 8 * 10 + 4 * 100 + 2 * 7 + 8 * 5,
                                      .fixed_bytes = 1000,
                                      .stash_bytes = 10,
                                      .work_bytes = 100,
                                      .arrive_bytes = {7, 5}};
    rp_genome g = rp_problem_even(&p, 0);
    expect_ok(rp_problem_check(&p));
    g.gene[RP_WAY_FORWARD][0] = 1;
    g.gene[RP_WAY_FORWARD][1] = 1;
    g.gene[RP_WAY_BACKWARD][1] = 2;
    g.gene[RP_WAY_BACKWARD][2] = 3;
    assert_int_equal(rp_problem_bytes(&p, &g, 1), p.memory[1].limit_bytes);
    assert_true(rp_problem_fits(&p, &g));
    g.gene[RP_WAY_BACKWARD][0] = 3; /* another stage's business */
    assert_true(rp_problem_fits(&p, &g));
    g.gene[RP_WAY_FORWARD][0] = 2;
    assert_false(rp_problem_fits(&p, &g));
    p.memory[1].limit_bytes = 1000 + 8 * 10 + 100 + 7 + 5 - 1;
    expect_err(rp_problem_check(&p), RP_ERR_LIMIT);
    assert_non_null(strstr(rp_err_message(), "stage 1"));
    rp_arena_finish(&arena);
}

static void held_stages_keep_their_size(void **state) {
    (void)state;
    rp_arena arena;
    rp_problem p = opened(&arena, 3, 8);
    p.held[1] = 2;
    const rp_genome g = rp_problem_even(&p, 0);
    for (int way = 0; way < RP_WAYS; way++) {
        assert_int_equal(g.gene[way][0], 0);
        assert_int_equal(g.gene[way][1], 2);
        assert_int_equal(g.gene[way][2], 0);
    }
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_powers_and_divisors),
        cmocka_unit_test(costs_that_are_none_are_refused),
        cmocka_unit_test(sizes_that_are_wrong_are_refused),
        cmocka_unit_test(memory_is_counted_by_sizes),
        cmocka_unit_test(held_stages_keep_their_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
