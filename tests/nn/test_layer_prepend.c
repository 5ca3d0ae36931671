#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("prepend", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in = rp_shape_2(3, 5);
    golden_differences("{kind: prepend}", 2, &in, 1, 0.25f, 1e-4);
}

static void initial_values(void **state) {
    (void)state;
    const rp_shape in = rp_shape_2(3, 5);
    layer_rig rig;
    rig_open(&rig, "p", "{kind: prepend}", 1, &in, 1);
    assert_int_equal(rig.plan.param[0].init, RP_INIT_ZERO);
    rig_close(&rig);
    rig_open(&rig, "p", "{kind: prepend, std: 0.02}", 1, &in, 1);
    assert_int_equal(rig.plan.param[0].init, RP_INIT_NORMAL);
    assert_true(rig.plan.param[0].init_bound == 0.02f);
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(initial_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
