/* Norms of gradients and the decision on a step; updates that are left out; gains of predictions.
 */
#include "segment.h"

#include "optim/optim.h"

static rp_err say_norms(uint32_t board, uint32_t stage, uint64_t step, const double *sumsq,
                        uint32_t count) {
    rp_message message = {
        .frame = {.which_body = RP_KIND_NORMS, .body.norms = {.step = step, .stage = stage}}};
    message.part_count = 1;
    message.part[0] = rp_part_of_array(RP_DTYPE_F64, sumsq, count);
    return rp_train_on_norms(train, board, &message);
}

static void open_clipped(void) {
    static const char *const set[] = {"optimizer.clip_norm=0.5"};
    open_train_with(set, 1);
    expect_ok(rp_train_begin(train, EPOCH));
}

static const rp_StepDecision *decision_of(uint32_t board) {
    pass_ms(2);
    return &far[board].last[RP_KIND_STEP_DECISION].body.step_decision;
}

/* 1 + 2^-53 is 1: a sum that begins with the small ones is larger. */
static void norms_are_summed_in_the_order_of_the_model(void **state) {
    (void)state;
    const double small = ldexp(1, -53);
    const double norms[BOARDS][2] = {{1, small}, {small, small}, {small, small}};
    static const uint32_t orders[][BOARDS] = {{2, 1, 0}, {0, 1, 2}, {1, 0, 2}};
    for (uint64_t step = 0; step < 3; step++) {
        if (step == 0) {
            open_clipped();
        }
        for (uint32_t i = 0; i < BOARDS; i++) {
            const uint32_t board = orders[step][i];
            assert_int_equal(far[0].orders[RP_KIND_STEP_DECISION], step);
            expect_ok(say_norms(board, board, step, norms[board], 2));
            pass_ms(2);
        }
        for (uint32_t k = 0; k < BOARDS; k++) {
            const rp_StepDecision *decision = decision_of(k);
            assert_int_equal(decision->step, step);
            assert_false(decision->skip);
            assert_true(decision->scale == rp_optim_clip_scale(0.5, 1));
        }
    }
    close_train();
}

static void a_step_with_a_bad_gradient_is_skipped_by_all(void **state) {
    (void)state;
    static const double good[] = {1, 1};
    const double bad[] = {1, (double)INFINITY};
    open_clipped();
    expect_ok(say_norms(0, 0, 0, good, 2));
    expect_ok(say_norms(1, 1, 0, bad, 2));
    expect_ok(say_norms(2, 2, 0, good, 2));
    assert_true(decision_of(2)->skip);
    expect_events(1, .kind = RP_EVENT_SKIPPED_STEP, .step = 1);
    assert_int_equal(ring.board[0].train.skipped_row, 1);
    close_train();
}

/* The range of f16 may be the reason, so the event names it. */
static void a_skipped_step_names_the_range_of_f16(void **state) {
    (void)state;
    static const char *const set[] = {"optimizer.clip_norm=0.5", "train.storage.activations=f16"};
    const double bad[] = {1, (double)INFINITY};
    open_train_with(set, 2);
    expect_ok(rp_train_begin(train, EPOCH));
    for (uint32_t k = 0; k < BOARDS; k++) {
        expect_ok(say_norms(k, k, 0, bad, 2));
    }
    assert_true(decision_of(2)->skip);
    expect_events(1, .kind = RP_EVENT_SKIPPED_STEP, .step = 1,
                  .advice = "with train.storage.activations f16, activations above 65504 become "
                            "infinite; bf16 has the range of f32");
    close_train();
}

static void wrong_norms_are_refused(void **state) {
    (void)state;
    static const double norms[] = {1, 1, 1};
    open_clipped();
    expect_err(say_norms(0, 1, 0, norms, 2), RP_ERR_PEER); /* another board's stage */
    expect_err(say_norms(0, 9, 0, norms, 2), RP_ERR_PEER);
    expect_err(say_norms(0, 0, 0, norms, 1), RP_ERR_PEER);
    expect_err(say_norms(0, 0, 0, norms, 3), RP_ERR_PEER);
    expect_ok(say_norms(0, 0, 0, norms, 2));
    expect_err(say_norms(0, 0, 0, norms, 2), RP_ERR_PEER);
    assert_non_null(strstr(rp_err_message(), "board 0 sent its norms of step 0 twice"));
    expect_err(say_norms(1, 1, 1, norms, 2), RP_ERR_PEER);
    assert_non_null(strstr(rp_err_message(), "board 1 sent norms of step 1, expected step 0"));
    assert_int_equal(far[0].orders[RP_KIND_STEP_DECISION], 0);
    close_train();
}

/* Boards 0 and 1 share the first stage; the norms of board 0 decide, whichever come first. */
static void boards_of_a_stage_have_equal_norms(void **state) {
    (void)state;
    static const char *const set[] = {"optimizer.clip_norm=0.5"};
    static const double norms[2][4] = {{1, 0, 0, 0}, {1 + 1e-9, 0, 0, 0}};
    static const double zeros[2];
    static const double other[4] = {1.1, 0, 0, 0};
    for (uint32_t first = 0; first < 2; first++) {
        open_train_as(set, 1, true);
        expect_ok(rp_train_begin(train, EPOCH));
        expect_ok(say_norms(first, 0, 0, norms[first], 4));
        expect_ok(say_norms(1 - first, 0, 0, norms[1 - first], 4));
        expect_ok(say_norms(LAST, 1, 0, zeros, 2));
        assert_true(decision_of(0)->scale == rp_optim_clip_scale(0.5, 1));
        expect_ok(say_norms(first, 0, 1, norms[first], 4));
        expect_err(say_norms(1 - first, 0, 1, other, 4), RP_ERR_FAULT);
        assert_non_null(strstr(rp_err_message(), "share stage 0 and have different gradients"));
        close_train();
    }
}

/* ---- gains of predictions -------------------------------------------------------------------- */

/* Sums of squares of each parameter's error, of its stale error, and of its prediction. */
static rp_err say_prediction(uint32_t board, const rp_PredictionError *report, const double *sums,
                             uint32_t params) {
    rp_message message = {
        .frame = {.which_body = RP_KIND_PREDICTION_ERROR, .body.prediction_error = *report},
        .part_count = 1};
    message.part[0] = rp_part_of_array(RP_DTYPE_F64, sums, 3 * (size_t)params);
    return rp_train_on_prediction(train, board, &message);
}

static void a_stage_gets_the_gains_of_its_own(void **state) {
    (void)state;
    static const char *const set[] = {"schedule={kind: pipeoptim, horizon: measured}"};
    static const double sums[9] = {0, 4, 1, 1, 4, 1, 1, 4, 1};
    open_train_with(set, 1);
    expect_ok(rp_train_begin(train, EPOCH));
    const rp_PredictionError good = {.step = 0, .effect = 8, .staleness = 0};
    rp_PredictionError bad = good;
    bad.staleness = 7;
    expect_err(say_prediction(LAST, &bad, sums, 2), RP_ERR_PEER); /* not this schedule's */
    bad = good;
    bad.effect = 0;
    expect_err(say_prediction(LAST, &bad, sums, 2), RP_ERR_PEER);  /* has begun already */
    expect_err(say_prediction(LAST, &good, sums, 3), RP_ERR_PEER); /* it has two parameters */
    expect_ok(say_prediction(LAST, &good, sums, 2));
    pass_ms(2);
    assert_int_equal(far[LAST].orders[RP_KIND_PREDICTION_GAIN], 1);
    assert_int_equal(far[LAST].last[RP_KIND_PREDICTION_GAIN].body.prediction_gain.step, 8);
    assert_int_equal(far[0].orders[RP_KIND_PREDICTION_GAIN], 0);
    expect_events(1, .kind = RP_EVENT_TRUST, .stage = 2, .tensors = 2);
    expect_ok(rp_train_repeat_gains(train)); /* as to boards of a resumed run */
    pass_ms(2);
    assert_int_equal(far[LAST].orders[RP_KIND_PREDICTION_GAIN], 2);
    close_train();
}

/* ---- numbers that are not finite ------------------------------------------------------------- */

static void a_run_that_diverges_ends(void **state) {
    (void)state;
    static const char *const set[] = {"train.stop_after.non_finite=2"};
    bool paused;
    for (uint32_t skips = 0; skips < 2; skips++) {
        rp_FaultClass fault_class = RP_FAULT_UNKNOWN;
        const rp_message message = {.frame = {.which_body = RP_KIND_SKIPPED}};
        rp_message next = message;
        next.frame.body.skipped.step = 1;
        open_train_with(set, 1);
        expect_ok(rp_train_begin(train, EPOCH));
        expect_ok(skips ? rp_train_on_skipped(train, 1, &message) : do_step((double)NAN));
        expect_ok(rp_train_step(train, false, &paused, &fault_class));
        expect_ok(skips ? rp_train_on_skipped(train, 1, &next) : do_step((double)NAN));
        expect_err(rp_train_step(train, false, &paused, &fault_class), RP_ERR_FAULT);
        assert_int_equal(fault_class, RP_FAULT_FATAL);
        assert_non_null(strstr(rp_err_message(),
                               skips ? "and 2 updates were skipped" : "since step 1, for 2 steps"));
        close_train();
    }
}

static void a_result_that_is_not_finite_is_of_no_use(void **state) {
    (void)state;
    rp_FaultClass fault_class = RP_FAULT_UNKNOWN;
    open_train();
    expect_ok(rp_train_check_result(train, &fault_class));
    expect_ok(rp_train_note_saved(train, "fc1.w", 0, false, &fault_class));
    assert_int_equal(fault_class, RP_FAULT_UNKNOWN);
    expect_events(1, .kind = RP_EVENT_UNSAVED_TENSOR, .tensor = "fc1.w");
    expect_err(rp_train_check_result(train, &fault_class), RP_ERR_FAULT);
    assert_int_equal(fault_class, RP_FAULT_FATAL);
    expect_ok(rp_train_note_saved(train, NULL, 0, true, &fault_class));
    expect_ok(rp_train_check_result(train, &fault_class));
    fault_class = RP_FAULT_UNKNOWN;
    expect_err(rp_train_note_saved(train, "fc1.w", 0, true, &fault_class), RP_ERR_FAULT);
    assert_int_equal(fault_class, RP_FAULT_FATAL);
    close_train();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(norms_are_summed_in_the_order_of_the_model, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_step_with_a_bad_gradient_is_skipped_by_all, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_skipped_step_names_the_range_of_f16, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_norms_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(boards_of_a_stage_have_equal_norms, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stage_gets_the_gains_of_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_that_diverges_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(a_result_that_is_not_finite_is_of_no_use, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
