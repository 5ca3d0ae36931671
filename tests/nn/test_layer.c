#include "golden.h"

/* What a layer can not compute with is refused before anything is enqueued. */
static void calls_are_checked(void **state) {
    (void)state;
    const rp_shape in = rp_shape_1(6);
    layer_rig rig;
    rig_open(&rig, "fc", "{kind: dense, out: 5}", 4, &in, 1);
    expect_ok(rp_layer_forward(&rig.call));
    rig.x[0].dtype = RP_F16;
    expect_err(rp_layer_forward(&rig.call), RP_ERR_SHAPE);
    assert_non_null(strstr(rp_err_message(), "layer 'fc': x[0] is f16, but dense needs f32 here"));
    expect_err(rp_layer_backward(&rig.call), RP_ERR_SHAPE);
    rig.x[0].dtype = RP_F32;
    rig.dy.offset = 1;
    expect_err(rp_layer_backward(&rig.call), RP_ERR_SHAPE);
    assert_non_null(strstr(rp_err_message(), "layer 'fc': 20 elements of dy[0] from element 1 on"));
    rig.dy.offset = 0;
    rig.call.n = 5;
    expect_err(rp_layer_forward(&rig.call), RP_ERR_SHAPE);
    rig.call.n = 3;
    expect_ok(rp_layer_forward(&rig.call));
    expect_ok(rp_layer_backward(&rig.call));
    rig.param[0].offset = 1;
    expect_err(rp_layer_forward(&rig.call), RP_ERR_SHAPE);
    assert_non_null(strstr(rp_err_message(), "parameter[0]"));
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(calls_are_checked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
