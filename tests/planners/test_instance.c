/* Random rings keep to the ranges that their header states, and the same seed draws the same. */
#include <math.h>

#include "expect.h"
#include "planners/instance.h"

static void they_keep_to_their_ranges(void **state) {
    (void)state;
    const instance_draw draw = {.stages_min = 4, .stages_max = 16, .samples = 32, .backward = 2};
    rp_rng rng = rp_rng_named(5, "test/instance");
    rp_rng same = rng;
    bool seen[17] = {false};
    double low = 1e9;
    double high = 0;
    for (uint32_t trial = 0; trial < 500; trial++) {
        rp_arena arena;
        rp_problem p;
        rp_problem again;
        rp_arena_init(&arena, "test", 0);
        expect_ok(draw_instance(&arena, &rng, &draw, &p));
        expect_ok(draw_instance(&arena, &same, &draw, &again));
        expect_ok(rp_problem_check(&p));
        seen[p.stages] = true;
        for (uint32_t k = 0; k < p.stages; k++) {
            const double *row = &p.pass[RP_WAY_FORWARD][k * 33];
            const double sample = (row[32] - row[1]) / 31;
            const double base = row[1] - sample;
            assert_true(base > 0.0999 && base < 10.001 && sample > 0.02499 && sample < 2.5001);
            expect_close(p.pass[RP_WAY_BACKWARD][k * 33 + 7], 2 * row[7], 1e-12, 0);
            expect_close(again.pass[RP_WAY_FORWARD][k * 33 + 7], row[7], 0, 0);
            low = fmin(low, base);
            high = fmax(high, base);
        }
        expect_close(instance_spread(&p), instance_spread(&again), 0, 0);
        rp_arena_finish(&arena);
    }
    assert_true(low < 0.11 && high > 9);
    for (uint32_t stages = 4; stages <= 16; stages++) {
        assert_true(seen[stages]);
    }
}

static void the_spread_is_that_of_the_ratios(void **state) {
    (void)state;
    rp_arena arena;
    rp_problem p;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_problem_open(&arena, 2, 8, &p));
    fill_row(&p, p.pass[RP_WAY_FORWARD], 0, 1, 1);
    fill_row(&p, p.pass[RP_WAY_FORWARD], 1, 100, 1);
    expect_close(instance_spread(&p), 1, 1e-9, 0); /* log10: 0 and 2 */
    fill_row(&p, p.pass[RP_WAY_FORWARD], 1, 5, 5);
    expect_close(instance_spread(&p), 0, 0, 1e-6);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_keep_to_their_ranges),
        cmocka_unit_test(the_spread_is_that_of_the_ratios),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
