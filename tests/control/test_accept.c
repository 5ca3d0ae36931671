/* What boards report, before it is believed. */
#include "expect.h"

#include <float.h>
#include <math.h>

#include "control/controller_own.h"

static void times_are_finite_and_not_negative(void **state) {
    (void)state;
    static const double bad[] = {-1e-300, -1, (double)NAN, (double)INFINITY, -(double)INFINITY};
    double seconds[] = {0, 1e-9, DBL_MAX};
    const size_t count = sizeof seconds / sizeof *seconds;
    assert_true(rp_board_are_times(seconds, count));
    assert_true(rp_board_are_times(seconds, 0));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        for (size_t at = 0; at < count; at++) {
            const double was = seconds[at];
            seconds[at] = bad[i];
            assert_false(rp_board_are_times(seconds, count));
            seconds[at] = was;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_finite_and_not_negative),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
