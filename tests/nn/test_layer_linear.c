#include <math.h>

#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("linear", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(2, 3, 3);
    golden_differences("{kind: linear, out: 5}", 3, &in, 1, 0.25f, 1e-4);
    golden_differences("{kind: linear, out: 5, layout: in-out}", 3, &in, 1, 0.25f, 1e-4);
}

/* The last axis is the fan in, however many rows a sample has; torch's shapes. */
static void parameters(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(2, 7, 16);
    const rp_shape out = rp_shape_3(2, 7, 10);
    const rp_shape weight[] = {rp_shape_2(10, 16), rp_shape_2(16, 10)};
    const char *const keys[] = {"{kind: linear, out: classes}",
                                "{kind: linear, out: classes, layout: in-out}"};
    for (size_t i = 0; i < 2; i++) {
        layer_rig rig;
        rig_open(&rig, "l", keys[i], 1, &in, 1);
        assert_true(rp_shape_equal(&rig.plan.out, &out));
        assert_int_equal(rig.plan.param_count, 2);
        assert_string_equal(rig.plan.param[0].suffix, "weight");
        assert_true(rp_shape_equal(&rig.plan.param[0].shape, &weight[i]));
        expect_close(rig.plan.param[0].init_bound, 0.25, 0, 0);
        expect_close(rig.plan.param[1].init_bound, 0.25, 0, 0);
        expect_close(rig.plan.flops_forward, 2.0 * 14 * 16 * 10, 0, 0);
        rig_close(&rig);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
