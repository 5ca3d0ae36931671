#include "expect.h"

#include <math.h>

#include "lab/stats.h"

static void mean_and_deviation(void **state) {
    (void)state;
    const double value[] = {1, 2, 3, 4};
    rp_stats s = rp_stats_of(value, 4);
    assert_int_equal(s.count, 4);
    assert_int_equal(s.absent, 0);
    expect_close(s.mean, 2.5, 1e-15, 0);
    expect_close(s.deviation, 1.2909944487358056, 1e-15, 0); /* n - 1, not n */
}

/* 1e9 + {0, 1, 2}: sums of squares would have lost the deviation. */
static void large_numbers_close_together(void **state) {
    (void)state;
    const double value[] = {1e9, 1e9 + 1, 1e9 + 2};
    rp_stats s = rp_stats_of(value, 3);
    expect_close(s.mean, 1e9 + 1, 1e-15, 0);
    expect_close(s.deviation, 1, 1e-12, 0);
}

static void one_and_none(void **state) {
    (void)state;
    const double one[] = {7};
    rp_stats s = rp_stats_of(one, 1);
    expect_close(s.mean, 7, 0, 0);
    assert_true(isnan(s.deviation));
    s = rp_stats_of(NULL, 0);
    assert_int_equal(s.count, 0);
    assert_true(isnan(s.mean) && isnan(s.deviation));
}

static void what_is_not_finite_is_absent(void **state) {
    (void)state;
    const double value[] = {(double)NAN, 2, (double)INFINITY, 4, -(double)INFINITY};
    rp_stats s = rp_stats_of(value, 5);
    assert_int_equal(s.count, 2);
    assert_int_equal(s.absent, 3);
    expect_close(s.mean, 3, 0, 0);
    expect_close(s.deviation, 1.4142135623730951, 1e-15, 0);
}

/* Quantiles as R's qt(0.975, n) gives them. */
static void student(void **state) {
    (void)state;
    const struct {
        uint32_t degrees;
        double t;
    } want[] = {{1, 12.7062047}, {2, 4.3026527},  {5, 2.5705818},   {10, 2.2281389},
                {29, 2.0452296}, {30, 2.0422725}, {31, 2.0395134},  {40, 2.0210754},
                {60, 2.0002978}, {120, 1.979930}, {1000, 1.962339}, {1000000, 1.9599664}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        expect_close(rp_stats_t975(want[i].degrees), want[i].t, 0, 5e-4);
    }
    for (uint32_t n = 1; n < 200; n++) {
        assert_true(rp_stats_t975(n + 1) < rp_stats_t975(n));
    }
    assert_true(isnan(rp_stats_t975(0)));
}

static void paired(void **state) {
    (void)state;
    const double value[] = {0.91, 0.93, 0.90, 0.95};
    const double base[] = {0.90, 0.91, 0.91, 0.92};
    rp_stats_paired p = rp_stats_pair(value, base, 4);
    assert_int_equal(p.count, 4);
    expect_close(p.mean, 0.0125, 1e-12, 0);
    expect_close(p.deviation, 0.017078251276599, 1e-12, 0);
    expect_close(p.low, 0.0125 - 0.0271753, 0, 1e-6); /* 3.1824 * 0.0170783 / 2 */
    expect_close(p.high, 0.0125 + 0.0271753, 0, 1e-6);
    assert_int_equal(rp_stats_sign(&p), 0);
}

static void only_common_pairs(void **state) {
    (void)state;
    const double value[] = {1, (double)NAN, 3, 9};
    const double base[] = {0, 1, 1.5, (double)INFINITY};
    rp_stats_paired p = rp_stats_pair(value, base, 4);
    assert_int_equal(p.count, 2);
    expect_close(p.mean, 1.25, 1e-15, 0);
    p = rp_stats_pair(value, base, 2); /* one pair: no deviation, no interval, no verdict */
    assert_int_equal(p.count, 1);
    expect_close(p.mean, 1, 0, 0);
    assert_true(isnan(p.deviation) && isnan(p.low) && isnan(p.high));
    assert_int_equal(rp_stats_sign(&p), 0);
    p = rp_stats_pair(NULL, NULL, 0);
    assert_true(isnan(p.mean));
    assert_int_equal(rp_stats_sign(&p), 0);
}

static void signs(void **state) {
    (void)state;
    const double base[] = {0, 0, 0};
    const double above[] = {1, 1.1, 0.9};
    const double below[] = {-1, -1.1, -0.9};
    rp_stats_paired p = rp_stats_pair(above, base, 3);
    assert_int_equal(rp_stats_sign(&p), 1);
    p = rp_stats_pair(below, base, 3);
    assert_int_equal(rp_stats_sign(&p), -1);
    p = rp_stats_pair(base, base, 3); /* equal to the bit: an interval of no width holds zero */
    expect_close(p.low, 0, 0, 0);
    assert_int_equal(rp_stats_sign(&p), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_and_deviation),
        cmocka_unit_test(large_numbers_close_together),
        cmocka_unit_test(one_and_none),
        cmocka_unit_test(what_is_not_finite_is_absent),
        cmocka_unit_test(student),
        cmocka_unit_test(paired),
        cmocka_unit_test(only_common_pairs),
        cmocka_unit_test(signs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
