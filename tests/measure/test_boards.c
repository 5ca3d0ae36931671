/* Which boards are asked to measure, for what, and which answers are taken. */
#include "measured.h"

static bool may_ask(uint32_t board) {
    return rp_measure_wants(measure, board) && rp_measure_may_ask(measure, board);
}

/* Boards of one machine do not disturb each other, and those that are alike are measured once. */
static void machines_measure_with_one_board(void **state) {
    (void)state;
    open_measure("ring.boards=4", (rp_measure_needs){0});
    (void)snprintf(ring.board[2].address.endpoint, sizeof ring.board[2].address.endpoint,
                   "tcp://board0:2");
    memcpy(ring.board[2].hardware.kind, ring.board[0].hardware.kind,
           sizeof ring.board[2].hardware.kind);
    (void)snprintf(ring.board[3].address.endpoint, sizeof ring.board[3].address.endpoint,
                   "tcp://board0:3");
    memcpy(ring.board[3].hardware.kind, ring.board[0].hardware.kind,
           sizeof ring.board[3].hardware.kind);
    (void)snprintf(ring.board[3].device_text, sizeof ring.board[3].device_text, "another device");
    expect_ok(rp_measure_begin(measure, 0));
    assert_false(rp_measure_is_building(measure));
    assert_false(rp_measure_wants(measure, 2)); /* board 0 is measured for it */
    assert_true(may_ask(0) && may_ask(1) && may_ask(3));
    ring.board[0].machine.asked = true;
    assert_true(may_ask(1));
    assert_false(may_ask(3)); /* of the same machine */
    ring.board[0].measure.profiled = true;
    assert_true(may_ask(3));
    char text[160];
    rp_measure_describe_order(measure, 3, text, sizeof text);
    assert_string_equal(text, "profiling: measuring board 3, 3 of 3 that differ");
}

/* A board that is alike has what was measured of the other one. */
static void boards_that_are_alike_share_a_profile(void **state) {
    (void)state;
    open_plain();
    (void)snprintf(ring.board[1].address.endpoint, sizeof ring.board[1].address.endpoint,
                   "tcp://board0:2");
    memcpy(ring.board[1].hardware.kind, ring.board[0].hardware.kind,
           sizeof ring.board[1].hardware.kind);
    assert_false(rp_measure_has_profile(measure));
    measure_all();
    assert_true(rp_measure_has_profile(measure));
    const rp_profile *profile = rp_measure_profile(measure);
    assert_string_equal(profile->board[1].like, "0");
    assert_true(profile->board[1].known);
    for (uint32_t i = 0; i < 2 * LAYERS; i++) {
        expect_close(rp_measure_layer_seconds(measure)[i], 1e-3, 1e-9, 0);
    }
}

/* A cut gives each layer the seconds of the board that has it. */
static void seconds_follow_the_cut(void **state) {
    static const uint32_t first[] = {0, 1, LAYERS};
    const rp_cut cut = {.stage_count = 2, .first = first};
    (void)state;
    open_plain();
    measure_all();
    rp_measure_place(measure);
    rp_measure_take_cut(measure, &cut);
    for (uint32_t i = 0; i < 2 * LAYERS; i++) {
        expect_close(rp_measure_layer_seconds(measure)[i], i < 2 ? 1e-3 : 2e-3, 1e-9, 0);
    }
}

/* One board builds for each core. None do on one core, or if each board has its own. */
static void boards_build_first_where_they_share_cores(void **state) {
    (void)state;
    open_measure("ring.boards=4", (rp_measure_needs){0});
    for (uint32_t cores = 0; cores < 2; cores++) {
        expect_ok(rp_measure_begin(measure, cores));
        assert_false(rp_measure_is_building(measure));
    }
    for (uint32_t cores = 2; cores < 7; cores++) {
        rp_measure_answer said;
        rp_sink_part part;
        expect_ok(rp_measure_begin(measure, cores));
        assert_true(rp_measure_is_building(measure));
        ring.board[0].machine.asked = true;
        for (uint32_t k = 0; k < 4; k++) {
            assert_int_equal(rp_measure_wants(measure, k), k < cores);
            assert_int_equal(may_ask(k), k < cores);
        }
        ring.board[0].machine.asked = false;
        expect_ok(give_answer(0, NULL, 0, &said)); /* it has built */
        assert_false(said.again || rp_measure_are_boards_done(measure, &part));
        assert_string_equal(part.unit, "layers");
        assert_int_equal(rp_measure_find_missing(measure), 1);
        assert_int_equal(part.done, LAYERS);
        assert_int_equal(part.total, LAYERS * (cores < 4 ? cores : 4));
        rp_measure_end_building(measure);
        assert_false(rp_measure_is_building(measure));
        assert_true(rp_measure_wants(measure, 3));
    }
}

/* Times that are negative or not finite, and answers of another length, are refused. */
static void impossible_times_are_refused(void **state) {
    static const double bad[] = {-1, (double)NAN, (double)INFINITY};
    rp_Profile order = {0};
    rp_measure_answer said;
    size_t count;
    (void)state;
    open_plain();
    expect_ok(rp_measure_begin(measure, 0));
    expect_ok(rp_measure_order(measure, 0, &order));
    assert_true(order.samples_count > 0 && order.seconds > 0);
    double *values = make_answer(&order, 1e-3, &count);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        values[0] = bad[i];
        expect_err(give_answer(0, values, count, &said), RP_ERR_PEER);
        assert_false(rp_measure_profile(measure)->board[0].known);
    }
    values[0] = 1e-3;
    expect_err(give_answer(0, values, count - 1, &said), RP_ERR_PEER);
    expect_err(give_answer(0, values, 0, &said), RP_ERR_PEER);
    expect_ok(give_answer(0, values, count, &said));
    assert_true(rp_measure_profile(measure)->board[0].known);
}

/* A board that does not know sizes gets an order without any. */
static void old_boards_measure_one_size(void **state) {
    rp_Profile order = {0};
    (void)state;
    open_plain();
    ring.features &= ~(RP_WIRE_FEATURE_SIZES | RP_WIRE_FEATURE_BESIDES);
    expect_ok(rp_measure_begin(measure, 0));
    expect_ok(rp_measure_order(measure, 0, &order));
    assert_int_equal(order.samples_count + order.seconds + order.besides, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(machines_measure_with_one_board, setup, close_measure),
        cmocka_unit_test_setup_teardown(boards_that_are_alike_share_a_profile, setup,
                                        close_measure),
        cmocka_unit_test_setup_teardown(seconds_follow_the_cut, setup, close_measure),
        cmocka_unit_test_setup_teardown(boards_build_first_where_they_share_cores, setup,
                                        close_measure),
        cmocka_unit_test_setup_teardown(impossible_times_are_refused, setup, close_measure),
        cmocka_unit_test_setup_teardown(old_boards_measure_one_size, setup, close_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
