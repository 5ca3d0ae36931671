#include "golden.h"

#include <math.h>

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("additive", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in[] = {rp_shape_2(3, 5), rp_shape_2(4, 5), rp_shape_2(4, 6)};
    golden_differences("{kind: additive}", 2, in, 3, 1e-2f, 1e-3);
    golden_differences("{kind: additive, normalise: true}", 2, in, 3, 1e-2f, 1e-3);
}

/* Scores of +-300 are not a problem of the exponential. */
static void large_scores_are_finite(void **state) {
    (void)state;
    const rp_shape in[] = {rp_shape_2(1, 1), rp_shape_2(2, 1), rp_shape_2(2, 1)};
    layer_rig rig;
    rig_open(&rig, "a", "{kind: additive}", 1, in, 3);
    rig_write(&rig, &rig.x[0], (const float[]){0.0f});
    rig_write(&rig, &rig.x[1], (const float[]){9.0f, -9.0f});
    rig_write(&rig, &rig.x[2], (const float[]){2.0f, 5.0f});
    rig_write(&rig, &rig.param[0], (const float[]){300.0f});
    rig_write(&rig, &rig.dy, (const float[]){1.0f});
    expect_ok(rp_layer_forward(&rig.call));
    expect_ok(rp_layer_backward(&rig.call));
    expect_close(rig_read(&rig, &rig.y)[0], 2, 1e-6, 0);
    assert_true(isfinite(rig_read(&rig, &rig.dx[1])[0]));
    expect_close(rig_read(&rig, &rig.dx[2])[0], 1, 1e-6, 0);
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(large_scores_are_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
