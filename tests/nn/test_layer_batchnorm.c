#include "golden.h"

#include <math.h>

/* In training the running statistics move by one forward; PyTorch's stand in the file. */
static void run_case(const golden_case *golden) {
    layer_rig rig;
    uint64_t digest[2];
    for (uint32_t lead = 0; lead < 2; lead++) {
        golden_open(&rig, golden, lead);
        expect_ok(rp_layer_forward(&rig.call));
        golden_compare(&rig, golden, &rig.param[2], "after_mean", GOLDEN_REL);
        golden_compare(&rig, golden, &rig.param[3], "after_var", GOLDEN_REL);
        digest[lead] = rig.digest;
        rig_close(&rig);
    }
    assert_true(digest[0] == digest[1]);
    golden_run(golden);
}

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("batchnorm", run_case);
}

static void central_differences(void **state) {
    (void)state;
    const rp_shape image = rp_shape_3(3, 5, 5);
    const rp_shape row = rp_shape_1(18);
    golden_differences("{kind: batchnorm}", 3, &image, 1, 1e-2f, 2e-3);
    golden_differences("{kind: batchnorm, deferred: true}", 9, &row, 1, 1e-2f, 2e-3);
}

/* Statistics of `count` values with stride in double. */
static void moments_of(const float *x, size_t count, double *mean, double *square) {
    *mean = 0;
    *square = 0;
    for (size_t i = 0; i < count; i++) {
        *mean += x[i] / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        *square += ((double)x[i] - *mean) * ((double)x[i] - *mean);
    }
}

/* Mean 10000 times the deviation: E[x^2] - E[x]^2 would have no correct digit left. */
static void variance_is_stable(void **state) {
    (void)state;
    enum { N = 3, PIXELS = 4900 };
    const rp_shape shape = rp_shape_3(1, 70, 70);
    layer_rig rig;
    rig_open(&rig, "bn", "{kind: batchnorm, momentum: 1}", N, &shape, 1);
    float *x = rig_read(&rig, &rig.x[0]);
    golden_values("x", N * PIXELS, x);
    for (size_t i = 0; i < N * PIXELS; i++) {
        x[i] = x[i] * 0.1f + 1000.0f;
    }
    double mean;
    double square;
    moments_of(x, N * PIXELS, &mean, &square);
    rig_write(&rig, &rig.x[0], x);
    rig_write(&rig, &rig.param[3], &(float){NAN}); /* momentum 1 forgets what was */
    expect_ok(rig.layer.kind->forward(&rig.call));
    expect_close(*rig_read(&rig, &rig.param[2]), mean, 1e-7, 0);
    expect_close(*rig_read(&rig, &rig.param[3]), square / (N * PIXELS - 1), 1e-5, 0);
    rig_close(&rig);
}

/* PyTorch raises; here y = bias, dx = 0, and running_var is not moved: there is no variance. */
static void one_element(const char *spec) {
    const rp_shape shape = rp_shape_3(33, 1, 1);
    layer_rig rig;
    rig_open(&rig, "bn", spec, 1, &shape, 1);
    rig_draw(&rig, &rig.x[0], "x");
    rig_draw(&rig, &rig.dy, "dy");
    rig_draw(&rig, &rig.param[0], "w");
    rig_draw(&rig, &rig.param[1], "b");
    rig_draw(&rig, &rig.param[3], "v");
    const float *before = rig_read(&rig, &rig.param[3]);
    expect_ok(rig.layer.kind->forward(&rig.call));
    expect_ok(rig.layer.kind->backward(&rig.call));
    expect_ok(rig.layer.kind->commit(&rig.call));
    const float *mean = rig_read(&rig, &rig.param[2]);
    const float *x = rig_read(&rig, &rig.x[0]);
    const float *y = rig_read(&rig, &rig.y);
    const float *bias = rig_read(&rig, &rig.param[1]);
    const float *dx = rig_read(&rig, &rig.dx[0]);
    const float *var = rig_read(&rig, &rig.param[3]);
    for (size_t i = 0; i < 33; i++) {
        expect_close(y[i], bias[i], 0, 0);
        expect_close(dx[i], 0, 0, 0);
        expect_close(mean[i], 0.1f * x[i], 1e-6, 0);
        expect_close(var[i], before[i], 0, 0);
    }
    rig_close(&rig);
}

static void one_element_has_no_variance(void **state) {
    (void)state;
    one_element("{kind: batchnorm}");
    one_element("{kind: batchnorm, deferred: true}");
}

/* A variance of 3e38 squared is infinite, and everything behind it may be finite: nothing would be
 * skipped, and running_var would be infinite for ever. */
static void endless_statistics(const char *spec) {
    const rp_shape shape = rp_shape_1(2);
    layer_rig rig;
    rig_open(&rig, "bn", spec, 4, &shape, 1);
    const float x[8] = {3e38f, 1, 0, 2, 0, 3, 0, 4};
    const float ones[2] = {1, 1};
    rig_write(&rig, &rig.x[0], x);
    rig_write(&rig, &rig.param[3], ones);
    expect_ok(rig.layer.kind->forward(&rig.call));
    expect_ok(rig.layer.kind->commit(&rig.call));
    const float *mean = rig_read(&rig, &rig.param[2]);
    const float *var = rig_read(&rig, &rig.param[3]);
    expect_close(mean[0], 0, 0, 0);
    expect_close(var[0], 1, 0, 0);
    expect_close(mean[1], 0.25, 1e-6, 0);
    assert_true(var[1] > 1);
    rig_close(&rig);
}

static void endless_statistics_move_nothing(void **state) {
    (void)state;
    endless_statistics("{kind: batchnorm}");
    endless_statistics("{kind: batchnorm, deferred: true}");
}

/* Three microbatches and a commit = the statistics of them all, biased; then scratch is zero. */
static void deferred(void **state) {
    (void)state;
    enum { MICRO = 3, N = 5, CHANNELS = 17, PIXELS = 6 };
    const rp_shape shape = rp_shape_3(CHANNELS, 2, 3);
    float ones[CHANNELS];
    static float all[CHANNELS][MICRO * N * PIXELS];
    layer_rig rig;
    rig_open(&rig, "bn", "{kind: batchnorm, momentum: 0.25, deferred: true}", N, &shape, 1);
    for (size_t c = 0; c < CHANNELS; c++) {
        ones[c] = 1.0f;
    }
    rig_write(&rig, &rig.param[3], ones);
    assert_int_equal(rig.plan.param_count, 7);
    for (uint32_t micro = 0; micro < MICRO; micro++) {
        char stream[8];
        snprintf(stream, sizeof stream, "x%u", micro);
        rig_draw(&rig, &rig.x[0], stream);
        const float *x = rig_read(&rig, &rig.x[0]);
        for (size_t i = 0; i < N * CHANNELS * PIXELS; i++) {
            size_t image = micro * N + i / (CHANNELS * PIXELS);
            all[i / PIXELS % CHANNELS][image * PIXELS + i % PIXELS] = x[i];
        }
        expect_ok(rig.layer.kind->forward(&rig.call));
        assert_memory_equal(rig_read(&rig, &rig.param[3]), ones, sizeof ones);
    }
    for (int commits = 0; commits < 2; commits++) { /* the second finds nothing to move */
        expect_ok(rig.layer.kind->commit(&rig.call));
        const float *mean_now = rig_read(&rig, &rig.param[2]);
        const float *var_now = rig_read(&rig, &rig.param[3]);
        for (size_t c = 0; c < CHANNELS; c++) {
            double mean;
            double square;
            moments_of(all[c], MICRO * N * PIXELS, &mean, &square);
            expect_close(mean_now[c], 0.25 * mean, 1e-5, 1e-6);
            expect_close(var_now[c], 0.75 + 0.25 * square / (MICRO * N * PIXELS), 1e-5, 0);
            for (uint32_t i = 4; i < 7; i++) {
                expect_close(rig_read(&rig, &rig.param[i])[c], 0, 0, 0);
            }
        }
    }
    rig_close(&rig);
}

/* A repeated forward (no running tensors) gives the same y and moves nothing. */
static void repeated_forward(void **state) {
    (void)state;
    const rp_shape shape = rp_shape_3(5, 3, 3);
    layer_rig rig;
    rig_open(&rig, "bn", "{kind: batchnorm}", 4, &shape, 1);
    rig_draw(&rig, &rig.x[0], "x");
    rig_draw(&rig, &rig.param[0], "w");
    expect_ok(rig.layer.kind->forward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    const float *mean = rig_read(&rig, &rig.param[2]);
    rig.call.param[2] = rig.call.param[3] = NULL;
    expect_ok(rig.layer.kind->forward(&rig.call));
    assert_memory_equal(rig_read(&rig, &rig.y), y, 4 * 45 * sizeof(float));
    assert_memory_equal(rig_read(&rig, &rig.param[2]), mean, 5 * sizeof(float));
    rig_close(&rig);
}

/* Fewer samples than the memory was planned for, and bits that do not change from run to run. */
static void short_batch_and_repeatable(void **state) {
    (void)state;
    const rp_shape shape = rp_shape_3(20, 40, 40);
    layer_rig rig;
    rig_open(&rig, "bn", "{kind: batchnorm}", 9, &shape, 1);
    rig_draw(&rig, &rig.x[0], "x");
    rig_draw(&rig, &rig.dy, "dy");
    rig_draw(&rig, &rig.param[0], "w");
    rig.call.n = 5;
    const float *dx = NULL;
    const float *dw = NULL;
    for (int run = 0; run < 4; run++) {
        expect_ok(rig.layer.kind->forward(&rig.call));
        expect_ok(rig.layer.kind->backward(&rig.call));
        const float *dx_now = rig_read(&rig, &rig.dx[0]);
        const float *dw_now = rig_read(&rig, &rig.dparam[0]);
        if (dx) {
            assert_memory_equal(dx_now, dx, 9 * 32000 * sizeof(float));
            assert_memory_equal(dw_now, dw, 20 * sizeof(float));
        }
        dx = dx_now;
        dw = dw_now;
        for (size_t i = 5 * 32000; i < 9 * 32000; i++) {
            assert_true(dx[i] == 0.0f);
        }
    }
    rig_close(&rig);
}

/* A frozen layer is what evaluation with the same running statistics is, and reads x in its forward
 * only: PyTorch's golden cases of evaluation hold for it. */
static void frozen_is_evaluation(const golden_case *golden) {
    layer_rig rig;
    golden_open(&rig, golden, 0);
    if (!rig.call.training) {
        rig.layer.frozen = true;
        expect_ok(rp_layer_make_plan(&rig.layer, rig.call.in, &rig.plan));
        assert_true(!rig.plan.needs_x && !rig.plan.whole && rig.plan.saved_count == 0);
        for (uint32_t p = 0; p < rig.plan.param_count; p++) {
            assert_int_equal(rig.plan.param[p].role, RP_PARAM_FROZEN);
        }
        rig.call.want_dw = false;
        expect_ok(rp_layer_forward(&rig.call));
        rig.call.x[0] = NULL;
        expect_ok(rp_layer_backward(&rig.call));
        golden_compare(&rig, golden, &rig.y, "y", GOLDEN_REL);
        golden_compare(&rig, golden, &rig.dx[0], "dx0", GOLDEN_REL);
        rig.call.dx[0] = &rig.dy; /* in place */
        expect_ok(rp_layer_backward(&rig.call));
        golden_compare(&rig, golden, &rig.dy, "dx0", GOLDEN_REL);
    }
    rig_close(&rig);
}

static void frozen(void **state) {
    (void)state;
    golden_each("batchnorm", frozen_is_evaluation);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(central_differences),
        cmocka_unit_test(variance_is_stable),
        cmocka_unit_test(one_element_has_no_variance),
        cmocka_unit_test(endless_statistics_move_nothing),
        cmocka_unit_test(deferred),
        cmocka_unit_test(repeated_forward),
        cmocka_unit_test(short_batch_and_repeatable),
        cmocka_unit_test(frozen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
