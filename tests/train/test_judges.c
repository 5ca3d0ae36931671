/* Microbatches that are computed again: what boards recorded, what a judge says, and a second one.
 */
#include "segment.h"

static const char bytes[64] = "record";

/* At the pause after the first step, which is verified. */
static void open_verified(void) {
    static const char *const set[] = {"ring.verify=1/2"};
    open_train_with(set, 1);
    expect_ok(rp_train_begin(train, EPOCH));
    pass_ms(2);
    assert_true(far[1].last[RP_KIND_START].body.start.verify);
    assert_int_equal(far[1].last[RP_KIND_START].body.start.pause, 1);
    expect_ok(do_step(BATCH));
    finish_boards(0);
    assert_true(reach_pause(false));
    expect_ok(rp_train_end_segment(train));
    assert_true(rp_verify_is_due(train));
    assert_true(rp_verify_is_alone(train)); /* the segment would have gone on */
    expect_ok(rp_verify_begin(train));
    pass_ms(2);
    for (uint32_t k = 0; k < BOARDS; k++) {
        assert_int_equal(far[k].orders[RP_KIND_RECORD], 1);
        assert_int_equal(far[k].last[RP_KIND_RECORD].body.record.stage, k);
    }
}

static rp_err say_record(uint32_t board, uint64_t first, uint64_t total, uint64_t forward) {
    rp_message message = {.frame = {.which_body = RP_KIND_RECORD,
                                    .body.record = {.stage = board,
                                                    .first = first,
                                                    .total = total,
                                                    .forward = forward}},
                          .part_count = total > 0};
    message.part[0] = rp_part_of_bytes(bytes, sizeof bytes);
    return rp_verify_on_record(train, board, &message);
}

static rp_err say_recomputed(uint32_t judge, uint32_t stage, uint64_t forward) {
    const rp_message message = {.frame = {.which_body = RP_KIND_RECOMPUTED,
                                          .body.recomputed = {.stage = stage, .forward = forward}}};
    return rp_verify_on_recomputed(train, judge, &message);
}

static bool step_once(void) {
    bool over;
    uint32_t wrong = BOARDS;
    rp_FaultClass fault_class = RP_FAULT_UNKNOWN;
    expect_ok(rp_verify_step(train, &over, &wrong, &fault_class));
    assert_int_equal(wrong, BOARDS);
    assert_int_equal(fault_class, RP_FAULT_UNKNOWN);
    pass_ms(2);
    return over;
}

static void equal_bits_go_on(void **state) {
    (void)state;
    open_verified();
    assert_false(step_once());
    for (uint32_t k = 0; k < BOARDS; k++) {
        expect_ok(say_record(k, 0, 2 * sizeof bytes, k));
    }
    assert_false(step_once()); /* half of each record is missing */
    assert_int_equal(far[1].orders[RP_KIND_RECORD], 1);
    for (uint32_t k = 0; k < BOARDS; k++) {
        expect_ok(say_record(k, sizeof bytes, 2 * sizeof bytes, k));
    }
    assert_false(step_once());
    for (uint32_t k = 0; k < BOARDS; k++) { /* each has the next one for its judge */
        const uint32_t judge = (k + 1) % BOARDS;
        assert_int_equal(far[judge].orders[RP_KIND_RECORD], 2);
        assert_int_equal(far[judge].last[RP_KIND_RECORD].body.record.stage, k);
        expect_err(say_recomputed(k, k, k), RP_ERR_PEER); /* not its record */
        expect_ok(say_recomputed(judge, k, k));
    }
    assert_true(step_once());
    assert_false(rp_verify_is_due(train));
    assert_int_equal(rp_verify_tell(train).stages, BOARDS);
    assert_int_equal(rp_verify_tell(train).wrong, 0);
    expect_events(1, .kind = RP_EVENT_VERIFY_SAME, .verified = 3, .board_count = 3);
    close_train();
}

/* What board 1 recorded, what its judge (board 2) and the second judge (board 0) computed. */
static void a_third_board_decides(void **state) {
    (void)state;
    static const struct {
        uint64_t first, judge, second;
        uint32_t wrong;
        rp_FaultClass fault_class;
    } cases[] = {{7, 1, 1, 1, RP_FAULT_BOARD},
                 {7, 1, 7, 2, RP_FAULT_BOARD},
                 {7, 1, 9, BOARDS, RP_FAULT_FATAL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool over;
        uint32_t wrong = BOARDS;
        rp_FaultClass fault_class = RP_FAULT_UNKNOWN;
        open_verified();
        for (uint32_t k = 0; k < BOARDS; k++) {
            expect_ok(say_record(k, 0, sizeof bytes, k == 1 ? cases[i].first : k));
        }
        assert_false(step_once());
        for (uint32_t k = 0; k < BOARDS; k++) {
            expect_ok(say_recomputed((k + 1) % BOARDS, k, k == 1 ? cases[i].judge : k));
        }
        assert_false(step_once()); /* chooses the second judge, */
        assert_false(step_once()); /* which gets the record */
        assert_int_equal(far[0].orders[RP_KIND_RECORD], 3);
        assert_int_equal(far[0].last[RP_KIND_RECORD].body.record.stage, 1);
        expect_events(1, .kind = RP_EVENT_VERIFY_DIFFERS, .board = "1", .peer = "2", .judge = "0");
        expect_ok(say_recomputed(0, 1, cases[i].second));
        expect_err(rp_verify_step(train, &over, &wrong, &fault_class), RP_ERR_FAULT);
        assert_int_equal(wrong, cases[i].wrong);
        assert_int_equal(fault_class, cases[i].fault_class);
        assert_int_equal(rp_verify_tell(train).wrong, wrong < BOARDS);
        rp_verify_abandon(train);
        assert_false(rp_verify_is_due(train) || rp_verify_is_alone(train));
        close_train();
    }
}

static void records_that_do_not_fit_are_refused(void **state) {
    (void)state;
    open_verified();
    expect_err(say_record(0, 0, UINT64_C(1) << 40, 0), RP_ERR_PEER); /* more than a stage has */
    expect_err(say_record(0, sizeof bytes, 2 * sizeof bytes, 0), RP_ERR_PEER);
    expect_ok(say_record(1, 0, 0, 0)); /* it has none of this step */
    expect_err(say_record(1, 0, 0, 0), RP_ERR_PEER);
    expect_err(rp_verify_late(train, 1800 * RP_NS_PER_S), RP_ERR_TIMEOUT);
    assert_non_null(strstr(rp_err_message(), "board 0 has not sent its record for 1800 s"));
    rp_verify_abandon(train);
    close_train();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(equal_bits_go_on, setup, teardown),
        cmocka_unit_test_setup_teardown(a_third_board_decides, setup, teardown),
        cmocka_unit_test_setup_teardown(records_that_do_not_fit_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
