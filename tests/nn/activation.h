/* The tests that all activations share. */
#ifndef RP_TESTS_NN_ACTIVATION_H
#define RP_TESTS_NN_ACTIVATION_H

#include "golden.h"

#include <math.h>

/* A NaN in x gives a NaN in y, a NaN in dy gives one in dx (or in place), and no neighbour sees it.
 */
static inline void activation_passes_nan(const char *keys) {
    enum { COUNT = 33, AT = 20 };
    const rp_shape shape = rp_shape_1(COUNT);
    float x[COUNT];
    layer_rig rig;
    rig_open(&rig, "nan", keys, 1, &shape, 1);
    golden_values("x", COUNT, x);
    rig_draw(&rig, &rig.dy, "dy");
    x[AT] = NAN;
    rig_write(&rig, &rig.x[0], x);
    expect_ok(rig.layer.kind->forward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(expect_finite_bits((double)y[i]), i != AT);
    }
    x[AT] = 1.0f;
    rig_write(&rig, &rig.x[0], x);
    expect_ok(rig.layer.kind->forward(&rig.call));
    x[AT] = NAN;
    rig_write(&rig, &rig.dy, x);
    expect_ok(rig.layer.kind->backward(&rig.call));
    const float *dx = rig_read(&rig, &rig.dx[0]);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(expect_finite_bits((double)dx[i]), i != AT);
    }
    rig_close(&rig);
}

static inline void activation_differences(const char *keys) {
    const rp_shape shape = rp_shape_3(3, 5, 7);
    golden_differences(keys, 2, &shape, 1, 1e-3f, 1e-3);
}

/* f of huge inputs: x = +-100 and +-inf; `want` has four values. */
static inline void activation_limits(const char *keys, const float want[4]) {
    const float x[4] = {-100.0f, 100.0f, -INFINITY, INFINITY};
    const rp_shape shape = rp_shape_1(4);
    layer_rig rig;
    rig_open(&rig, "limits", keys, 1, &shape, 1);
    rig_write(&rig, &rig.x[0], x);
    expect_ok(rig.layer.kind->forward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    for (size_t i = 0; i < 4; i++) {
        if (isnan(want[i])) {
            assert_true(isnan(y[i]));
        } else {
            assert_true(fabsf(y[i] - want[i]) < 1e-6f || y[i] == want[i]);
        }
    }
    rig_close(&rig);
}

/* Far from 0 every activation is a straight line, whose slope backward gives. */
static inline void activation_far_slopes(const char *keys) {
    const float x[4] = {-100.0f, -99.0f, 99.0f, 100.0f};
    const rp_shape shape = rp_shape_1(4);
    layer_rig rig;
    rig_open(&rig, "far", keys, 1, &shape, 1);
    rig_write(&rig, &rig.x[0], x);
    rig_write(&rig, &rig.dy, (const float[]){1, 1, 1, 1});
    expect_ok(rp_layer_forward(&rig.call));
    expect_ok(rp_layer_backward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    const float *dx = rig_read(&rig, &rig.dx[0]);
    for (size_t i = 0; i < 4; i++) {
        const size_t first = i / 2 * 2;
        expect_close(dx[i], (double)y[first + 1] - (double)y[first], 0, 2e-5);
    }
    rig_close(&rig);
}

/* ---- the tests of a file --------------------------------------------------------------------- */

/* The layer as in a model, its golden cases, and f of the four huge inputs. */
static struct {
    const char *keys, *golden;
    const float *limits;
} tested;

static void equals_pytorch(void **state) {
    (void)state;
    golden_each(tested.golden, golden_run);
}

static void central_differences(void **state) {
    (void)state;
    activation_differences(tested.keys);
}

static void nan_passes(void **state) {
    (void)state;
    activation_passes_nan(tested.keys);
}

static void limits(void **state) {
    (void)state;
    activation_limits(tested.keys, tested.limits);
}

static void far_slopes(void **state) {
    (void)state;
    activation_far_slopes(tested.keys);
}

static inline int test_activation(const char *keys, const char *golden, const float want[4]) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch), cmocka_unit_test(central_differences),
        cmocka_unit_test(nan_passes),     cmocka_unit_test(limits),
        cmocka_unit_test(far_slopes),
    };
    tested.keys = keys;
    tested.golden = golden;
    tested.limits = want;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
