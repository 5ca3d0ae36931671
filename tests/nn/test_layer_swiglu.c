#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("swiglu", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in[] = {rp_shape_2(3, 7), rp_shape_2(3, 7)};
    golden_differences("{kind: swiglu}", 2, in, 2, 1e-2f, 1e-3);
}

/* Either gradient may not be wanted; the other one has the same bits. */
static void one_gradient_alone(void **state) {
    (void)state;
    enum { COUNT = 37 };
    const rp_shape in[] = {rp_shape_1(COUNT), rp_shape_1(COUNT)};
    float *both[2];
    layer_rig rig;
    rig_open(&rig, "s", "{kind: swiglu}", 1, in, 2);
    rig_draw(&rig, &rig.x[0], "gate");
    rig_draw(&rig, &rig.x[1], "up");
    rig_draw(&rig, &rig.dy, "dy");
    expect_ok(rp_layer_backward(&rig.call));
    both[0] = rig_read(&rig, &rig.dx[0]);
    both[1] = rig_read(&rig, &rig.dx[1]);
    for (uint32_t i = 0; i < 2; i++) {
        rig_draw(&rig, &rig.dx[i], "before");
        rig.call.dx[i] = &rig.dx[i];
        rig.call.dx[1 - i] = NULL;
        expect_ok(rp_layer_backward(&rig.call));
        assert_memory_equal(rig_read(&rig, &rig.dx[i]), both[i], COUNT * sizeof(float));
    }
    rig_close(&rig);
}

static void large_gates_are_finite(void **state) {
    (void)state;
    const rp_shape in[] = {rp_shape_1(2), rp_shape_1(2)};
    layer_rig rig;
    rig_open(&rig, "s", "{kind: swiglu}", 1, in, 2);
    rig_write(&rig, &rig.x[0], (const float[]){-100.0f, 100.0f});
    rig_write(&rig, &rig.x[1], (const float[]){2.0f, 2.0f});
    rig_write(&rig, &rig.dy, (const float[]){1.0f, 1.0f});
    expect_ok(rp_layer_forward(&rig.call));
    expect_ok(rp_layer_backward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    const float *dgate = rig_read(&rig, &rig.dx[0]);
    const float *dup = rig_read(&rig, &rig.dx[1]);
    expect_close(y[0], 0, 0, 1e-6);
    expect_close(y[1], 200, 1e-6, 0);
    expect_close(dgate[0], 0, 0, 1e-6);
    expect_close(dgate[1], 2, 1e-6, 0);
    expect_close(dup[0], 0, 0, 1e-6);
    expect_close(dup[1], 100, 1e-6, 0);
    rig_close(&rig);
}

static void unequal_shapes_are_refused(void **state) {
    (void)state;
    const rp_shape same[] = {rp_shape_2(2, 3), rp_shape_2(2, 3)};
    const rp_shape other[] = {rp_shape_2(2, 3), rp_shape_2(3, 2)};
    rp_layer_plan plan;
    layer_rig rig;
    rig_open(&rig, "s", "{kind: swiglu}", 1, same, 2);
    expect_err(rig.layer.kind->plan(&rig.layer, other, &plan), RP_ERR_SHAPE);
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(one_gradient_alone),
        cmocka_unit_test(large_gates_are_finite),
        cmocka_unit_test(unequal_shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
