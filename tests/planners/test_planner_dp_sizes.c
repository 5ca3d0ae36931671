/* DP over stages and sizes: exact for the forward of two stages, and within memory. */
#include "planners/asked.h"

static void two_forwards_are_exact(void **state) {
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
        expect_close(asked("dp-sizes", &p).step_s, asked("brute", &p).step_s, 1e-9, 0);
        rp_arena_finish(&arena);
    }
}

static void it_keeps_to_the_memory_and_mostly_beats_greedy(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(6, "test/dp");
    uint32_t better = 0;
    uint32_t worse = 0;
    for (uint32_t trial = 0; trial < 100; trial++) {
        rp_arena arena;
        rp_problem p;
        rp_arena_init(&arena, "test", 0);
        draw_ring(&arena, &rng, 4, 16, 32, trial % 2, &p);
        const double dp = asked("dp-sizes", &p).step_s;
        const double greedy = asked("greedy", &p).step_s;
        better += dp < greedy * (1 - 1e-9);
        worse += dp > greedy * (1 + 1e-9);
        rp_arena_finish(&arena);
    }
    assert_true(better > 50 && worse < 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_forwards_are_exact),
        cmocka_unit_test(it_keeps_to_the_memory_and_mostly_beats_greedy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
