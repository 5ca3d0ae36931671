/* One chromosome: the backward's sizes are the forward's, and of these it finds about the best. */
#include "planners/asked.h"

static double best_tied(rp_arena *arena, const rp_problem *p) {
    double best = (double)INFINITY;
    uint32_t all = 1;
    for (uint32_t k = 0; k < p->stages; k++) {
        all *= p->size_count;
    }
    for (uint32_t n = 0; n < all; n++) {
        rp_genome g = {0};
        uint32_t rest = n;
        for (uint32_t k = 0; k < p->stages; k++) {
            g.gene[0][k] = g.gene[1][k] = (uint8_t)(rest % p->size_count);
            rest /= p->size_count;
        }
        best = fmin(best, asked_step_s(arena, p, &g));
    }
    return best;
}

static void it_is_tied_and_near_the_best(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(8, "test/sgap");
    uint32_t two_are_better = 0;
    for (uint32_t trial = 0; trial < 40; trial++) {
        rp_arena arena;
        rp_problem p;
        rp_arena_init(&arena, "test", 0);
        draw_ring(&arena, &rng, 2, 4, 32, trial % 2, &p);
        thin_sizes(&p, 4);
        const rp_planner_answer a = asked("sgap", &p);
        assert_memory_equal(a.genome.gene[0], a.genome.gene[1], p.stages);
        assert_true(a.step_s <= 1.01 * best_tied(&arena, &p));
        two_are_better += asked("dgap", &p).step_s < a.step_s * (1 - 1e-6);
        rp_arena_finish(&arena);
    }
    assert_true(two_are_better > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_tied_and_near_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
