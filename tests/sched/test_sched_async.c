#define KIND rp_sched_async
#include "unflushed.h"

static void drawing(void **state) {
    (void)state;
    assert_true(draws(&KIND, 4, 6,
                      "async, 4 stages, 6 microbatches: 18 columns, bubble 33.3 %\n"
                      "F0 F1 F2 F3 .  .  .  B0 F4 B1 F5 B2 .  B3 .  B4 .  B5   stage 0  in flight "
                      "4  versions 1  gap 3\n"
                      ".  F0 F1 F2 .  .  B0 F3 B1 F4 B2 F5 B3 .  B4 .  B5 .    stage 1  in flight "
                      "3  versions 1  gap 2\n"
                      ".  .  F0 F1 .  B0 F2 B1 F3 B2 F4 B3 F5 B4 .  B5 .  .    stage 2  in flight "
                      "2  versions 1  gap 1\n"
                      ".  .  .  F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 .  .  .    stage 3  in flight "
                      "1  versions 1  gap 0\n"));
}

/* Deeper pipes: with `advance` every hop hides one more microbatch's way. */
static void advance_is_avgpipes_figure(void **state) {
    (void)state;
    const uint32_t figure[] = {7, 5, 3, 1}; /* METHODS 8: D = 4 */
    for (uint32_t k = 0; k < 4; k++) {
        const rp_sched_shape shape = {.stages = 4, .stage = k, .advance = 1};
        assert_int_equal(rp_sched_in_flight_max(&shape), figure[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        UNFLUSHED_TESTS,
        cmocka_unit_test(drawing),
        cmocka_unit_test(advance_is_avgpipes_figure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
