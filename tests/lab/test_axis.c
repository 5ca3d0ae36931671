#include "expect.h"

#include <math.h>

#include "lab/axis.h"

static void ticks(double low, double high, bool log, uint32_t wanted, const char *want) {
    rp_axis axis = rp_axis_make(low, high, log, wanted);
    char text[512] = "";
    for (uint32_t i = 0; i < axis.tick_count; i++) {
        char one[RP_AXIS_TEXT_BYTES];
        size_t used = strlen(text);
        rp_axis_text(&axis, axis.tick[i], one);
        (void)snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "", one);
    }
    assert_string_equal(text, want);
}

static void round_ticks(void **state) {
    (void)state;
    ticks(0, 10, false, 5, "0 2 4 6 8 10");
    ticks(0, 1, false, 5, "0.0 0.2 0.4 0.6 0.8 1.0");
    ticks(-0.3, 0.3, false, 6, "-0.3 -0.2 -0.1 0.0 0.1 0.2 0.3");
    ticks(0.951, 0.979, false, 5, "0.96 0.97");
    ticks(0, 2345, false, 6, "0 500 1000 1500 2000");
    ticks(0, 3e10, false, 4, "0 1e+10 2e+10 3e+10");
    ticks(0, 3e-5, false, 4, "0 1e-05 2e-05 3e-05");
    ticks(999999, 1000001, false, 4, "999999 999999.5 1000000 1000000.5 1000001");
}

static void log_ticks(void **state) {
    (void)state;
    ticks(0.01, 1, true, 5, "0.01 0.02 0.05 0.1 0.2 0.5 1");
    ticks(0.003, 4000, true, 5, "0.1 10 1000");
    ticks(3, 4, true, 5, "3 3.2 3.4 3.6 3.8 4");
    ticks(1e-12, 1e12, true, 5, "1e-12 1e-07 0.01 1000 1e+08");
}

static void what_is_no_range(void **state) {
    (void)state;
    const double nan = (double)NAN;
    ticks(nan, 1, false, 2, "0.0 0.5 1.0");
    ticks(0, (double)INFINITY, false, 2, "0.0 0.5 1.0");
    ticks(2, 1, false, 2, "0.0 0.5 1.0");
    ticks(0, 1, true, 5, "0.1 0.2 0.5 1");
    rp_axis axis = rp_axis_make(5, 5, false, 5); /* one value lies in the middle */
    expect_close(rp_axis_position(&axis, 5), 0.5, 1e-12, 0);
    axis = rp_axis_make(0, 0, false, 5);
    expect_close(rp_axis_position(&axis, 0), 0.5, 1e-12, 0);
    axis = rp_axis_make(5, 5, true, 5);
    expect_close(rp_axis_position(&axis, 5), 0.5, 1e-12, 0);
}

static void places(void **state) {
    (void)state;
    rp_axis axis = rp_axis_make(10, 20, false, 5);
    expect_close(rp_axis_position(&axis, 10), 0, 0, 0);
    expect_close(rp_axis_position(&axis, 12.5), 0.25, 1e-12, 0);
    expect_close(rp_axis_position(&axis, 30), 2, 1e-12, 0);
    assert_true(isnan(rp_axis_position(&axis, (double)NAN)));
    assert_true(isnan(rp_axis_position(&axis, (double)INFINITY)));
    axis = rp_axis_make(0.01, 100, true, 5);
    expect_close(rp_axis_position(&axis, 1), 0.5, 1e-12, 0);
    assert_true(isnan(rp_axis_position(&axis, 0)));
    assert_true(isnan(rp_axis_position(&axis, -1)));
}

/* Whatever the range: a few ticks, in order, inside. */
static void any_range(void **state) {
    (void)state;
    for (int exponent = -30; exponent <= 30; exponent++) {
        for (int digit = 1; digit < 30; digit++) {
            double high = digit * pow(10, exponent);
            for (int low = -1; low <= 1; low++) {
                rp_axis axis = rp_axis_make(0.37 * low * high, high, false, 5);
                assert_true(axis.tick_count >= 2 && axis.tick_count <= 11);
                for (uint32_t i = 0; i < axis.tick_count; i++) {
                    double position = rp_axis_position(&axis, axis.tick[i]);
                    assert_true(position > -1e-6 && position < 1 + 1e-6);
                    assert_true(i == 0 || axis.tick[i] > axis.tick[i - 1]);
                }
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_ticks),      cmocka_unit_test(log_ticks),
        cmocka_unit_test(what_is_no_range), cmocka_unit_test(places),
        cmocka_unit_test(any_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
