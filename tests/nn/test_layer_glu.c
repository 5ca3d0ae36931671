#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("glu", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in = rp_shape_2(3, 14);
    golden_differences("{kind: glu}", 2, &in, 1, 1e-2f, 1e-3);
}

static void large_gates_are_finite(void **state) {
    (void)state;
    const rp_shape in = rp_shape_1(4);
    layer_rig rig;
    rig_open(&rig, "g", "{kind: glu}", 1, &in, 1);
    rig_write(&rig, &rig.x[0], (const float[]){3.0f, 3.0f, -100.0f, 100.0f});
    rig_write(&rig, &rig.dy, (const float[]){1.0f, 1.0f});
    expect_ok(rp_layer_forward(&rig.call));
    expect_ok(rp_layer_backward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    const float *dx = rig_read(&rig, &rig.dx[0]);
    expect_close(y[0], 0, 0, 1e-6);
    expect_close(y[1], 3, 1e-6, 0);
    static const float want[] = {0, 1, 0, 0};
    for (size_t i = 0; i < 4; i++) {
        expect_close(dx[i], want[i], 0, 1e-6);
    }
    rig_close(&rig);
}

static void odd_axes_are_refused(void **state) {
    (void)state;
    const rp_shape even = rp_shape_2(3, 4);
    const rp_shape odd = rp_shape_2(4, 3);
    rp_layer_plan plan;
    layer_rig rig;
    rig_open(&rig, "g", "{kind: glu}", 1, &even, 1);
    assert_int_equal(rig.plan.out.dim[1], 2);
    expect_err(rig.layer.kind->plan(&rig.layer, &odd, &plan), RP_ERR_SHAPE);
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(large_gates_are_finite),
        cmocka_unit_test(odd_axes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
