/* Costs by samples: known answers of isotonic regression, lines between points, NaN is refused. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "expect.h"
#include "planning/curve.h"

static void falling_values_are_pooled(void **state) {
    (void)state;
    static const struct {
        uint32_t count;
        double value[6], want[6];
    } cases[] = {
        {5, {1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}},
        {5, {5, 4, 3, 2, 1}, {3, 3, 3, 3, 3}},
        {6, {1, 3, 2, 4, 3.5, 6}, {1, 2.5, 2.5, 3.75, 3.75, 6}},
        {4, {4, 1, 1, 10}, {2, 2, 2, 10}}, /* a pool falls below the one before it */
        {1, {7}, {7}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value[6];
        memcpy(value, cases[i].value, sizeof value);
        expect_ok(rp_isotonic(value, NULL, cases[i].count));
        for (uint32_t k = 0; k < cases[i].count; k++) {
            expect_close(value[k], cases[i].want[k], 1e-15, 0);
        }
    }
    double value[] = {3, 1};
    const double weight[] = {3, 1};
    expect_ok(rp_isotonic(value, weight, 2));
    expect_close(value[0], 2.5, 1e-15, 0);
    expect_close(value[1], 2.5, 1e-15, 0);
}

/* Least squares: no monotone values that are drawn are nearer. */
static void nothing_monotone_is_nearer(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(7, "test/isotonic");
    for (uint32_t trial = 0; trial < 2000; trial++) {
        double given[5];
        double fit[5];
        double own = 0;
        double other = 0;
        double at = -1;
        for (uint32_t i = 0; i < 5; i++) {
            given[i] = fit[i] = rp_rng_uniform(&rng);
        }
        expect_ok(rp_isotonic(fit, NULL, 5));
        for (uint32_t i = 0; i < 5; i++) {
            at = fmax(at, given[i] * 0.5 + 0.5 * rp_rng_uniform(&rng));
            own += (fit[i] - given[i]) * (fit[i] - given[i]);
            other += (at - given[i]) * (at - given[i]);
            assert_true(i == 0 || fit[i] >= fit[i - 1]);
        }
        assert_true(own <= other + 1e-15);
    }
}

static void what_is_not_finite_is_refused(void **state) {
    (void)state;
    double value[] = {1, (double)NAN, 3};
    const double good[] = {1, 2, 3};
    const double weights[][3] = {
        {1, (double)NAN, 1}, {1, 0, 1}, {1, -1, 1}, {1, (double)INFINITY, 1}};
    expect_err(rp_isotonic(value, NULL, 3), RP_ERR_USAGE);
    expect_close(value[2], 3, 0, 0);
    value[1] = (double)INFINITY;
    expect_err(rp_isotonic(value, NULL, 3), RP_ERR_USAGE);
    for (size_t i = 0; i < 4; i++) {
        memcpy(value, good, sizeof value);
        expect_err(rp_isotonic(value, weights[i], 3), RP_ERR_USAGE);
    }
    static const rp_curve_point bad[][2] = {
        {{1, (double)NAN, 0}, {2, 1, 0}}, {{1, -1, 0}, {2, 1, 0}},
        {{0, 1, 0}, {2, 1, 0}},           {{(double)NAN, 1, 0}, {2, 1, 0}},
        {{2, 1, 0}, {2, 1, 0}},           {{1, 1, (double)NAN}, {2, 1, 0}},
        {{1, 1, -1}, {2, 1, 0}},          {{1, (double)INFINITY, 0}, {2, 1, 0}},
    };
    rp_curve curve = {.count = 77};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_err(rp_curve_fit(bad[i], 2, &curve), RP_ERR_USAGE);
    }
    expect_err(rp_curve_fit(bad[0], 0, &curve), RP_ERR_USAGE);
    expect_err(rp_curve_fit(bad[0], RP_CURVE_POINTS_MAX + 1, &curve), RP_ERR_USAGE);
    assert_int_equal(curve.count, 77);
}

static void between_points_are_lines(void **state) {
    (void)state;
    static const rp_curve_point points[] = {{32, 20e-3, 0}, {8, 8e-3, 0}, {16, 12e-3, 0}};
    rp_curve curve;
    expect_ok(rp_curve_fit(points, 3, &curve));
    static const double want[][2] = {{0, 0},      {8, 8e-3},   {12, 10e-3}, {16, 12e-3},
                                     {24, 16e-3}, {32, 20e-3}, {64, 36e-3}, /* last slope */
                                     {4, 6e-3},   {1, 4.5e-3}};             /* first slope */
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        expect_close(rp_curve_at(&curve, want[i][0]), want[i][1], 1e-15, 0);
    }
    static const rp_curve_point steep[] = {{8, 1e-3, 0}, {16, 4e-3, 0}};
    expect_ok(rp_curve_fit(steep, 2, &curve));
    expect_close(rp_curve_at(&curve, 1), 0, 0, 0); /* never less than nothing */
    expect_ok(rp_curve_fit(steep, 1, &curve));
    expect_close(rp_curve_at(&curve, 24), 3e-3, 1e-15, 0); /* one point: in proportion */
    expect_close(rp_curve_at(&(rp_curve){0}, 8), 0, 0, 0);
    expect_close(rp_curve_at(&curve, (double)NAN), 0, 0, 0);
}

/* A point that repeats do not agree on gives way to one that they do. */
static void a_point_that_spreads_counts_less(void **state) {
    (void)state;
    static const rp_curve_point points[] = {{8, 9e-3, 0.95}, {16, 6e-3, 0}};
    rp_curve curve;
    expect_ok(rp_curve_fit(points, 2, &curve));
    /* weights 1 to 20 */
    expect_close(curve.point[0].seconds, (9e-3 + 20 * 6e-3) / 21, 1e-12, 0);
    expect_close(curve.point[1].seconds, (9e-3 + 20 * 6e-3) / 21, 1e-12, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(falling_values_are_pooled),
        cmocka_unit_test(nothing_monotone_is_nearer),
        cmocka_unit_test(what_is_not_finite_is_refused),
        cmocka_unit_test(between_points_are_lines),
        cmocka_unit_test(a_point_that_spreads_counts_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
