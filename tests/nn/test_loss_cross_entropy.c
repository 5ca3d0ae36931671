#include "loss_case.h"

#include <math.h>

static void compare_loss(loss_case *c, const rp_st_reader *reader, const char *name) {
    const float *y = loss_case_golden(reader, name, "y");
    const float *target = loss_case_golden(reader, name, "target");
    loss_case_compare(c, reader, name);
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t best = 0;
        for (uint32_t j = 1; j < c->outputs; j++) {
            best = y[i * c->outputs + j] > y[i * c->outputs + best] ? j : best;
        }
        expect_close(c->loss[2 * i + 1], best == (uint32_t)target[i], 0, 0);
    }
}

static void equals_pytorch(void **state) {
    (void)state;
    loss_case_each("loss", "cross-entropy", compare_loss);
    loss_case_each("label_smoothing", "cross-entropy", compare_loss);
}

static void central_differences(void **state) {
    (void)state;
    loss_case_differences("cross-entropy", (const int32_t[]){10, 0, 4}, 0);
    loss_case_differences("cross-entropy", (const int32_t[]){10, 0, 4}, 0.3f);
}

/* The samples of a bad class are NaN, their neighbours are not. */
static void expect_nan_outside(float smoothing) {
    enum { N = 5, OUTPUTS = 33 };
    const int32_t target[N] = {0, 33, -1, INT32_MAX, 32};
    const bool good[N] = {true, false, false, false, true};
    float y[N * OUTPUTS];
    loss_case c;
    loss_case_open(&c, "cross-entropy", N, OUTPUTS);
    c.label_smoothing = smoothing;
    golden_values("y", N * OUTPUTS, y);
    loss_case_fill(&c, y, target);
    loss_case_run(&c, N, true);
    for (size_t i = 0; i < N * OUTPUTS; i++) {
        assert_int_equal(expect_finite_bits((double)c.gradient[i]), good[i / OUTPUTS]);
        assert_int_equal(expect_finite_bits((double)c.loss[2 * (i / OUTPUTS)]), good[i / OUTPUTS]);
    }
    for (size_t i = 1; i < 4; i++) {
        expect_close(c.loss[2 * i + 1], 0, 0, 0);
    }
    loss_case_close(&c);
}

static void class_outside(void **state) {
    (void)state;
    expect_nan_outside(0);
    expect_nan_outside(0.1f);
}

/* exp(1000) overflows; the loss does not. Ties: the first is the arg-max, as in torch. */
static void huge_ties_and_nan(void **state) {
    (void)state;
    enum { N = 5, OUTPUTS = 18 };
    const int32_t target[N] = {17, 0, 2, 3, 1};
    float y[N * OUTPUTS] = {0};
    y[17] = 1000.0f;                                /* sample 0: certain and right */
    y[OUTPUTS + 17] = 1000.0f;                      /* sample 1: certain and wrong */
    y[2 * OUTPUTS + 2] = y[2 * OUTPUTS + 3] = 1.0f; /* sample 2: a tie, the first is the class */
    y[3 * OUTPUTS + 2] = y[3 * OUTPUTS + 3] = 1.0f; /* sample 3: a tie, the second is */
    y[4 * OUTPUTS + 16] = NAN;
    loss_case c;
    loss_case_open(&c, "cross-entropy", N, OUTPUTS);
    loss_case_fill(&c, y, target);
    loss_case_run(&c, N, true);
    expect_close(c.loss[0], 0, 0, 0);
    expect_close(c.loss[1], 1, 0, 0);
    expect_close(c.loss[2], 1000, 0, 0);
    expect_close(c.loss[3], 0, 0, 0);
    expect_close(c.gradient[OUTPUTS], -0.2, 1e-6, 0);
    expect_close(c.gradient[OUTPUTS + 17], 0.2, 1e-6, 0);
    expect_close(c.loss[5], 1, 0, 0);
    expect_close(c.loss[7], 0, 0, 0);
    assert_true(isnan(c.loss[8]) && c.loss[9] == 0.0f);
    for (size_t j = 0; j < OUTPUTS; j++) {
        assert_true(isnan(c.gradient[4 * OUTPUTS + j]));
    }
    loss_case_close(&c);
}

/* Two microbatches write into one step's results. */
static void results_have_places(void **state) {
    (void)state;
    enum { N = 6, OUTPUTS = 7, FIRST = 4 };
    const int32_t target[N] = {0, 1, 2, 3, 4, 5};
    float y[N * OUTPUTS];
    float whole[2 * N];
    loss_case c;
    loss_case_open(&c, "cross-entropy", N, OUTPUTS);
    golden_values("y", N * OUTPUTS, y);
    loss_case_fill(&c, y, target);
    loss_case_run(&c, N, false);
    memcpy(whole, c.loss, sizeof whole);
    for (uint32_t part = 0; part < 2; part++) {
        const uint32_t first = part ? FIRST : 0;
        rp_tensor here;
        expect_ok(rp_tensor_slice(&c.y, first, part ? N - FIRST : FIRST, &here));
        expect_ok(rp_buffer_write_now(golden_device(), c.target, 0, target + first,
                                      (N - first) * sizeof(int32_t)));
        const rp_loss_call call = {.device = golden_device(),
                                   .n = part ? N - FIRST : FIRST,
                                   .step_samples = N,
                                   .y = &here,
                                   .target = c.target,
                                   .result = c.result,
                                   .result_first = first};
        expect_ok(rp_loss_run(c.kind, &call));
    }
    expect_ok(rp_buffer_read_now(golden_device(), c.loss, c.result, 0, sizeof whole));
    assert_memory_equal(c.loss, whole, sizeof whole);
    loss_case_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),      cmocka_unit_test(central_differences),
        cmocka_unit_test(class_outside),       cmocka_unit_test(huge_ties_and_nan),
        cmocka_unit_test(results_have_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
