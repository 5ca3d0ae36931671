#define KIND rp_sched_spectrain
#include "unflushed.h"

/* METHODS 4: s_F = floor(k/2) + D - 1 - k, s_B = floor(k/2), read off a replay. */
static void horizons(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages <= 9; stages++) {
        for (uint32_t k = 0; k < stages; k++) {
            const rp_sched_shape shape = {.stages = stages,
                                          .stage = k,
                                          .step_end = 7,
                                          .epoch_samples = 100,
                                          .batch = 10,
                                          .micro = 10};
            uint32_t forward;
            uint32_t backward;
            expect_ok(rp_sched_round_trip(&KIND, &shape, &forward, &backward));
            assert_int_equal(forward, k / 2 + stages - 1 - k);
            assert_int_equal(backward, k / 2);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        UNFLUSHED_TESTS,
        cmocka_unit_test(horizons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
