/* Two chromosomes: within 1 % of brute force, never worse than what the first population holds,
 * and with what memory allows. */
#include "planners/asked.h"

static void it_is_near_brute_force(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(9, "test/dgap");
    for (uint32_t trial = 0; trial < 60; trial++) {
        rp_arena arena;
        rp_problem p;
        rp_arena_init(&arena, "test", 0);
        draw_ring(&arena, &rng, 1, 4, trial % 3 ? 32 : 24, trial % 2, &p);
        thin_sizes(&p, 4);
        const double best = brute_step_s(&arena, &p);
        const double found = asked("dgap", &p).step_s;
        assert_true(found <= 1.01 * best && found >= best * (1 - 1e-9));
        rp_arena_finish(&arena);
    }
}

static void it_is_never_worse_than_where_it_begins(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(10, "test/dgap");
    for (uint32_t trial = 0; trial < 60; trial++) {
        rp_arena arena;
        rp_problem p;
        rp_arena_init(&arena, "test", 0);
        draw_ring(&arena, &rng, 4, 16, 32, trial % 2, &p);
        const rp_planner_ask ask = {
            .problem = &p, .seed = trial, .rounds = 1, .population = trial % 3 ? 0 : 4};
        const rp_planner_answer a = asked_with("dgap", &ask);
        assert_true(a.step_s <= a.even_step_s * (1 + 1e-9));
        assert_true(a.step_s <= asked_simple(false, &p).step_s * (1 + 1e-9));
        assert_true(a.step_s <= asked_simple(true, &p).step_s * (1 + 1e-9));
        rp_arena_finish(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_near_brute_force),
        cmocka_unit_test(it_is_never_worse_than_where_it_begins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
