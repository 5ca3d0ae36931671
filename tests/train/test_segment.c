/* Segments and passes, from the order to the pause. */
#include "segment.h"

static void boards_are_fed_up_to_the_pause(void **state) {
    (void)state;
    open_train();
    expect_ok(rp_train_begin(train, EPOCH));
    assert_true(rp_train_segment_start_ns(train) > 0);
    assert_false(reach_pause(false)); /* no board has said anything */
    for (uint32_t k = 0; k < BOARDS; k++) {
        const rp_Start *start = &far[k].last[RP_KIND_START].body.start;
        assert_int_equal(far[k].orders[RP_KIND_START], 1);
        assert_int_equal(start->step_first, 0);
        assert_int_equal(start->pause, EPOCH);
        assert_false(start->drain);
        assert_int_equal(far[k].inputs, k == 0 ? 2 * EPOCH : 0); /* two microbatches a step */
        assert_int_equal(far[k].labels > 0, k == LAST);
    }
    for (uint64_t step = 0; step < EPOCH; step++) {
        assert_int_equal(position.step, step);
        expect_ok(do_step(BATCH));
    }
    assert_false(reach_pause(false)); /* steps are done, boards have not paused */
    finish_boards(0);
    ring.board[1].train.finished = false;
    assert_false(reach_pause(false));
    ring.board[1].train.finished = true;
    assert_true(reach_pause(false));
    expect_ok(rp_train_end_segment(train));
    assert_int_equal(rp_train_segment_start_ns(train), 0);
    assert_int_equal(position.step, EPOCH);
    assert_int_equal(position.ledger.samples, EPOCH * BATCH);
    assert_int_equal(rp_train_drained_at(train), EPOCH); /* gpipe flushes */
    close_train();
}

/* A pause waits for parcels on their way. */
static void a_parcel_on_its_way_holds_the_pause(void **state) {
    (void)state;
    open_train();
    far[0].is_cut = true;
    expect_ok(rp_train_begin(train, EPOCH));
    assert_false(reach_pause(false));
    while (position.step < EPOCH) {
        expect_ok(do_step(BATCH));
    }
    finish_boards(0);
    assert_false(reach_pause(false));
    far[0].is_cut = false;
    assert_true(reach_pause(false));
    close_train();
}

static void a_stop_comes_before_the_first_step_that_is_not_sent(void **state) {
    (void)state;
    bool paused;
    rp_FaultClass fault_class = RP_FAULT_UNKNOWN;
    open_train();
    expect_ok(rp_train_begin(train, EPOCH));
    expect_ok(rp_train_step(train, true, &paused, &fault_class)); /* nothing was sent so far */
    assert_false(paused);
    pass_ms(5);
    assert_int_equal(far[1].orders[RP_KIND_STOP], 1);
    assert_int_equal(far[1].last[RP_KIND_STOP].body.stop.step, 0);
    expect_err(say_done(LAST, 0, BATCH, 1), RP_ERR_PEER); /* the segment has no step now */
    finish_boards(0);
    assert_true(reach_pause(true));
    expect_ok(rp_train_end_segment(train));
    assert_int_equal(far[1].orders[RP_KIND_STOP], 1);
    close_train();
}

static void wrong_reports_are_refused(void **state) {
    (void)state;
    rp_loss_sum sum;
    open_train();
    expect_ok(rp_train_begin(train, EPOCH));
    expect_err(say_done(0, 0, BATCH, 1), RP_ERR_PEER);        /* it has not the last stage */
    expect_err(say_done(LAST, 0, BATCH - 1, 1), RP_ERR_PEER); /* not the plan's samples */
    expect_err(say_done(LAST, EPOCH, BATCH, 1), RP_ERR_PEER); /* after the segment */
    assert_false(rp_train_take_step(train, &sum));
    expect_ok(say_done(LAST, 0, BATCH, 1));
    expect_err(say_done(LAST, 0, BATCH, 1), RP_ERR_PEER); /* twice */
    assert_true(rp_train_take_step(train, &sum));
    expect_ok(rp_train_end_step(train, &sum));
    expect_err(say_done(LAST, 0, BATCH, 1), RP_ERR_PEER); /* it is over */
    close_train();
}

/* A ledger that is not the plan's is found at the pause; a board's feature says whether it is kept.
 */
static void a_wrong_ledger_is_found(void **state) {
    (void)state;
    open_train();
    expect_ok(rp_train_begin(train, 2));
    expect_ok(do_step(1));
    expect_ok(do_step(1));
    finish_boards(0);
    ring.board[1].train.ledger.samples++;
    assert_true(reach_pause(false));
    expect_err(rp_train_end_segment(train), RP_ERR_PEER);
    assert_non_null(strstr(rp_err_message(), "board 1: its ledger of steps 1 to 2"));
    assert_int_equal(rp_train_tell_ledger(train).repeated, 1);
    assert_int_equal(rp_train_tell_ledger(train).samples, 0);
    close_train();
}

/* A way back forgets the segment; then the same steps are trained again. */
static void a_run_goes_back(void **state) {
    (void)state;
    open_train();
    train_to(2);
    expect_ok(rp_train_begin(train, EPOCH));
    expect_ok(do_step(1));
    rp_train_abandon(train);
    for (uint32_t k = 0; k < BOARDS; k++) {
        rp_link_close(&ring.board[k].feed);
    }
    rp_train_go_back(train);
    assert_int_equal(rp_train_segment_start_ns(train), 0);
    assert_false(rp_train_has_feed(train));
    assert_true(isnan(rp_train_take_round_loss(train)));
    close_train();
}

static void a_round_hears_the_mean_loss(void **state) {
    (void)state;
    open_train();
    expect_ok(rp_train_begin(train, EPOCH));
    expect_ok(do_step(2.0 * BATCH));
    expect_ok(do_step(4.0 * BATCH));
    expect_close(rp_train_take_round_loss(train), 3, 0, 0);
    assert_true(isnan(rp_train_take_round_loss(train)));
    close_train();
}

/* ---- passes ---------------------------------------------------------------------------------- */

static rp_err say_evaluated(uint32_t board, uint32_t samples, double loss_sum, uint32_t correct) {
    const rp_message message = {
        .frame = {
            .which_body = RP_KIND_EVALUATE_DONE,
            .body.evaluate_done = {.samples = samples, .loss_sum = loss_sum, .correct = correct}}};
    return rp_train_on_evaluated(train, board, &message);
}

static bool reach_end_of_pass(void) {
    bool over = false;
    for (uint32_t i = 0; i < 200 && !over; i++) {
        expect_ok(rp_train_step_pass(train, &over));
        pass_ms(1);
    }
    return over;
}

static void a_split_is_scored(void **state) {
    (void)state;
    bool over;
    open_train();
    train_to(EPOCH);
    const uint64_t inputs = far[0].inputs;
    expect_ok(rp_train_begin_evaluation(train, RP_SPLIT_TEST, true));
    pass_ms(2);
    assert_int_equal(far[1].last[RP_KIND_EVALUATE].body.evaluate.samples, TEST);
    assert_false(far[1].last[RP_KIND_EVALUATE].body.evaluate.renew_statistics);
    assert_false(reach_end_of_pass());
    assert_int_equal(far[0].inputs - inputs, TEST / 8);
    expect_err(say_evaluated(LAST, TEST + 1, 1, 0), RP_ERR_PEER);
    expect_err(say_evaluated(0, BATCH, 1, 0), RP_ERR_PEER);
    expect_ok(say_evaluated(LAST, BATCH, 30, 10));
    finish_boards(EPOCH);
    assert_false(reach_end_of_pass()); /* 8 samples are missing */
    assert_false(position.test.done);
    expect_ok(say_evaluated(LAST, TEST - BATCH, 18, 5));
    assert_true(reach_end_of_pass());
    assert_true(position.test.done);
    assert_int_equal(position.test.samples, TEST);
    assert_int_equal(position.test.correct, 15);
    expect_close(position.test.loss, 2, 0, 0);
    expect_ok(rp_train_step_pass(train, &over)); /* without effect */
    assert_true(over);
    assert_int_equal(rp_train_segment_start_ns(train), 0);
    close_train();
}

static void statistics_are_renewed_without_labels(void **state) {
    (void)state;
    static const char *const set[] = {"train.recalibrate=2"};
    open_train_with(set, 1);
    train_to(EPOCH);
    const uint64_t inputs = far[0].inputs;
    const uint64_t labels = far[LAST].labels;
    expect_ok(rp_train_begin_statistics(train));
    pass_ms(2);
    assert_true(far[1].last[RP_KIND_EVALUATE].body.evaluate.renew_statistics);
    assert_false(reach_end_of_pass());
    finish_boards(EPOCH);
    assert_true(reach_end_of_pass());
    assert_int_equal(far[0].inputs - inputs, 2 * 2); /* two batches of two microbatches */
    assert_int_equal(far[LAST].labels, labels);
    assert_false(position.test.done);
    close_train();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(boards_are_fed_up_to_the_pause, setup, teardown),
        cmocka_unit_test_setup_teardown(a_parcel_on_its_way_holds_the_pause, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stop_comes_before_the_first_step_that_is_not_sent, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(wrong_reports_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wrong_ledger_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_goes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(a_round_hears_the_mean_loss, setup, teardown),
        cmocka_unit_test_setup_teardown(a_split_is_scored, setup, teardown),
        cmocka_unit_test_setup_teardown(statistics_are_renewed_without_labels, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
