#include "loss_case.h"

#include <math.h>

enum { N = 3, OUTPUTS = 11 };

static uint32_t first_most(const float *row, uint32_t count) {
    uint32_t best = 0;
    for (uint32_t j = 1; j < count; j++) {
        best = row[j] > row[best] ? j : best;
    }
    return best;
}

static void compare_loss(loss_case *c, const rp_st_reader *reader, const char *name) {
    const float *y = loss_case_golden(reader, name, "y");
    const float *target = loss_case_golden(reader, name, "target");
    loss_case_compare(c, reader, name);
    for (uint32_t i = 0; i < c->n; i++) {
        const size_t row = (size_t)i * c->outputs;
        const bool same = first_most(y + row, c->outputs) == first_most(target + row, c->outputs);
        expect_close(c->loss[RP_LOSS_RESULT * i + 1], same, 0, 0);
    }
}

static void equals_pytorch(void **state) {
    (void)state;
    loss_case_each("label_smoothing", "soft-cross-entropy", compare_loss);
}

static void central_differences(void **state) {
    (void)state;
    float target[N * OUTPUTS];
    golden_values("target", N * OUTPUTS, target);
    for (size_t i = 0; i < N * OUTPUTS; i++) {
        target[i] = fabsf(target[i]); /* sums of rows differ from one, as torch allows */
    }
    loss_case_differences("soft-cross-entropy", target, 0);
    loss_case_differences("soft-cross-entropy", target, 0.2f);
}

/* A row with all in one place is the class, smoothed or not. */
static void one_place_is_a_class(void **state) {
    (void)state;
    const int32_t class_of[N] = {10, 0, 4};
    float y[N * OUTPUTS];
    float rows[N * OUTPUTS] = {0};
    golden_values("y", N * OUTPUTS, y);
    for (size_t i = 0; i < N; i++) {
        rows[i * OUTPUTS + (size_t)class_of[i]] = 1.0f;
    }
    for (int smooth = 0; smooth < 2; smooth++) {
        loss_case hard;
        loss_case soft;
        loss_case_open(&hard, "cross-entropy", N, OUTPUTS);
        loss_case_open(&soft, "soft-cross-entropy", N, OUTPUTS);
        hard.options.label_smoothing = soft.options.label_smoothing = smooth ? 0.25f : 0.0f;
        loss_case_fill(&hard, y, class_of);
        loss_case_fill(&soft, y, rows);
        loss_case_run(&hard, N, true);
        loss_case_run(&soft, N, true);
        for (size_t i = 0; i < N; i++) {
            expect_close(soft.loss[RP_LOSS_RESULT * i], hard.loss[RP_LOSS_RESULT * i], 1e-6, 1e-6);
            expect_close(soft.loss[RP_LOSS_RESULT * i + 1], hard.loss[RP_LOSS_RESULT * i + 1], 0,
                         0);
        }
        expect_close_all(soft.gradient, hard.gradient, N * OUTPUTS, 1e-5, 1e-7);
        loss_case_close(&hard);
        loss_case_close(&soft);
    }
}

static void huge_and_nan(void **state) {
    (void)state;
    float y[N * OUTPUTS] = {0};
    float target[N * OUTPUTS] = {0};
    loss_case c;
    y[10] = 1000.0f;
    target[10] = 0.25f;
    target[3] = 0.75f;
    y[OUTPUTS + 2] = NAN;
    target[OUTPUTS] = 1.0f;
    target[2 * OUTPUTS + 5] = NAN;
    loss_case_open(&c, "soft-cross-entropy", N, OUTPUTS);
    loss_case_fill(&c, y, target);
    loss_case_run(&c, N, true);
    expect_close(c.loss[0], 750, 1e-6, 0);
    expect_close(c.loss[1], 0, 0, 0);
    for (size_t i = 1; i < N; i++) {
        assert_true(isnan(c.loss[RP_LOSS_RESULT * i]) && c.loss[RP_LOSS_RESULT * i + 1] == 0.0f);
    }
    for (size_t i = 0; i < N * OUTPUTS; i++) {
        assert_int_equal(expect_finite_bits((double)c.gradient[i]), i < OUTPUTS);
    }
    loss_case_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(central_differences),
        cmocka_unit_test(one_place_is_a_class),
        cmocka_unit_test(huge_and_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
