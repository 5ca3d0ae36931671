#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("sequence", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(3, 2, 4);
    golden_differences("{kind: sequence}", 2, &in, 1, 0.25f, 1e-4);
}

static void only_images_are_taken(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(3, 2, 4);
    const rp_shape row = rp_shape_1(5);
    rp_layer_plan plan;
    layer_rig rig;
    rig_open(&rig, "s", "{kind: sequence}", 1, &in, 1);
    const rp_shape want = rp_shape_2(8, 3);
    assert_true(rp_shape_equal(&rig.plan.out, &want));
    expect_err(rp_layer_make_plan(&rig.layer, &row, &plan), RP_ERR_SHAPE);
    assert_non_null(strstr(rp_err_message(), "needs an image"));
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(only_images_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
