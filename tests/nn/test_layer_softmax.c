#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("softmax", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(3, 4, 5);
    golden_differences("{kind: softmax}", 2, &in, 1, 1e-2f, 1e-3);
    golden_differences("{kind: softmax, axis: 0}", 2, &in, 1, 1e-2f, 1e-3);
    golden_differences("{kind: logsoftmax, axis: 1}", 2, &in, 1, 1e-2f, 1e-3);
}

static void axis_must_exist(void **state) {
    (void)state;
    const rp_shape in = rp_shape_2(3, 4);
    rp_layer_plan plan;
    layer_rig rig;
    rig_open(&rig, "l", "{kind: softmax, axis: 1}", 1, &in, 1);
    const rp_shape row = rp_shape_1(4);
    expect_err(rig.layer.kind->plan(&rig.layer, &row, &plan), RP_ERR_SHAPE);
    assert_non_null(strstr(rp_err_message(), "softmax of axis 1, but its input is [4]"));
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(axis_must_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
