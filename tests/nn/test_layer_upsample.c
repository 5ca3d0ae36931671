#include "golden.h"

#include <math.h>

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("upsample", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape image = rp_shape_3(2, 5, 7);
    golden_differences("{kind: upsample}", 2, &image, 1, 1e-2f, 1e-3);
    golden_differences("{kind: upsample, mode: bilinear}", 2, &image, 1, 1e-2f, 1e-3);
    golden_differences("{kind: upsample, scale: 3, mode: bilinear, align_corners: true}", 2, &image,
                       1, 1e-2f, 1e-3);
}

/* An infinity reaches only the pixels that are copies of it. */
static void nearest_only_copies(void **state) {
    (void)state;
    const rp_shape image = rp_shape_3(1, 3, 5);
    float values[15];
    layer_rig rig;
    golden_values("x", 15, values);
    values[7] = INFINITY;
    rig_open(&rig, "u", "{kind: upsample, scale: 3}", 1, &image, 1);
    rig_write(&rig, &rig.x[0], values);
    expect_ok(rp_layer_forward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    for (size_t i = 0; i < 9 * 15; i++) {
        assert_true(y[i] == values[i / 15 / 3 * 5 + i % 15 / 3]);
    }
    rig_draw(&rig, &rig.dy, "dy");
    float *dy = rig_read(&rig, &rig.dy);
    dy[0] = INFINITY;
    rig_write(&rig, &rig.dy, dy);
    expect_ok(rp_layer_backward(&rig.call));
    const float *dx = rig_read(&rig, &rig.dx[0]);
    for (size_t i = 0; i < 15; i++) {
        assert_true(isfinite(dx[i]) == (i != 0));
    }
    rig_close(&rig);
}

/* A constant image stays constant, and the gradient's sum is that of dy. */
static void weights_sum_to_one(void **state) {
    (void)state;
    static const char *const keys[] = {
        "{kind: upsample, scale: 64, mode: bilinear}",
        "{kind: upsample, scale: 64, mode: bilinear, align_corners: true}",
        "{kind: upsample, scale: 7, mode: bilinear, align_corners: true}",
    };
    const rp_shape images[] = {{3, {1, 3, 18}}, {3, {1, 1, 2}}, {3, {2, 1, 1}}};
    /* A factor of 64 is too much for interpreted kernels. */
    for (size_t k = expect_small() ? 6 : 0; k < 9; k++) {
        float threes[54];
        double want = 0;
        double got = 0;
        layer_rig rig;
        for (size_t i = 0; i < 54; i++) {
            threes[i] = 3.0f;
        }
        rig_open_inside(&rig, "u", keys[k / 3], 1, &images[k % 3], 1);
        rig_write(&rig, &rig.x[0], threes);
        rig_draw(&rig, &rig.dy, "dy");
        expect_ok(rp_layer_forward(&rig.call));
        expect_ok(rp_layer_backward(&rig.call));
        const float *y = rig_read(&rig, &rig.y);
        const float *dy = rig_read(&rig, &rig.dy);
        const float *dx = rig_read(&rig, &rig.dx[0]);
        for (size_t i = 0; i < rp_shape_count(&rig.plan.out); i++) {
            expect_close_at((double)y[i], 3.0, 1e-6, 0, "y", i, __FILE__, __LINE__);
            want += (double)dy[i];
        }
        for (size_t i = 0; i < rp_shape_count(&images[k % 3]); i++) {
            got += (double)dx[i];
        }
        expect_close(got, want, 0, 1e-2);
        rig_expect_guards(&rig);
        rig_close(&rig);
    }
}

static void wrong_layers_are_refused(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"{kind: upsample, scale: 0}", "scale"},
        {"{kind: upsample, mode: cubic}", "mode"},
        {"{kind: upsample, align_corners: true}", "align_corners"},
    };
    const rp_shape image = rp_shape_3(1, 2, 2);
    const rp_shape row = rp_shape_2(2, 2);
    const rp_shape large = rp_shape_3(1, 1, 20000);
    rp_layer_plan plan;
    layer_rig rig;
    rig_open(&rig, "up", "{kind: upsample}", 1, &image, 1);
    assert_int_equal(rig.plan.out.dim[2], 4);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        rp_node *keys;
        expect_ok(rp_config_read_text(&rig.arena, wrong[i][0], strlen(wrong[i][0]), "keys", &keys));
        expect_err(rig.layer.kind->parse(&rig.layer, keys, &(rp_model_data){0}), RP_ERR_USAGE);
        assert_non_null(strstr(rp_err_message(), wrong[i][1]));
    }
    rig_close(&rig);
    rig_open(&rig, "up", "{kind: upsample}", 1, &image, 1);
    expect_err(rp_layer_make_plan(&rig.layer, &row, &plan), RP_ERR_SHAPE);
    assert_non_null(strstr(rp_err_message(), "needs an image"));
    expect_err(rp_layer_make_plan(&rig.layer, &large, &plan), RP_ERR_SHAPE);
    assert_non_null(strstr(rp_err_message(), "too large"));
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),           cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(nearest_only_copies),      cmocka_unit_test(weights_sum_to_one),
        cmocka_unit_test(wrong_layers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
