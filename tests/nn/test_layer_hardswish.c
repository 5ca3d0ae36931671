#include "activation.h"

/* At the bounds, and the next float32 on either side. */
static void kinks(void **state) {
    (void)state;
    enum { COUNT = 6 };
    static const float x[COUNT] = {-3.0f, -3.0000002f, -2.9999998f, 3.0f, 3.0000002f, 2.9999998f};
    static const float want[COUNT] = {0, 0, -0.5f, 1, 1, 1.5f};
    const rp_shape shape = rp_shape_1(COUNT);
    layer_rig rig;
    rig_open(&rig, "kinks", "{kind: hardswish}", 1, &shape, 1);
    rig_write(&rig, &rig.x[0], x);
    rig_write(&rig, &rig.dy, (const float[COUNT]){1, 1, 1, 1, 1, 1});
    expect_ok(rp_layer_forward(&rig.call));
    expect_ok(rp_layer_backward(&rig.call));
    const float *dx = rig_read(&rig, &rig.dx[0]);
    for (size_t i = 0; i < COUNT; i++) {
        expect_close(dx[i], want[i], 1e-6, 1e-6);
    }
    assert_true(dx[0] == want[0] && dx[3] == want[3]);
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kinks)};
    return test_activation("{kind: hardswish}", "hardswish",
                           (const float[]){0.0f, 100.0f, NAN, INFINITY}) +
           cmocka_run_group_tests(tests, NULL, NULL);
}
