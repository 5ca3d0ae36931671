/* Coordinate descent: no better by any one gene, never worse than the best even size. */
#include "planners/asked.h"

static void no_gene_makes_it_better(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(7, "test/descent");
    uint32_t better = 0;
    for (uint32_t trial = 0; trial < 100; trial++) {
        rp_arena arena;
        rp_problem p;
        rp_arena_init(&arena, "test", 0);
        draw_ring(&arena, &rng, 4, 8, 16, trial % 2, &p);
        const rp_planner_answer a = asked("descent", &p);
        const double even = asked("even", &p).step_s;
        assert_true(a.step_s <= even * (1 + 1e-9));
        better += a.step_s < even * (1 - 1e-3);
        for (uint32_t k = 0; k < p.stages; k++) {
            for (uint8_t size = 0; size < p.size_count; size++) {
                for (int way = 0; way < RP_WAYS; way++) {
                    rp_genome other = a.genome;
                    other.gene[way][k] = size;
                    assert_true(asked_step_s(&arena, &p, &other) >= a.step_s * (1 - 1e-9));
                }
            }
        }
        rp_arena_finish(&arena);
    }
    assert_true(better > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_gene_makes_it_better),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
