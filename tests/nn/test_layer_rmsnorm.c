#include "norm_case.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("rmsnorm", golden_run);
}

static void central_differences(void **state) {
    (void)state;
    const rp_shape rows = rp_shape_2(4, 18);
    golden_differences("{kind: rmsnorm}", 3, &rows, 1, 1e-2f, 2e-3);
    golden_differences("{kind: rmsnorm, dims: 2, eps: 0.1}", 3, &rows, 1, 1e-2f, 2e-3);
}

static void a_sample_stands_alone(void **state) {
    (void)state;
    const rp_shape image = rp_shape_3(3, 5, 7);
    norm_case_alone("{kind: rmsnorm}", &image);
    norm_case_alone("{kind: rmsnorm, dims: 0}", &image);
}

/* There is only a weight, and only one number a row is saved. */
static void parameters(void **state) {
    (void)state;
    const rp_shape shape = rp_shape_3(3, 5, 7);
    const rp_shape row = rp_shape_1(7);
    layer_rig rig;
    rig_open(&rig, "rms", "{kind: rmsnorm}", 2, &shape, 1);
    assert_int_equal(rig.plan.param_count, 1);
    assert_string_equal(rig.plan.param[0].suffix, "weight");
    assert_true(rp_shape_equal(&rig.plan.param[0].shape, &row));
    assert_int_equal(rig.plan.param[0].init, RP_INIT_ONE);
    assert_int_equal(rig.plan.saved[0].sample_bytes, 15 * sizeof(float));
    rig_close(&rig);
}

/* Of zeros nothing is left but zeros, and the gradient is finite. */
static void zeros(void **state) {
    (void)state;
    const rp_shape row = rp_shape_1(33);
    layer_rig rig;
    rig_open(&rig, "rms", "{kind: rmsnorm}", 1, &row, 1);
    rig_draw(&rig, &rig.dy, "dy");
    rig_draw(&rig, &rig.param[0], "w");
    expect_ok(rp_layer_forward(&rig.call));
    expect_ok(rp_layer_backward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    const float *dy = rig_read(&rig, &rig.dy);
    const float *w = rig_read(&rig, &rig.param[0]);
    const float *dx = rig_read(&rig, &rig.dx[0]);
    for (size_t i = 0; i < 33; i++) {
        expect_close(y[i], 0, 0, 0);
        expect_close(dx[i], 1000.0 * (double)dy[i] * (double)w[i], 1e-5, 0);
    }
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(central_differences),
        cmocka_unit_test(a_sample_stands_alone),
        cmocka_unit_test(parameters),
        cmocka_unit_test(zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
