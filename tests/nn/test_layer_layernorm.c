#include "norm_case.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("layernorm", golden_run);
}

static void central_differences(void **state) {
    (void)state;
    const rp_shape image = rp_shape_3(3, 5, 5);
    const rp_shape row = rp_shape_1(18);
    const rp_shape rows = rp_shape_2(4, 18);
    golden_differences("{kind: layernorm}", 3, &image, 1, 1e-2f, 2e-3);
    golden_differences("{kind: layernorm}", 9, &row, 1, 1e-2f, 2e-3);
    golden_differences("{kind: layernorm, dims: 1}", 2, &rows, 1, 1e-2f, 2e-3);
}

static void a_sample_stands_alone(void **state) {
    (void)state;
    const rp_shape image = rp_shape_3(3, 5, 7);
    norm_case_alone("{kind: layernorm}", &image);
    norm_case_alone("{kind: layernorm, dims: 1}", &image);
    norm_case_alone("{kind: layernorm, dims: 2}", &image);
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

/* Rows of a sample have the same bits as samples of one row each. */
static void rows_are_samples(void **state) {
    enum { ROWS = 6, WIDE = 33, COUNT = ROWS * WIDE };
    (void)state;
    const rp_shape shape[] = {rp_shape_1(WIDE), rp_shape_2(3, WIDE)};
    const char *const keys[] = {"{kind: layernorm}", "{kind: layernorm, dims: 1}"};
    float *result[2][4];
    layer_rig rig[2];
    for (uint32_t k = 0; k < 2; k++) {
        rig_open(&rig[k], "ln", keys[k], ROWS / (uint32_t)(rp_shape_count(&shape[k]) / WIDE),
                 &shape[k], 1);
        rig_draw(&rig[k], &rig[k].x[0], "x");
        rig_draw(&rig[k], &rig[k].dy, "dy");
        rig_draw(&rig[k], &rig[k].param[0], "w");
        rig_draw(&rig[k], &rig[k].param[1], "b");
        expect_ok(rp_layer_forward(&rig[k].call));
        expect_ok(rp_layer_backward(&rig[k].call));
        result[k][0] = rig_read(&rig[k], &rig[k].y);
        result[k][1] = rig_read(&rig[k], &rig[k].dx[0]);
        result[k][2] = rig_read(&rig[k], &rig[k].dparam[0]);
        result[k][3] = rig_read(&rig[k], &rig[k].dparam[1]);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_memory_equal(result[0][i], result[1][i], (i < 2 ? COUNT : WIDE) * sizeof(float));
        assert_true(result[0][i][1] != 0);
    }
    rig_close(&rig[0]);
    rig_close(&rig[1]);
}

/* As many axes as `dims` names have a weight; more than the sample has are refused. */
static void axes(void **state) {
    (void)state;
    const rp_shape shape = rp_shape_3(3, 5, 7);
    const rp_shape row = rp_shape_2(5, 7);
    layer_rig rig;
    rp_layer_plan plan;
    rig_open(&rig, "ln", "{kind: layernorm, dims: 2}", 2, &shape, 1);
    assert_true(rp_shape_equal(&rig.plan.param[0].shape, &row));
    assert_true(rp_shape_equal(&rig.plan.param[1].shape, &row));
    assert_int_equal(rig.plan.sharing, 35);
    assert_int_equal(rig.plan.saved[0].sample_bytes, 3 * 2 * sizeof(float));
    const rp_shape flat = rp_shape_1(105);
    expect_err(rp_layer_make_plan(&rig.layer, &flat, &plan), RP_ERR_SHAPE);
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(central_differences),
        cmocka_unit_test(a_sample_stands_alone),
        cmocka_unit_test(variance_is_stable),
        cmocka_unit_test(parameters),
        cmocka_unit_test(rows_are_samples),
        cmocka_unit_test(axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
