#include "golden.h"

#include <math.h>

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("additive", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in[] = {rp_shape_2(3, 5), rp_shape_2(4, 5), rp_shape_2(4, 6)};
    golden_differences("{kind: additive}", 2, in, 3, 1e-2f, 1e-3);
    golden_differences("{kind: additive, normalise: true}", 2, in, 3, 1e-2f, 1e-3);
}

/* Scores of +-300 are not a problem of the exponential. */
static void large_scores_are_finite(void **state) {
    (void)state;
    const rp_shape in[] = {rp_shape_2(1, 1), rp_shape_2(2, 1), rp_shape_2(2, 1)};
    layer_rig rig;
    rig_open(&rig, "a", "{kind: additive}", 1, in, 3);
    rig_write(&rig, &rig.x[0], (const float[]){0.0f});
    rig_write(&rig, &rig.x[1], (const float[]){9.0f, -9.0f});
    rig_write(&rig, &rig.x[2], (const float[]){2.0f, 5.0f});
    rig_write(&rig, &rig.param[0], (const float[]){300.0f});
    rig_write(&rig, &rig.dy, (const float[]){1.0f});
    expect_ok(rp_layer_forward(&rig.call));
    expect_ok(rp_layer_backward(&rig.call));
    expect_close(rig_read(&rig, &rig.y)[0], 2, 1e-6, 0);
    assert_true(isfinite(rig_read(&rig, &rig.dx[1])[0]));
    expect_close(rig_read(&rig, &rig.dx[2])[0], 1, 1e-6, 0);
    rig_close(&rig);
}

/* Many keys: the workspace holds the pairs of one sample at a time. */
static void samples_are_walked_in_chunks(void **state) {
    (void)state;
    enum { N = 3, T = 2049, S = 4097 };
    const rp_shape in[] = {rp_shape_2(T, 1), rp_shape_2(S, 1), rp_shape_2(S, 1)};
    const double pairs = (double)N * T * S * 4;
    if (expect_small()) {
        skip(); /* 25 million pairs */
    }
    layer_rig all;
    layer_rig one;
    rig_open(&all, "a", "{kind: additive, normalise: true}", N, in, 3);
    rig_open(&one, "a", "{kind: additive, normalise: true}", 1, in, 3);
    assert_true((double)all.layer.kind->workspace_bytes(&all.layer, &all.plan, in, N,
                                                        RP_GEMM_PANEL) < 2 * pairs);
    for (uint32_t i = 0; i < 3; i++) {
        rig_draw(&all, &all.x[i], "x");
        rig_write(&all, &all.param[i], (const float[]){0.7f});
        rig_write(&one, &one.param[i], (const float[]){0.7f});
    }
    rig_draw(&all, &all.dy, "dy");
    expect_ok(rp_layer_forward(&all.call));
    expect_ok(rp_layer_backward(&all.call));
    const float *y = rig_read(&all, &all.y);
    const float *dk = rig_read(&all, &all.dx[1]);
    for (uint32_t n = 0; n < N; n++) {
        for (uint32_t i = 0; i < 3; i++) {
            const size_t count = rp_shape_count(&in[i]);
            rig_write(&one, &one.x[i], rig_read(&all, &all.x[i]) + n * count);
        }
        rig_write(&one, &one.dy, rig_read(&all, &all.dy) + (size_t)n * T);
        one.call.accumulate = n > 0;
        expect_ok(rp_layer_forward(&one.call));
        expect_ok(rp_layer_backward(&one.call));
        assert_memory_equal(rig_read(&one, &one.y), y + (size_t)n * T, T * sizeof *y);
        assert_memory_equal(rig_read(&one, &one.dx[1]), dk + (size_t)n * S, S * sizeof *dk);
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_memory_equal(rig_read(&one, &one.dparam[i]), rig_read(&all, &all.dparam[i]),
                            sizeof(float));
    }
    rig_close(&all);
    rig_close(&one);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(large_scores_are_finite),
        cmocka_unit_test(samples_are_walked_in_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
