/* Every genome: as many as there are, and none is better. */
#include "planners/asked.h"

static void all_are_tried(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(14, "test/brute");
    for (uint32_t trial = 0; trial < 40; trial++) {
        rp_arena arena;
        rp_problem p;
        rp_arena_init(&arena, "test", 0);
        draw_ring(&arena, &rng, 3, 3, 8, false, &p); /* 4 sizes */
        if (trial % 2) {
            p.held[1] = 2;
        }
        const rp_planner_answer a = asked("brute", &p);
        assert_int_equal(a.evaluations, trial % 2 ? 256 : 4096);
        for (uint32_t i = 0; i < 500; i++) {
            const rp_genome other = drawn_genome(&p, &rng);
            assert_true(asked_step_s(&arena, &p, &other) >= a.step_s * (1 - 1e-9));
        }
        rp_arena_finish(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
