/* Wires are measured one after the other, each from both ends; what fails is left out. */
#include "fakes.h"

/* `features`: of all boards; which wires are measured depends on them. */
static void open_boards(const char *set, uint64_t features) {
    open_measure(set, (rp_measure_needs){.has_real_wires = true});
    open_fakes();
    ring.features = features;
    measure_boards();
}

static const uint64_t BETWEEN = RP_WIRE_FEATURES & ~RP_WIRE_FEATURE_BESIDES;
static const uint64_t HOST = RP_WIRE_FEATURES & ~RP_WIRE_FEATURE_WIRES;

/* Returns how many ms it took. */
static uint32_t measure_wires(void) {
    bool all = false;
    for (uint32_t ms = 0; ms < 60000; ms++) {
        expect_ok(rp_measure_step_wires(measure, &all));
        if (all) {
            rp_measure_end(measure);
            rp_measure_place(measure);
            pass_ms(1); /* the last messages arrive */
            pass_ms(1);
            return ms;
        }
        pass_ms(1);
    }
    fail_msg("wires are still measured after a minute: %s", fakes.trail);
    return 0;
}

static const rp_profile_wire *wire(uint32_t from, uint32_t to) {
    return rp_profile_wire_at(rp_measure_profile(measure), from, to);
}

#define WIRE(near, far)                                                                            \
    far " listens, " near " dials, " far " measures, " near " both, " far " both, " near           \
        " ends, " far " ends"

/* Three boards in a row have two wires: 0 to 1, then 1 to 2, each both ways. */
static void wires_are_measured_in_turn(void **state) {
    (void)state;
    open_boards("ring.boards=3", BETWEEN);
    fakes.board[1].rate = 2e6;
    fakes.board[2].both_slower = 2;
    assert_true(measure_wires() < 100);
    assert_string_equal(fakes.trail, WIRE("0", "1") ", " WIRE("1", "2"));
    for (uint32_t from = 0; from < 3; from++) {
        for (uint32_t to = 0; to < 3; to++) {
            if (from + 1 == to || to + 1 == from) {
                expect_close(wire(from, to)->bytes_per_s, fakes.board[from].rate, 1e-3, 0);
                expect_close(wire(from, to)->latency_s, 1e-3, 0.1, 0);
                assert_int_equal(wire(from, to)->shared, from + to == 3);
            } else if (from != to) {
                assert_true(wire(from, to)->is_assumed);
            }
        }
    }
}

/* Boards that dial cannot be dialled: they are end 0, and two of them have no wire. */
static void boards_that_dial_are_the_near_end(void **state) {
    (void)state;
    open_boards("ring.boards=3", BETWEEN);
    ring.board[1].address.dials = true;
    (void)measure_wires();
    assert_string_equal(fakes.trail, "0 listens, 1 dials, 0 measures, 0 both, 1 both, 0 ends, "
                                     "1 ends, " WIRE("1", "2"));
}

static void two_that_dial_are_left_out(void **state) {
    (void)state;
    open_boards("ring.boards=3", BETWEEN);
    ring.board[0].address.dials = ring.board[1].address.dials = true;
    (void)measure_wires();
    assert_string_equal(fakes.trail, WIRE("1", "2"));
}

/* A wire on which nothing comes through, or whose far end does not listen: the next one is
 * measured. */
static void a_wire_that_fails_is_left_out(void **state) {
    (void)state;
    open_boards("ring.boards=4", BETWEEN);
    fakes.board[0].rate = 0;
    (void)snprintf(fakes.board[2].refuses, sizeof fakes.board[2].refuses, "no port is free");
    assert_true(measure_wires() < 100);
    assert_string_equal(fakes.trail, "1 listens, 0 dials, 0 ends, 1 ends, "
                                     "2 listens, 1 ends, 2 ends, " WIRE("2", "3"));
    assert_true(wire(0, 1)->is_assumed && wire(1, 2)->is_assumed && !wire(2, 3)->is_assumed);
}

/* A board that says nothing is waited for a while. Its late answer changes nothing. */
static void a_board_without_answer_is_left_out(void **state) {
    const rp_TrialDone late = {.outcome = RP_TRIAL_MEASURED,
                               .seconds_count = 4,
                               .seconds = {1, 2, 3, 4},
                               .spread_count = 4};
    (void)state;
    open_boards("ring.boards=3", BETWEEN);
    fakes.board[1].is_mute = true;
    assert_in_range(measure_wires(), 8000, 17000);
    assert_string_equal(fakes.trail,
                        "1 listens, 0 ends, 1 ends, 2 listens, 1 dials, 1 ends, 2 ends");
    rp_measure_take_trial(measure, 1, &late);
    assert_true(wire(0, 1)->is_assumed && wire(1, 2)->is_assumed);
}

/* Times that cannot be: that of a longer message is not known, negative, or not a number. */
static void impossible_times_are_left_out(void **state) {
    static const double bad[] = {-1, (double)NAN, (double)INFINITY};
    (void)state;
    open_boards("ring.boards=2", BETWEEN);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const rp_TrialDone listens = {.outcome = RP_TRIAL_LISTENS, .port = 7};
        const rp_TrialDone done = {.outcome = RP_TRIAL_MEASURED,
                                   .seconds_count = 4,
                                   .seconds = {1e-3, bad[i], bad[i], bad[i]},
                                   .spread_count = 4};
        bool all = false;
        measure_boards();
        expect_ok(rp_measure_step_wires(measure, &all));
        rp_measure_take_trial(measure, 1, &listens);
        expect_ok(rp_measure_step_wires(measure, &all));
        assert_false(all);
        rp_measure_take_trial(measure, 0, &done);
        expect_ok(rp_measure_step_wires(measure, &all));
        assert_true(all);
        assert_true(rp_measure_profile(measure)->wire[1].is_assumed);
        for (uint32_t round = 0; round < 4; round++) {
            pass_ms(1);
        }
    }
}

/* Wires that are emulated are known, those of old boards are not asked for. */
static void other_wires_are_not_measured(void **state) {
    (void)state;
    open_boards("ring.link={rate_mbit: 1}", RP_WIRE_FEATURES);
    assert_int_equal(measure_wires(), 0);
    (void)close_measure(state);
    expect_ok(setup(state));
    open_boards(NULL, 0);
    assert_int_equal(measure_wires(), 0);
    assert_string_equal(fakes.trail, "");
}

/* The host's own wires: a board that acks nothing is given up, and all others with it. */
static void wires_to_the_host_do_not_stop_a_run(void **state) {
    (void)state;
    open_boards(NULL, HOST);
    far[0].is_deaf = true;
    assert_in_range(measure_wires(), 8000, 9000);
    assert_string_equal(fakes.trail, "");
    assert_true(rp_profile_feed_at(rp_measure_profile(measure), 0, false)->is_assumed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(wires_are_measured_in_turn, setup, close_measure),
        cmocka_unit_test_setup_teardown(boards_that_dial_are_the_near_end, setup, close_measure),
        cmocka_unit_test_setup_teardown(two_that_dial_are_left_out, setup, close_measure),
        cmocka_unit_test_setup_teardown(a_wire_that_fails_is_left_out, setup, close_measure),
        cmocka_unit_test_setup_teardown(a_board_without_answer_is_left_out, setup, close_measure),
        cmocka_unit_test_setup_teardown(impossible_times_are_left_out, setup, close_measure),
        cmocka_unit_test_setup_teardown(other_wires_are_not_measured, setup, close_measure),
        cmocka_unit_test_setup_teardown(wires_to_the_host_do_not_stop_a_run, setup, close_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
