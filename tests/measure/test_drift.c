/* Predicted against measured: ops of boards, steps, and wires of the plan in force. */
#include "measured.h"

static void open_plan(const char *set) {
    open_measure(set, (rp_measure_needs){0});
    measure_all();
    take_plan();
    assert_non_null(rp_drift_prediction(measure));
}

/* So many forwards of a board's stage, `factor` times as long as predicted. */
static void note_ops(uint32_t board, uint32_t count, double factor, bool evaluation) {
    const double op_s = rp_drift_prediction(measure)->op_s[board][RP_OP_FORWARD];
    const rp_sink_op op = {.stage = board,
                           .part = board,
                           .kind = RP_OP_FORWARD,
                           .evaluation = evaluation,
                           .samples = {0, run.micro},
                           .end_ns = (int64_t)(factor * op_s * (double)RP_NS_PER_S)};
    for (uint32_t i = 0; i < count; i++) {
        rp_drift_note_op(measure, plan, &op);
    }
}

/* Eight ops are enough. Only whole microbatches that are trained count. */
static void factors_come_from_ops(void **state) {
    (void)state;
    open_plan(NULL);
    note_ops(1, 7, 3, false);
    note_ops(1, 100, 5, true); /* of an evaluation */
    assert_true(rp_drift_board_factor(measure, plan, 1) == 1);
    note_ops(1, 1, 3, false);
    expect_close(rp_drift_board_factor(measure, plan, 1), 3, 1e-5, 0);
    assert_true(rp_drift_board_factor(measure, plan, 0) == 1);
    rp_sink_op op = {.stage = 1, .part = 0, .end_ns = RP_NS_PER_S};
    rp_drift_note_op(measure, plan, &op); /* it does not hold this stage */
    op.part = UINT32_MAX;
    rp_drift_note_op(measure, plan, &op);
    op.part = 1;
    op.samples.count = run.micro - 1; /* a part of a microbatch */
    rp_drift_note_op(measure, plan, &op);
    expect_close(rp_drift_board_factor(measure, plan, 1), 3, 1e-5, 0);
}

/* What was measured is predicted from there on, and counting starts again. */
static void factors_are_taken(void **state) {
    const rp_prediction *predicted;
    (void)state;
    open_plan(NULL);
    const double before_s = rp_drift_prediction(measure)->op_s[1][RP_OP_FORWARD];
    note_ops(1, 8, 3, false);
    expect_ok(rp_drift_take_factors(measure, plan, &predicted));
    expect_close(predicted->op_s[1][RP_OP_FORWARD], 3 * before_s, 1e-5, 0);
    assert_true(rp_drift_board_factor(measure, plan, 1) == 1);
    rp_drift_count_change(measure);
    rp_summary_prediction told;
    expect_ok(rp_drift_tell(measure, plan, &arena, &told));
    assert_int_equal(told.cuts, 1);
    assert_int_equal(told.op_count, 0);
    assert_true(told.step_s == predicted->step_s);
}

/* Seconds between two steps of a segment; the set-up ends where a segment begins. */
static void steps_and_set_ups_are_timed(void **state) {
    rp_summary_prediction told;
    (void)state;
    open_plan(NULL);
    rp_drift_note_assign(measure);
    ring.now_ns += 5 * RP_NS_PER_S;
    rp_drift_begin_segment(measure);
    assert_true(rp_drift_setup_s(measure) == 5);
    for (uint32_t segment = 0; segment < 2; segment++) {
        ring.now_ns += 9 * RP_NS_PER_S;
        rp_drift_begin_segment(measure);
        rp_drift_note_step(measure); /* it fills the pipes */
        for (uint32_t i = 0; i < 4; i++) {
            expect_ok(rp_drift_tell(measure, plan, &arena, &told));
            assert_true(isnan(told.measured_step_s)); /* too few steps */
            ring.now_ns += RP_NS_PER_S / 4;
            rp_drift_note_step(measure);
        }
    }
    assert_true(rp_drift_setup_s(measure) == 5);
    expect_ok(rp_drift_tell(measure, plan, &arena, &told));
    assert_true(told.measured_step_s == 0.25);
}

/* A wire that carries a tenth of what it is emulated with is ten times as slow. Wires that are not
 * used, or of which nothing was seen, are as predicted. */
static void wires_drift(void **state) {
    (void)state;
    open_plan("ring.link={rate_mbit: 1}");
    assert_true(rp_drift_wire_factor(measure, plan, 0, 1) == 1);
    ring.board[0].facts.link_count = 1;
    ring.board[0].facts.link[0] = (rp_board_link){.peer = 1, .rate = 12500};
    expect_close(rp_drift_wire_factor(measure, plan, 0, 1), 10, 0.01, 0);
    assert_true(rp_drift_wire_factor(measure, plan, 1, 0) == 1);
    ring.board[0].facts.link[0].rate = 125000;
    assert_true(rp_drift_wire_factor(measure, plan, 0, 1) == 1);
    ring.board[0].facts.link[0].rate = (double)NAN;
    assert_true(rp_drift_wire_factor(measure, plan, 0, 1) == 1);
}

/* Without a profile nothing is predicted, and another plan begins with nothing. */
static void nothing_is_known_at_first(void **state) {
    rp_summary_prediction told;
    (void)state;
    open_plain();
    take_plan();
    assert_null(rp_drift_prediction(measure));
    rp_measure_close(measure);
    rp_runfile_close(&run);
    open_plan(NULL);
    note_ops(0, 8, 2, false);
    expect_ok(rp_drift_tell(measure, plan, &arena, &told));
    assert_int_equal(told.op_count, 1);
    expect_close(told.op[0].measured_s, 2 * told.op[0].predicted_s, 1e-5, 0);
    take_plan();
    assert_true(rp_drift_board_factor(measure, plan, 0) == 1);
    expect_ok(rp_drift_tell(measure, NULL, &arena, &told));
    assert_int_equal(told.op_count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(factors_come_from_ops, setup, close_measure),
        cmocka_unit_test_setup_teardown(factors_are_taken, setup, close_measure),
        cmocka_unit_test_setup_teardown(steps_and_set_ups_are_timed, setup, close_measure),
        cmocka_unit_test_setup_teardown(wires_drift, setup, close_measure),
        cmocka_unit_test_setup_teardown(nothing_is_known_at_first, setup, close_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
