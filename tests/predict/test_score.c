/* Softmax by hand, and the order of classes. */
#include "expect.h"

#include <math.h>

#include "predict/score.h"

static void log_sum_by_hand(void **state) {
    (void)state;
    const float y[] = {800, 800, -800};
    double sum;
    assert_true(rp_score_log_sum(y, 3, &sum));
    expect_close(sum, 800 + log(2), 1e-12, 0);
    assert_false(rp_score_log_sum((const float[]){1, NAN}, 2, &sum));
    assert_false(rp_score_log_sum((const float[]){1, INFINITY}, 2, &sum));
}

static void softmax_by_hand(void **state) {
    (void)state;
    double p[3];
    const float y[] = {0.0f, (float)log(2), (float)log(5)};
    const double want[] = {0.125, 0.25, 0.625};
    assert_true(rp_score_softmax(y, 3, p));
    expect_close_all(p, want, 3, 1e-6, 0);
    const float same[] = {-7, -7, -7, -7};
    double quarter[4];
    assert_true(rp_score_softmax(same, 4, quarter));
    for (int i = 0; i < 4; i++) {
        assert_true(quarter[i] == 0.25);
    }
}

static void large_outputs_do_not_overflow(void **state) {
    (void)state;
    double p[3];
    const float y[] = {3e38f, -3e38f, 3e38f};
    assert_true(rp_score_softmax(y, 3, p));
    assert_true(p[0] == 0.5 && p[1] == 0 && p[2] == 0.5);
}

static void what_is_not_finite_is_told(void **state) {
    (void)state;
    double p[2];
    assert_false(rp_score_softmax((const float[]){1, NAN}, 2, p));
    assert_false(rp_score_softmax((const float[]){-INFINITY, 1}, 2, p));
    assert_false(rp_score_softmax((const float[]){1, INFINITY}, 2, NULL));
}

static void expect_top(const float *y, uint32_t count, uint32_t top, const uint32_t *want) {
    uint32_t got[8];
    rp_score_top(y, count, top, got);
    assert_memory_equal(got, want, top * sizeof *got);
}

static void the_largest_come_first(void **state) {
    (void)state;
    const float y[] = {3, -1, 7, 7, 0, 9, 3};
    expect_top(y, 7, 1, (const uint32_t[]){5});
    expect_top(y, 7, 3, (const uint32_t[]){5, 2, 3}); /* of equal ones the first */
    expect_top(y, 7, 7, (const uint32_t[]){5, 2, 3, 0, 6, 4, 1});
    expect_top((const float[]){0, 0, 0}, 3, 2, (const uint32_t[]){0, 1});
    expect_top((const float[]){1, 2, 3, 4, 5}, 5, 5, (const uint32_t[]){4, 3, 2, 1, 0});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_sum_by_hand),
        cmocka_unit_test(softmax_by_hand),
        cmocka_unit_test(large_outputs_do_not_overflow),
        cmocka_unit_test(what_is_not_finite_is_told),
        cmocka_unit_test(the_largest_come_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
