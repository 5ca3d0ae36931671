#include "norm_case.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("layernorm", golden_run);
}

static void central_differences(void **state) {
    (void)state;
    const rp_shape image = rp_shape_3(3, 5, 5);
    const rp_shape row = rp_shape_1(18);
    golden_differences("{kind: layernorm}", 3, &image, 1, 1e-2f, 2e-3);
    golden_differences("{kind: layernorm}", 9, &row, 1, 1e-2f, 2e-3);
}

static void a_sample_stands_alone(void **state) {
    (void)state;
    const rp_shape image = rp_shape_3(3, 5, 7);
    norm_case_alone("{kind: layernorm}", &image);
}

static void variance_is_stable(void **state) {
    (void)state;
    const rp_shape row = rp_shape_1(9800);
    norm_case_stable("{kind: layernorm}", &row);
}

/* torch's names and shapes: weight and bias are as large as a sample. */
static void parameters(void **state) {
    (void)state;
    const rp_shape shape = rp_shape_3(3, 5, 7);
    layer_rig rig;
    rig_open(&rig, "ln", "{kind: layernorm}", 2, &shape, 1);
    assert_int_equal(rig.plan.param_count, 2);
    assert_string_equal(rig.plan.param[0].suffix, "weight");
    assert_string_equal(rig.plan.param[1].suffix, "bias");
    for (uint32_t i = 0; i < 2; i++) {
        assert_memory_equal(&rig.plan.param[i].shape, &shape, sizeof shape);
        assert_int_equal(rig.plan.param[i].init, i == 0 ? RP_INIT_ONE : RP_INIT_ZERO);
    }
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(central_differences),
        cmocka_unit_test(a_sample_stands_alone),
        cmocka_unit_test(variance_is_stable),
        cmocka_unit_test(parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
