/* Round trips: the delay of a wire is half of the longest of each board's shortest trip. */
#include "fakes.h"

/* Board 1 looks at its link after so many ms. */
static void answer_pings(uint32_t late_ms) {
    for (uint32_t ms = 0; ms < 1000; ms++) {
        far[1].is_deaf = ms < late_ms;
        pass_ms(1);
        if (rp_measure_has_answered(measure, 0) && rp_measure_has_answered(measure, 1)) {
            return;
        }
    }
    fail_msg("a ping is not answered within a second");
}

static double trips_s(uint32_t first_late_ms, uint32_t then_late_ms) {
    bool done = false;
    rp_measure_begin_trips(measure);
    expect_ok(rp_measure_ping(measure));
    assert_false(rp_measure_has_answered(measure, 0));
    answer_pings(first_late_ms);
    expect_ok(rp_measure_note_trips(measure, 2, &done));
    assert_false(done);
    assert_false(rp_measure_has_answered(measure, 1)); /* it has been pinged again */
    answer_pings(then_late_ms);
    expect_ok(rp_measure_note_trips(measure, 2, &done));
    assert_true(done);
    rp_measure_take_delay(measure);
    return rp_measure_delay_s(measure);
}

/* One that answers late once is not taken for far. One that always does is, until the next time. */
static void the_shortest_trips_count(void **state) {
    (void)state;
    open_plain();
    open_fakes();
    for (uint32_t i = 0; i < 20; i++) {
        pass_ms(1); /* the links come up */
    }
    assert_true(rp_measure_delay_s(measure) == 0);
    const double near_s = trips_s(50, 0);
    assert_true(near_s > 0 && near_s < 10e-3);
    const double far_s = trips_s(50, 60);
    assert_true(far_s >= 25e-3 && far_s < 30e-3);
    assert_true(trips_s(0, 50) == near_s);
}

static void emulated_wires_need_no_trips(void **state) {
    (void)state;
    open_measure("ring.link={delay_ms: 20}", (rp_measure_needs){0});
    rp_measure_begin_trips(measure);
    rp_measure_take_delay(measure);
    expect_close(rp_measure_delay_s(measure), 20e-3, 1e-9, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_shortest_trips_count, setup, close_measure),
        cmocka_unit_test_setup_teardown(emulated_wires_need_no_trips, setup, close_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
