#include "golden.h"

#include <math.h>

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("maxpool", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(2, 7, 6);
    golden_differences("{kind: maxpool, kernel: 2}", 2, &in, 1, 1e-3f, 1e-3);
    golden_differences("{kind: maxpool, kernel: 3, stride: 2, pad: 1}", 2, &in, 1, 1e-3f, 1e-3);
    golden_differences("{kind: maxpool, kernel: [3, 2], stride: [1, 2], pad: [0, 1]}", 2, &in, 1,
                       1e-3f, 1e-3);
    golden_differences("{kind: maxpool, kernel: 2, ceil_mode: true}", 2, &in, 1, 1e-3f, 1e-3);
}

/* A NaN comes out of every window that holds it, and takes the gradient; -inf is a number. */
static void nan_wins(void **state) {
    (void)state;
    enum { SIDE = 36 };
    const rp_shape in = rp_shape_3(1, SIDE, SIDE);
    const char *const keys[] = {"{kind: maxpool, kernel: 2}",
                                "{kind: maxpool, kernel: 3, stride: 1, pad: 1}"};
    for (size_t k = 0; k < 2; k++) {
        static float x[SIDE * SIDE];
        layer_rig rig;
        rig_open(&rig, "nan", keys[k], 1, &in, 1);
        for (size_t i = 0; i < SIDE * SIDE; i++) {
            x[i] = i < 4 * SIDE ? -INFINITY : 1.0f;
        }
        x[10 * SIDE + 7] = NAN;
        rig_write(&rig, &rig.x[0], x);
        rig_draw(&rig, &rig.dy, "dy");
        expect_ok(rig.layer.kind->forward(&rig.call));
        expect_ok(rig.layer.kind->backward(&rig.call));
        const float *y = rig_read(&rig, &rig.y);
        const float *dy = rig_read(&rig, &rig.dy);
        const float *dx = rig_read(&rig, &rig.dx[0]);
        size_t nans = 0;
        double taken = 0;
        for (size_t i = 0; i < rp_shape_count(&rig.y.shape); i++) {
            nans += isnan(y[i]) ? 1 : 0;
            taken += isnan(y[i]) ? (double)dy[i] : 0.0;
        }
        assert_int_equal(nans, k == 0 ? 1 : 9);
        expect_close(dx[10 * SIDE + 7], taken, 1e-5, 1e-6);
        assert_true(isinf(y[0]) && y[0] < 0);
        rig_close(&rig);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(nan_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
