#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("position", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in = rp_shape_2(3, 5);
    golden_differences("{kind: position, length: 4}", 2, &in, 1, 0.25f, 1e-4);
}

/* The rows of the weight after the last step have gradient 0, or keep it when accumulating. */
static void unused_rows(void **state) {
    (void)state;
    enum { T = 3, C = 5, LENGTH = 7, FIRST = T * C, COUNT = LENGTH * C };
    const rp_shape in = rp_shape_2(T, C);
    float before[COUNT];
    layer_rig rig;
    rig_open(&rig, "p", "{kind: position, length: 7}", 2, &in, 1);
    assert_int_equal(rig.plan.param[0].init, RP_INIT_NORMAL);
    assert_true(rig.plan.param[0].init_bound == 1.0f);
    golden_values("before", COUNT, before);
    rig_draw(&rig, &rig.dy, "dy");
    rig_draw(&rig, &rig.dparam[0], "before");
    rig.call.accumulate = true;
    expect_ok(rp_layer_backward(&rig.call));
    const float *dw = rig_read(&rig, &rig.dparam[0]);
    assert_memory_equal(dw + FIRST, before + FIRST, (COUNT - FIRST) * sizeof(float));
    rig.call.accumulate = false;
    expect_ok(rp_layer_backward(&rig.call));
    dw = rig_read(&rig, &rig.dparam[0]);
    for (size_t i = FIRST; i < COUNT; i++) {
        assert_true(dw[i] == 0.0f);
    }
    rig_close(&rig);
}

static void wrong_shapes_are_refused(void **state) {
    (void)state;
    static const rp_shape shapes[] = {{2, {8, 5}}, {1, {5}}, {3, {1, 2, 3}}};
    const rp_shape in = rp_shape_2(7, 5);
    layer_rig rig;
    rig_open(&rig, "p", "{kind: position, length: 7}", 1, &in, 1);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        rp_layer_plan plan;
        expect_err(rig.layer.kind->plan(&rig.layer, &shapes[i], &plan), RP_ERR_SHAPE);
    }
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(unused_rows),
        cmocka_unit_test(wrong_shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
