#include "schedule.h"

extern const rp_sched_kind rp_sched_gpipe;

static void drawings(void **state) {
    (void)state;
    assert_true(draws(
        &rp_sched_gpipe, 4, 4,
        "gpipe, 4 stages, 4 microbatches: 14 columns, bubble 42.9 %\n"
        "F0 F1 F2 F3 .  .  .  .  .  .  B3 B2 B1 B0   stage 0  in flight 4  versions 1  gap 0\n"
        ".  F0 F1 F2 F3 .  .  .  .  B3 B2 B1 B0 .    stage 1  in flight 4  versions 1  gap 0\n"
        ".  .  F0 F1 F2 F3 .  .  B3 B2 B1 B0 .  .    stage 2  in flight 4  versions 1  gap 0\n"
        ".  .  .  F0 F1 F2 F3 B3 B2 B1 B0 .  .  .    stage 3  in flight 4  versions 1  gap 0\n"));
    assert_true(draws(&rp_sched_gpipe, 3, 2,
                      "gpipe, 3 stages, 2 microbatches: 8 columns, bubble 50.0 %\n"
                      "F0 F1 .  .  .  .  B1 B0   stage 0  in flight 2  versions 1  gap 0\n"
                      ".  F0 F1 .  .  B1 B0 .    stage 1  in flight 2  versions 1  gap 0\n"
                      ".  .  F0 F1 B1 B0 .  .    stage 2  in flight 2  versions 1  gap 0\n"));
    assert_true(draws(&rp_sched_gpipe, 1, 3,
                      "gpipe, 1 stage, 3 microbatches: 6 columns, bubble 0.0 %\n"
                      "F0 F1 F2 B2 B1 B0   stage 0  in flight 3  versions 1  gap 0\n"));
    assert_true(draws(&rp_sched_gpipe, 2, 1,
                      "gpipe, 2 stages, 1 microbatch: 4 columns, bubble 50.0 %\n"
                      "F0 .  .  B0   stage 0  in flight 1  versions 1  gap 0\n"
                      ".  F0 B0 .    stage 1  in flight 1  versions 1  gap 0\n"));
}

static void drawing_of_4_by_8(void **state) {
    (void)state;
    assert_true(draws(&rp_sched_gpipe, 4, 8,
                      "gpipe, 4 stages, 8 microbatches: 22 columns, bubble 27.3 %\n"
                      "F0 F1 F2 F3 F4 F5 F6 F7 .  .  .  .  .  .  B7 B6 B5 B4 B3 B2 B1 B0 "
                      "  stage 0  in flight 8  versions 1  gap 0\n"
                      ".  F0 F1 F2 F3 F4 F5 F6 F7 .  .  .  .  B7 B6 B5 B4 B3 B2 B1 B0 .  "
                      "  stage 1  in flight 8  versions 1  gap 0\n"
                      ".  .  F0 F1 F2 F3 F4 F5 F6 F7 .  .  B7 B6 B5 B4 B3 B2 B1 B0 .  .  "
                      "  stage 2  in flight 8  versions 1  gap 0\n"
                      ".  .  .  F0 F1 F2 F3 F4 F5 F6 F7 B7 B6 B5 B4 B3 B2 B1 B0 .  .  .  "
                      "  stage 3  in flight 8  versions 1  gap 0\n"));
}

static uint32_t all_of_a_step(uint32_t stages, uint32_t stage, uint32_t micro) {
    (void)stages;
    (void)stage;
    return micro;
}

static void sizes(void **state) {
    (void)state;
    check_all_sizes(&rp_sched_gpipe, all_of_a_step);
}

/* METHODS 1: (M + D - 1)(tF + tB). */
static void duration(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages <= 16; stages++) {
        for (uint32_t micro = 1; micro <= 20; micro++) {
            expect_close(makespan(&rp_sched_gpipe, stages, micro, 1.25, 0.75, 1.5),
                         (micro + stages - 1) * 3.5, 1e-12, 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawings),
        cmocka_unit_test(drawing_of_4_by_8),
        cmocka_unit_test(sizes),
        cmocka_unit_test(duration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
