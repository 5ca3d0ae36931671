#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("mul", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape same[] = {rp_shape_2(3, 7), rp_shape_2(3, 7)};
    const rp_shape gate[] = {rp_shape_3(3, 5, 7), rp_shape_3(3, 1, 1)};
    const rp_shape rows[] = {rp_shape_2(5, 7), rp_shape_2(5, 1)};
    golden_differences("{kind: mul}", 2, same, 2, 1e-2f, 1e-3);
    golden_differences("{kind: mul}", 2, gate, 2, 1e-2f, 1e-3);
    golden_differences("{kind: mul}", 2, rows, 2, 1e-2f, 1e-3);
}

/* Either gradient may not be wanted; the other one has the same bits. */
static void one_gradient_alone(void **state) {
    (void)state;
    const rp_shape cases[][2] = {{{3, {3, 5, 7}}, {3, {3, 1, 1}}}, {{1, {37}}, {1, {37}}}};
    for (size_t c = 0; c < 2; c++) {
        float *both[2];
        layer_rig rig;
        rig_open(&rig, "m", "{kind: mul}", 2, cases[c], 2);
        rig_draw(&rig, &rig.x[0], "a");
        rig_draw(&rig, &rig.x[1], "b");
        rig_draw(&rig, &rig.dy, "dy");
        expect_ok(rp_layer_backward(&rig.call));
        both[0] = rig_read(&rig, &rig.dx[0]);
        both[1] = rig_read(&rig, &rig.dx[1]);
        for (uint32_t i = 0; i < 2; i++) {
            rig_draw(&rig, &rig.dx[i], "before");
            rig.call.dx[i] = &rig.dx[i];
            rig.call.dx[1 - i] = NULL;
            expect_ok(rp_layer_backward(&rig.call));
            assert_memory_equal(rig_read(&rig, &rig.dx[i]), both[i], rp_tensor_bytes(&rig.dx[i]));
        }
        rig_close(&rig);
    }
}

/* `from: [a, a]`, as a stage calls it: both gradients are one tensor, and the second is added. */
static void square_of_one_tensor(void **state) {
    (void)state;
    enum { COUNT = 37, N = 3 };
    const rp_shape in[] = {rp_shape_1(COUNT), rp_shape_1(COUNT)};
    layer_rig rig;
    rig_open_inside(&rig, "m", "{kind: mul}", N, in, 2);
    rig_draw(&rig, &rig.x[0], "a");
    rig_draw(&rig, &rig.dy, "dy");
    rig_draw(&rig, &rig.dx[0], "before");
    rig.call.x[1] = &rig.x[0];
    rig.call.dx[1] = &rig.dx[0];
    rig.call.dx_add[1] = true;
    expect_ok(rp_layer_forward(&rig.call));
    expect_ok(rp_layer_backward(&rig.call));
    const float *a = rig_read(&rig, &rig.x[0]);
    const float *dy = rig_read(&rig, &rig.dy);
    const float *y = rig_read(&rig, &rig.y);
    const float *dx = rig_read(&rig, &rig.dx[0]);
    for (size_t i = 0; i < N * COUNT; i++) {
        expect_close_at((double)y[i], (double)a[i] * (double)a[i], 1e-6, 1e-9, "y", i, __FILE__,
                        __LINE__);
        expect_close_at((double)dx[i], 2 * (double)a[i] * (double)dy[i], 1e-6, 1e-9, "dx", i,
                        __FILE__, __LINE__);
    }
    rig_expect_guards(&rig);
    rig_close(&rig);
}

static void other_shapes_are_refused(void **state) {
    (void)state;
    static const rp_shape cases[][2] = {
        {{2, {2, 3}}, {2, {3, 2}}},    {{3, {4, 5, 6}}, {1, {5}}},       {{2, {4, 5}}, {1, {4}}},
        {{3, {4, 5, 6}}, {2, {4, 5}}}, {{3, {4, 5, 6}}, {3, {2, 1, 1}}},
    };
    const rp_shape same[] = {rp_shape_2(2, 3), rp_shape_2(2, 3)};
    rp_layer_plan plan;
    layer_rig rig;
    rig_open(&rig, "gated", "{kind: mul}", 1, same, 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_err(rig.layer.kind->plan(&rig.layer, cases[i], &plan), RP_ERR_SHAPE);
        assert_non_null(strstr(rp_err_message(), "layer 'gated': mul cannot broadcast"));
    }
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),           cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(one_gradient_alone),       cmocka_unit_test(square_of_one_tensor),
        cmocka_unit_test(other_shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
