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
        expect_close(c->loss[RP_LOSS_RESULT * i + 1], best == (uint32_t)target[i], 0, 0);
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
    c.options.label_smoothing = smoothing;
    golden_values("y", N * OUTPUTS, y);
    loss_case_fill(&c, y, target);
    loss_case_run(&c, N, true);
    for (size_t i = 0; i < N * OUTPUTS; i++) {
        assert_int_equal(expect_finite_bits((double)c.gradient[i]), good[i / OUTPUTS]);
        assert_int_equal(expect_finite_bits((double)c.loss[RP_LOSS_RESULT * (i / OUTPUTS)]),
                         good[i / OUTPUTS]);
    }
    for (size_t i = 1; i < 4; i++) {
        expect_close(c.loss[RP_LOSS_RESULT * i + 1], 0, 0, 0);
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
    expect_close(c.loss[3], 1000, 0, 0);
    expect_close(c.loss[4], 0, 0, 0);
    expect_close(c.gradient[OUTPUTS], -0.2, 1e-6, 0);
    expect_close(c.gradient[OUTPUTS + 17], 0.2, 1e-6, 0);
    expect_close(c.loss[7], 1, 0, 0);
    expect_close(c.loss[10], 0, 0, 0);
    assert_true(isnan(c.loss[12]) && c.loss[13] == 0.0f);
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
    float whole[RP_LOSS_RESULT * N];
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
                                   .rows = 1,
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

/* Sequences of 3 tokens, some of them ignored, in two microbatches: the mean is over the tokens of
 * the step that count, as torch's over the whole batch. */
static void tokens_count_in_the_step(void **state) {
    (void)state;
    enum { N = 4, ROWS = 3, OUTPUTS = 19, FIRST = 3, IGNORE = -100, COUNTED = 7 };
    const int32_t target[N][ROWS] = {
        {0, IGNORE, 5}, {18, 7, 7}, {IGNORE, IGNORE, IGNORE}, {2, IGNORE, 9}};
    const rp_loss_options options = {.label_smoothing = 0.1F, .ignores = true, .ignore = IGNORE};
    int32_t sent[N][ROWS + 1];
    float y[N * ROWS * OUTPUTS];
    golden_values("tokens", N * ROWS * OUTPUTS, y);
    for (size_t i = 0; i < N; i++) {
        memcpy(sent[i], target[i], sizeof target[i]);
        sent[i][ROWS] = COUNTED;
    }
    for (uint32_t part = 0; part < 2; part++) {
        const uint32_t first = part ? FIRST : 0;
        const uint32_t n = part ? N - FIRST : FIRST;
        loss_case c;
        loss_case_open_rows(&c, "cross-entropy", n, ROWS, OUTPUTS, &options);
        loss_case_fill(&c, y + first * ROWS * OUTPUTS, sent[first]);
        loss_case_run(&c, N, true);
        for (uint32_t i = 0; i < n; i++) {
            double sum = 0;
            double counted = 0;
            for (uint32_t r = 0; r < ROWS; r++) {
                const size_t at = ((size_t)(first + i) * ROWS + r) * OUTPUTS;
                const int32_t wanted = target[first + i][r];
                const bool counts = wanted != IGNORE;
                double norm = 0;
                double mean = 0;
                for (uint32_t j = 0; j < OUTPUTS; j++) {
                    norm += exp((double)y[at + j]);
                    mean += (double)y[at + j] / OUTPUTS;
                }
                for (uint32_t j = 0; j < OUTPUTS; j++) {
                    const double share =
                        (double)0.1F / OUTPUTS + ((int32_t)j == wanted ? 1 - (double)0.1F : 0);
                    const double want = (exp((double)y[at + j]) / norm - share) / COUNTED;
                    expect_close(c.gradient[(i * ROWS + r) * OUTPUTS + j], counts ? want : 0, 1e-5,
                                 counts ? 1e-7 : 0);
                }
                sum += counts ? log(norm) - (1 - (double)0.1F) * (double)y[at + (size_t)wanted] -
                                    (double)0.1F * mean
                              : 0;
                counted += counts;
            }
            expect_close(c.loss[RP_LOSS_RESULT * i], sum, 1e-5, 0);
            expect_close(c.loss[RP_LOSS_RESULT * i + 2], counted, 0, 0);
        }
        loss_case_close(&c);
    }
}

/* A step whose targets are all ignored: loss and gradient are 0, not NaN. */
static void nothing_counts(void **state) {
    (void)state;
    enum { N = 2, ROWS = 2, OUTPUTS = 3 };
    const rp_loss_options options = {.ignores = true, .ignore = 0};
    const int32_t sent[N * (ROWS + 1)] = {0};
    float y[N * ROWS * OUTPUTS];
    loss_case c;
    golden_values("y", N * ROWS * OUTPUTS, y);
    loss_case_open_rows(&c, "cross-entropy", N, ROWS, OUTPUTS, &options);
    loss_case_fill(&c, y, sent);
    loss_case_run(&c, N, true);
    for (size_t i = 0; i < N * ROWS * OUTPUTS; i++) {
        expect_close(c.gradient[i], 0, 0, 0);
    }
    for (size_t i = 0; i < N * RP_LOSS_RESULT; i++) {
        expect_close(c.loss[i], 0, 0, 0);
    }
    loss_case_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),      cmocka_unit_test(central_differences),
        cmocka_unit_test(class_outside),       cmocka_unit_test(huge_ties_and_nan),
        cmocka_unit_test(results_have_places), cmocka_unit_test(tokens_count_in_the_step),
        cmocka_unit_test(nothing_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
