/* What codecs lose: sums by wire and by stage, of what boards report. */
#include "measured.h"

static rp_err report(uint32_t board, rp_CodecLoss loss) {
    const rp_Finished end = {.loss_count = 1, .loss = {loss}};
    return rp_losses_take(measure, plan, board, &end);
}

/* 1 of 16 and then 3 of 48: a quarter in root mean square, of the wire and of the segment. */
static void losses_are_summed(void **state) {
    (void)state;
    open_plain();
    take_plan();
    assert_true(isnan(rp_losses_of_wire(measure, plan, 0, 1)));
    expect_ok(report(0, (rp_CodecLoss){.stage = 0, .lost = 1, .all = 16}));
    expect_ok(report(0, (rp_CodecLoss){.stage = 0, .lost = 3, .all = 48}));
    assert_true(rp_losses_of_wire(measure, plan, 0, 1) == 0.25);
    assert_true(rp_losses_of_stage(measure, plan, 0, false) == 0.25);
    assert_true(isnan(rp_losses_of_stage(measure, plan, 0, true)));
    assert_true(isnan(rp_losses_of_wire(measure, plan, 1, 0)));
    expect_ok(report(1, (rp_CodecLoss){.stage = 1, .gradients = true, .lost = 4, .all = 16}));
    assert_true(rp_losses_of_wire(measure, plan, 1, 0) == 0.5);
    assert_true(rp_losses_of_stage(measure, plan, 1, true) == 0.5);
}

/* A segment's end forgets those of the segment, another plan all of them. */
static void segments_and_plans_begin_with_nothing(void **state) {
    (void)state;
    open_plain();
    take_plan();
    expect_ok(report(0, (rp_CodecLoss){.lost = 1, .all = 16}));
    rp_losses_end_segment(measure);
    assert_true(isnan(rp_losses_of_stage(measure, plan, 0, false)));
    assert_true(rp_losses_of_wire(measure, plan, 0, 1) == 0.25);
    expect_ok(report(0, (rp_CodecLoss){.lost = 15, .all = 48}));
    assert_true(rp_losses_of_wire(measure, plan, 0, 1) == 0.5); /* of both segments */
    take_plan();
    assert_true(isnan(rp_losses_of_wire(measure, plan, 0, 1)));
}

/* The net may diverge: its sums do not count. A stage that the board does not hold is a fault. */
static void reports_are_checked(void **state) {
    static const float bad[][2] = {{-1, 1},
                                   {1, -1},
                                   {(float)NAN, 1},
                                   {1, (float)NAN},
                                   {(float)INFINITY, 1},
                                   {1, (float)INFINITY}};
    (void)state;
    open_plain();
    take_plan();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_ok(report(0, (rp_CodecLoss){.lost = bad[i][0], .all = bad[i][1]}));
        assert_true(isnan(rp_losses_of_wire(measure, plan, 0, 1)));
    }
    expect_err(report(0, (rp_CodecLoss){.stage = 1, .lost = 1, .all = 1}), RP_ERR_PEER);
    expect_err(report(0, (rp_CodecLoss){.stage = UINT32_MAX, .lost = 1, .all = 1}), RP_ERR_PEER);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(losses_are_summed, setup, close_measure),
        cmocka_unit_test_setup_teardown(segments_and_plans_begin_with_nothing, setup,
                                        close_measure),
        cmocka_unit_test_setup_teardown(reports_are_checked, setup, close_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
