/* Which values go to which bucket, and what goes to none. */
#include "expect.h"

#include <float.h>
#include <math.h>

#include "record/histogram.h"

static double limit[RP_HISTOGRAM_BUCKETS];

static int setup_limits(void **state) {
    (void)state;
    rp_histogram_limits(limit);
    return 0;
}

static void limits_rise_and_mirror(void **state) {
    (void)state;
    const uint32_t zero = RP_HISTOGRAM_SIDE + 1;
    assert_true(limit[zero] == 0 && limit[zero + 1] == 1e-12);
    assert_true(limit[RP_HISTOGRAM_BUCKETS - 1] == DBL_MAX);
    for (uint32_t i = 1; i < RP_HISTOGRAM_BUCKETS; i++) {
        assert_true(limit[i] > limit[i - 1]);
        assert_true(limit[i] == -limit[RP_HISTOGRAM_BUCKETS - 1 - i]);
    }
    /* The last one below 1e20: another step would reach it. */
    assert_true(limit[RP_HISTOGRAM_BUCKETS - 2] < 1e20);
    assert_true(limit[RP_HISTOGRAM_BUCKETS - 2] * 1.1 >= 1e20);
}

static void every_value_has_one_bucket(void **state) {
    (void)state;
    static const float values[] = {0,     -0.0f, 1e-30f, -1e-30f, 1,        -1,     0.25f,
                                   -3.5f, 1e5f,  1e20f,  FLT_MAX, -FLT_MAX, -1e20f, 1e-12f};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
        rp_histogram histogram = {0};
        const double value = (double)values[k];
        rp_histogram_add(&histogram, limit, &values[k], 1);
        uint64_t sum = 0;
        for (uint32_t i = 0; i < RP_HISTOGRAM_BUCKETS; i++) {
            sum += histogram.bucket[i];
            if (histogram.bucket[i] > 0) {
                assert_true(value < limit[i]);
                assert_true(i == 0 || value >= limit[i - 1]);
            }
        }
        assert_int_equal(sum, 1);
        assert_true(histogram.min == value && histogram.max == value && histogram.sum == value);
        assert_true(histogram.sum_squares == value * value);
    }
}

/* In pieces, at any place. */
static void sums_go_on(void **state) {
    (void)state;
    static const float values[] = {-2, NAN, 4, INFINITY, -INFINITY, 1, -NAN};
    unsigned char bytes[sizeof values + 1];
    rp_histogram histogram = {0};
    memcpy(bytes + 1, values, sizeof values);
    rp_histogram_add(&histogram, limit, bytes + 1, 3);
    assert_int_equal(histogram.count, 2);
    rp_histogram_add(&histogram, limit, bytes + 1 + 3 * sizeof *values, 4);
    assert_int_equal(histogram.count, 3);
    assert_int_equal(histogram.nan, 2);
    assert_int_equal(histogram.infinite, 2);
    assert_true(histogram.min == -2 && histogram.max == 4 && histogram.sum == 3);
    assert_true(histogram.sum_squares == 21);
}

/* Nothing finite: no least and no greatest value, either. */
static void nothing_finite(void **state) {
    (void)state;
    const float value = NAN;
    rp_histogram histogram = {0};
    rp_histogram_add(&histogram, limit, &value, 1);
    assert_int_equal(histogram.count, 0);
    assert_int_equal(histogram.nan, 1);
    assert_true(histogram.min == 0 && histogram.max == 0 && histogram.sum == 0);
    for (uint32_t i = 0; i < RP_HISTOGRAM_BUCKETS; i++) {
        assert_int_equal(histogram.bucket[i], 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_rise_and_mirror),
        cmocka_unit_test(every_value_has_one_bucket),
        cmocka_unit_test(sums_go_on),
        cmocka_unit_test(nothing_finite),
    };
    return cmocka_run_group_tests(tests, setup_limits, NULL);
}
