#include <math.h>

#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("sinusoid", golden_run);
}

/* The waves are exact at steps at which an angle in float32 is wrong by 0.003. */
static void late_steps_are_exact(void **state) {
    (void)state;
    enum { T = 50000, C = 6 };
    const rp_shape in = rp_shape_2(T, C);
    layer_rig rig;
    if (expect_small()) {
        skip();
    }
    rig_open(&rig, "s", "{kind: sinusoid}", 1, &in, 1);
    expect_ok(rp_layer_forward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    for (size_t t = 0; t < T; t++) {
        for (size_t i = 0; i < C; i++) {
            const double angle = (double)t / pow(10000, (double)(i / 2 * 2) / C);
            expect_close(y[t * C + i], i % 2 == 0 ? sin(angle) : cos(angle), 0, 1e-6);
        }
    }
    rig_close(&rig);
}

static void an_image_is_refused(void **state) {
    (void)state;
    const rp_shape in = rp_shape_2(3, 4);
    const rp_shape image = rp_shape_3(3, 4, 4);
    rp_layer_plan plan;
    layer_rig rig;
    rig_open(&rig, "s", "{kind: sinusoid}", 1, &in, 1);
    expect_err(rig.layer.kind->plan(&rig.layer, &image, &plan), RP_ERR_SHAPE);
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(late_steps_are_exact),
        cmocka_unit_test(an_image_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
