#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("convtranspose2d", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    static const char *const keys[] = {
        "{kind: convtranspose2d, out: 6, kernel: 3, pad: 1}",
        "{kind: convtranspose2d, out: 6, kernel: 3, pad: 1, stride: 2, output_pad: 1}",
        "{kind: convtranspose2d, out: 8, kernel: 2, stride: 2, groups: 4}",
        "{kind: convtranspose2d, out: 6, kernel: [1, 3], stride: [1, 2], output_pad: [0, 1]}",
    };
    const rp_shape in = rp_shape_3(4, 4, 3);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        golden_differences(keys[i], 2, &in, 1, 0.25f, 1e-4);
    }
}

/* sum(y * dy) of a convtranspose2d without bias is sum(x * dx): it is linear, and dx is its
 * transpose. The same with fewer samples than were planned. */
static void is_its_own_adjoint(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(5, 9, 7);
    for (uint32_t n = 3; n <= 4; n++) {
        layer_rig rig;
        double forward = 0;
        double backward = 0;
        rig_open_inside(&rig, "t",
                        "{kind: convtranspose2d, out: 3, kernel: 3, stride: 2, bias: false}", 4,
                        &in, 1);
        rig.call.n = n;
        rig_draw(&rig, &rig.x[0], "x");
        rig_draw(&rig, &rig.dy, "dy");
        rig_draw(&rig, &rig.y, "before");
        rig_draw(&rig, &rig.param[0], "weight");
        const float *before = rig_read(&rig, &rig.y);
        expect_ok(rp_layer_forward(&rig.call));
        expect_ok(rp_layer_backward(&rig.call));
        const float *x = rig_read(&rig, &rig.x[0]);
        const float *dx = rig_read(&rig, &rig.dx[0]);
        const float *y = rig_read(&rig, &rig.y);
        const float *dy = rig_read(&rig, &rig.dy);
        const size_t outputs = rp_shape_count(&rig.plan.out);
        for (size_t i = 0; i < n * outputs; i++) {
            forward += (double)y[i] * (double)dy[i];
        }
        for (size_t i = 0; i < n * rp_shape_count(&in); i++) {
            backward += (double)x[i] * (double)dx[i];
        }
        expect_close(forward, backward, 1e-5, 1e-4);
        assert_memory_equal(y + n * outputs, before + n * outputs,
                            (4 - n) * outputs * sizeof(float));
        rig_expect_guards(&rig);
        rig_close(&rig);
    }
}

/* Initial values as torch's: axis 1 of the weight counts as the inputs. */
static void plan_is_that_of_pytorch(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(8, 5, 6);
    const rp_shape weight = rp_shape_4(8, 2, 3, 3);
    const rp_shape out = rp_shape_3(4, 10, 12);
    layer_rig rig;
    rig_open(
        &rig, "t",
        "{kind: convtranspose2d, out: 4, kernel: 3, stride: 2, pad: 1, output_pad: 1, groups: 2}",
        1, &in, 1);
    assert_true(rp_shape_equal(&rig.plan.param[0].shape, &weight));
    assert_true(rp_shape_equal(&rig.plan.out, &out));
    expect_close(rig.plan.param[0].init_bound, 0.23570226, 1e-6, 0);
    expect_close(rig.plan.param[1].init_bound, 0.23570226, 1e-6, 0);
    expect_close(rig.plan.flops_forward, 2.0 * 8 * 5 * 6 * 2 * 9, 1e-12, 0);
    rig_close(&rig);
}

static void wrong_layers_are_refused(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"{kind: convtranspose2d, out: 2}", "'kernel' is needed"},
        {"{kind: convtranspose2d, kernel: 2}", "'out' is needed"},
        {"{kind: convtranspose2d, out: 2, kernel: 2, stride: 2, output_pad: 2}",
         "output_pad: expected less than `stride`, 2"},
        {"{kind: convtranspose2d, out: 2, kernel: 2, stride: [2, 1], output_pad: [1, 1]}",
         "output_pad: expected less than `stride`, [2, 1], found 1"},
        {"{kind: convtranspose2d, out: 2, kernel: [2, 2, 2]}", "a list of two: [height, width]"},
        {"{kind: convtranspose2d, out: 3, kernel: 2, groups: 2}", "groups"},
    };
    const rp_shape image = rp_shape_3(4, 1, 1);
    const rp_shape odd = rp_shape_3(3, 5, 5);
    const rp_shape row = rp_shape_2(4, 4);
    const rp_shape large = rp_shape_3(4, 40000, 40000);
    rp_layer_plan plan;
    layer_rig rig;
    rig_open(&rig, "t", "{kind: convtranspose2d, out: 2, kernel: 3, pad: 1, groups: 2}", 1, &image,
             1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint64_t spec[16];
        rp_layer layer = {.kind = rig.layer.kind, .name = "w", .spec = spec};
        rp_node *keys;
        assert_true(layer.kind->spec_bytes <= sizeof spec);
        expect_ok(rp_config_read_text(&rig.arena, wrong[i][0], strlen(wrong[i][0]), "keys", &keys));
        expect_err(layer.kind->parse(&layer, keys, &(rp_model_data){0}), RP_ERR_USAGE);
        assert_non_null(strstr(rp_err_message(), wrong[i][1]));
    }
    expect_err(rp_layer_make_plan(&rig.layer, &row, &plan), RP_ERR_SHAPE);
    assert_non_null(strstr(rp_err_message(), "needs an image"));
    expect_err(rp_layer_make_plan(&rig.layer, &odd, &plan), RP_ERR_SHAPE);
    assert_non_null(strstr(rp_err_message(), "not divisible by groups"));
    expect_err(rp_layer_make_plan(&rig.layer, &large, &plan), RP_ERR_SHAPE);
    assert_non_null(strstr(rp_err_message(), "layer 't': a 3x3 kernel"));
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),           cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(is_its_own_adjoint),       cmocka_unit_test(plan_is_that_of_pytorch),
        cmocka_unit_test(wrong_layers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
