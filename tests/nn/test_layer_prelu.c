#include <math.h>

#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("prelu", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape image = rp_shape_3(3, 5, 7);
    const rp_shape rows = rp_shape_2(5, 7);
    golden_differences("{kind: prelu}", 2, &image, 1, 1e-3f, 1e-3);
    golden_differences("{kind: prelu}", 3, &rows, 1, 1e-3f, 1e-3);
    golden_differences("{kind: prelu, shared: true}", 2, &rows, 1, 1e-3f, 1e-3);
}

/* The slope counts at 0, a NaN stays one, and infinities do not become NaN. */
static void special_values(void **state) {
    (void)state;
    enum { COUNT = 5 };
    static const float x[COUNT] = {0.0f, NAN, -INFINITY, INFINITY, -100.0f};
    const rp_shape shape = rp_shape_1(COUNT);
    layer_rig rig;
    rig_open(&rig, "p", "{kind: prelu, shared: true}", 1, &shape, 1);
    assert_int_equal(rig.plan.param[0].init, RP_INIT_CONSTANT);
    assert_true(rig.plan.param[0].init_bound == 0.25f);
    rig_write(&rig, &rig.param[0], (const float[]){0.25f});
    rig_write(&rig, &rig.x[0], x);
    rig_write(&rig, &rig.dy, (const float[COUNT]){1, 1, 1, 1, 1});
    expect_ok(rp_layer_forward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    assert_true(y[0] == 0.0f && isnan(y[1]) && y[2] == -INFINITY && y[3] == INFINITY);
    assert_true(y[4] == -25.0f);
    expect_ok(rp_layer_backward(&rig.call));
    const float *dx = rig_read(&rig, &rig.dx[0]);
    assert_true(dx[0] == 0.25f && dx[2] == 0.25f && dx[3] == 1.0f && dx[4] == 0.25f);
    assert_true(isnan(rig_read(&rig, &rig.dparam[0])[0]));
    rig_close(&rig);
}

static void one_slope_for_each_channel(void **state) {
    (void)state;
    static const struct {
        const char *keys;
        rp_shape shape;
        uint32_t slopes;
    } cases[] = {
        {"{kind: prelu}", {3, {4, 5, 6}}, 4},
        {"{kind: prelu}", {2, {5, 6}}, 6},
        {"{kind: prelu}", {1, {7}}, 7},
        {"{kind: prelu, shared: true}", {3, {4, 5, 6}}, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        layer_rig rig;
        rig_open(&rig, "p", cases[i].keys, 1, &cases[i].shape, 1);
        assert_int_equal(rig.plan.param[0].shape.dims, 1);
        assert_int_equal(rig.plan.param[0].shape.dim[0], cases[i].slopes);
        rig_close(&rig);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(special_values),
        cmocka_unit_test(one_slope_for_each_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
