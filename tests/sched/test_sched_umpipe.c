#include "schedule.h"

extern const rp_sched_kind rp_sched_gpipe, rp_sched_umpipe;

/* One size for all is gpipe. */
static void drawings(void **state) {
    (void)state;
    assert_true(draws(
        &rp_sched_umpipe, 4, 4,
        "umpipe, 4 stages, 4 microbatches: 14 columns, bubble 42.9 %\n"
        "F0 F1 F2 F3 .  .  .  .  .  .  B3 B2 B1 B0   stage 0  in flight 4  versions 1  gap 0\n"
        ".  F0 F1 F2 F3 .  .  .  .  B3 B2 B1 B0 .    stage 1  in flight 4  versions 1  gap 0\n"
        ".  .  F0 F1 F2 F3 .  .  B3 B2 B1 B0 .  .    stage 2  in flight 4  versions 1  gap 0\n"
        ".  .  .  F0 F1 F2 F3 B3 B2 B1 B0 .  .  .    stage 3  in flight 4  versions 1  gap 0\n"));
}

static uint32_t all_of_a_step(uint32_t stages, uint32_t stage, uint32_t micro) {
    (void)stages;
    (void)stage;
    return micro;
}

static void sizes(void **state) {
    (void)state;
    check_all_sizes(&rp_sched_umpipe, all_of_a_step);
}

/* Every size forward and every size backward, a ragged step, and a share of each step. */
static void every_pair_of_sizes(void **state) {
    (void)state;
    for (uint32_t size = 0; size < 12 * 13; size++) {
        const rp_sched_shape shape = {.stages = 3,
                                      .stage = 1,
                                      .step_end = 4,
                                      .epoch_samples = 19,
                                      .batch = 12,
                                      .micro = size % 12 + 1,
                                      .micro_backward = size / 12};
        if (!each_sample_once(&rp_sched_umpipe, &shape)) {
            fail_msg("microbatches of %u forward, %u backward", shape.micro, shape.micro_backward);
        }
    }
}

/* METHODS 14: backwards from the last sample on, the remainder last; a share begins anywhere. */
static void ranges_of_backwards(void **state) {
    (void)state;
    rp_sched_shape shape = {.stages = 1,
                            .step_end = 2,
                            .epoch_samples = 16,
                            .batch = 11,
                            .micro = 3,
                            .micro_backward = 4};
    static const rp_range whole[] = {{0, 3}, {3, 4}, {7, 4}};
    assert_int_equal(rp_sched_backward_count(&shape, 0), 3);
    for (uint32_t m = 0; m < 3; m++) {
        const rp_range range = rp_sched_backward_range(&shape, 0, m);
        assert_int_equal(range.first, whole[m].first);
        assert_int_equal(range.count, whole[m].count);
    }
    assert_int_equal(rp_sched_backward_count(&shape, 1), 2); /* 5 samples */
    assert_int_equal(rp_sched_backward_range(&shape, 1, 0).count, 1);
    assert_int_equal(rp_sched_backward_range(&shape, 1, 1).first, 1);
    shape.share[0] = 0.5;
    shape.share[1] = 1; /* samples [6, 11) */
    assert_int_equal(rp_sched_backward_count(&shape, 0), 2);
    assert_int_equal(rp_sched_backward_range(&shape, 0, 0).first, 6);
    assert_int_equal(rp_sched_backward_range(&shape, 0, 0).count, 1);
    assert_int_equal(rp_sched_backward_range(&shape, 0, 1).first, 7);
    shape.micro_backward = 0; /* those of the forward */
    assert_int_equal(rp_sched_backward_range(&shape, 0, 1).first, 9);
    assert_int_equal(rp_sched_backward_range(&shape, 0, 1).count, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawings),
        cmocka_unit_test(sizes),
        cmocka_unit_test(every_pair_of_sizes),
        cmocka_unit_test(ranges_of_backwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
