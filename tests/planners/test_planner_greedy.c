/* Local greedy: by hand, with costs that are a line, and within memory. */
#include "planners/asked.h"

/* METHODS 10.4: with costs a + c b it takes all samples at once, forward; it proves nothing. */
static void a_line_makes_it_take_all_samples(void **state) {
    (void)state;
    rp_arena arena;
    rp_problem p;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_problem_open(&arena, 1, 16, &p));
    rp_problem_affine(&p, p.pass[RP_WAY_FORWARD], 0, 1, 0.5);
    rp_problem_affine(&p, p.pass[RP_WAY_BACKWARD], 0, 1, 0.5);
    const rp_planner_answer a = asked("greedy", &p);
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
    rp_problem_affine(&p, p.pass[RP_WAY_FORWARD], 0, 1, 1);
    rp_problem_affine(&p, p.pass[RP_WAY_FORWARD], 1, 0, 1);
    const rp_planner_answer a = asked("greedy", &p);
    assert_int_equal(a.genome.gene[RP_WAY_FORWARD][0], 2);
    assert_int_equal(a.genome.gene[RP_WAY_FORWARD][1], 0);
    expect_close(a.step_s, 9, 1e-12, 0);
    rp_arena_finish(&arena);
}

static void it_keeps_to_the_memory(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(4, "test/greedy");
    uint32_t smaller = 0;
    for (uint32_t trial = 0; trial < 300; trial++) {
        rp_arena arena;
        rp_problem p;
        rp_arena_init(&arena, "test", 0);
        draw_ring(&arena, &rng, 2, 8, 32, true, &p);
        const rp_planner_answer a = asked("greedy", &p); /* asserts that it fits */
        smaller += a.genome.gene[RP_WAY_FORWARD][0] + 1u < p.size_count;
        rp_arena_finish(&arena);
    }
    assert_int_equal(smaller, 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_makes_it_take_all_samples),
        cmocka_unit_test(stages_decide_one_by_one),
        cmocka_unit_test(it_keeps_to_the_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
