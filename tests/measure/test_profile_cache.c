/* Profiles of former runs: a probe says whether they still hold. */
#include "measured.h"

static rp_measure_needs with_profiles(void) {
    return (rp_measure_needs){.profiles = folder};
}

/* The next run of the same boards. */
static void open_again(rp_measure_needs needs) {
    rp_measure_close(measure);
    rp_runfile_close(&run);
    open_measure(NULL, needs);
}

static void order_of(uint32_t board, rp_Profile *order, char *text, size_t bytes) {
    *order = (rp_Profile){0};
    expect_ok(rp_measure_order(measure, board, order));
    rp_measure_describe_order(measure, board, text, bytes);
}

/* The answer to a probe: so long a pass. */
static rp_err probe(double pass_s, rp_measure_answer *said) {
    rp_Profile order;
    char text[160];
    size_t count;
    order_of(0, &order, text, sizeof text);
    assert_non_null(strstr(text, "probing board 0"));
    assert_int_equal(order.samples_count, 1);
    assert_int_equal(order.layer_count, LAYERS);
    const double *values = make_answer(&order, pass_s, &count);
    return give_answer(0, values, count, said);
}

/* Boards that take about as long as before are not measured, and nothing is built for that. */
static void a_kept_profile_that_holds_is_used(void **state) {
    rp_measure_answer said;
    (void)state;
    open_measure(NULL, with_profiles());
    measure_boards();
    open_again(with_profiles());
    expect_ok(rp_measure_begin(measure, 4));
    assert_false(rp_measure_is_building(measure));
    expect_ok(probe(1.2e-3, &said));
    assert_false(said.again);
    assert_string_equal(said.note, "");
    const rp_profile_board *board = &rp_measure_profile(measure)->board[0];
    assert_true(board->known);
    expect_close(
        rp_profile_pass_s(rp_measure_profile(measure), 0, 0, 1, RP_MEASURED_FORWARD, run.micro),
        1e-3, 1e-6, 0);
}

/* One that takes twice as long has to measure all, and that is kept then. */
static void a_kept_profile_that_does_not_hold_is_measured_again(void **state) {
    rp_measure_answer said;
    rp_Profile order;
    char text[160];
    size_t count;
    (void)state;
    open_measure(NULL, with_profiles());
    measure_boards();
    open_again(with_profiles());
    expect_ok(rp_measure_begin(measure, 0));
    expect_ok(probe(2e-3, &said));
    assert_true(said.again);
    assert_string_equal(
        said.note, "board 0 takes 2.00 times as long as in a former run: it is measured again");
    assert_false(rp_measure_profile(measure)->board[0].known);
    order_of(0, &order, text, sizeof text);
    assert_non_null(strstr(text, "measuring board 0"));
    assert_int_equal(order.layer_count, 0);
    const double *values = make_answer(&order, 2e-3, &count);
    expect_ok(give_answer(0, values, count, &said));
    assert_false(said.again);
    open_again(with_profiles());
    expect_ok(rp_measure_begin(measure, 0));
    expect_ok(probe(2e-3, &said));
    assert_false(said.again);
}

/* An answer that is not one to a probe is a fault of the board. */
static void answers_to_probes_are_checked(void **state) {
    static const double bad[] = {-1, (double)NAN, (double)INFINITY};
    rp_measure_answer said;
    double value = 1;
    (void)state;
    open_measure(NULL, with_profiles());
    measure_boards();
    open_again(with_profiles());
    expect_ok(rp_measure_begin(measure, 0));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_err(probe(bad[i], &said), RP_ERR_PEER);
    }
    expect_err(give_answer(0, &value, 1, &said), RP_ERR_PEER);
    expect_ok(probe(1e-3, &said));
    assert_false(said.again);
}

/* PROFILE measures all, and so does a run of another device, or without the folder. */
static void other_runs_measure_all(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        rp_measure_needs needs = with_profiles();
        rp_Profile order;
        char text[160];
        needs.only_profiles = i == 0;
        open_measure(NULL, needs);
        measure_boards();
        needs.profiles = i == 1 ? NULL : folder;
        open_again(needs);
        ring.board[0].hardware.kind[0] = i == 2 ? 'K' : 'k';
        expect_ok(rp_measure_begin(measure, 0));
        order_of(0, &order, text, sizeof text);
        assert_non_null(strstr(text, "measuring board 0"));
        rp_measure_close(measure);
        rp_runfile_close(&run);
    }
    open_plain();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_kept_profile_that_holds_is_used, setup, close_measure),
        cmocka_unit_test_setup_teardown(a_kept_profile_that_does_not_hold_is_measured_again, setup,
                                        close_measure),
        cmocka_unit_test_setup_teardown(answers_to_probes_are_checked, setup, close_measure),
        cmocka_unit_test_setup_teardown(other_runs_measure_all, setup, close_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
