#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("scale", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape image = rp_shape_3(3, 5, 7);
    const rp_shape rows = rp_shape_2(5, 7);
    golden_differences("{kind: scale}", 2, &image, 1, 1e-2f, 1e-3);
    golden_differences("{kind: scale, init: 0.1}", 3, &rows, 1, 1e-2f, 1e-3);
}

static void one_weight_for_each_channel(void **state) {
    (void)state;
    static const struct {
        const char *keys;
        rp_shape sample, weight;
        float init;
    } cases[] = {
        {"{kind: scale}", {3, {4, 5, 6}}, {3, {4, 1, 1}}, 1.0f},
        {"{kind: scale, init: 1e-6}", {3, {4, 1, 1}}, {3, {4, 1, 1}}, 1e-6f},
        {"{kind: scale, init: 0}", {2, {5, 6}}, {1, {6}}, 0.0f},
        {"{kind: scale, init: 0.1}", {1, {7}}, {1, {7}}, 0.1f},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        layer_rig rig;
        rig_open(&rig, "s", cases[i].keys, 1, &cases[i].sample, 1);
        assert_true(rp_shape_equal(&rig.plan.param[0].shape, &cases[i].weight));
        assert_int_equal(rig.plan.param[0].init, RP_INIT_CONSTANT);
        assert_true(rig.plan.param[0].init_bound == cases[i].init);
        rig_close(&rig);
    }
}

/* A frozen layer keeps no x, so it may work in place. */
static void frozen_in_place(void **state) {
    (void)state;
    enum { N = 3, COUNT = 37 };
    const rp_shape shape = rp_shape_1(COUNT);
    layer_rig rig;
    rig_open(&rig, "s", "{kind: scale}", N, &shape, 1);
    rig.layer.frozen = true;
    expect_ok(rp_layer_make_plan(&rig.layer, &shape, &rig.plan));
    assert_true(rig.plan.in_place && !rig.plan.needs_x);
    assert_false(rp_layer_trains(&rig.plan));
    rig_draw(&rig, &rig.x[0], "x");
    rig_draw(&rig, &rig.dy, "dy");
    rig_draw(&rig, &rig.param[0], "weight");
    const float *x = rig_read(&rig, &rig.x[0]);
    const float *dy = rig_read(&rig, &rig.dy);
    const float *weight = rig_read(&rig, &rig.param[0]);
    rig.call.y = &rig.x[0];
    expect_ok(rp_layer_forward(&rig.call));
    rig.call.dparam[0] = NULL;
    rig.call.dx[0] = &rig.dy;
    rig.call.x[0] = NULL;
    expect_ok(rp_layer_backward(&rig.call));
    const float *y = rig_read(&rig, &rig.x[0]);
    const float *dx = rig_read(&rig, &rig.dy);
    for (size_t i = 0; i < N * COUNT; i++) {
        assert_true(y[i] == x[i] * weight[i % COUNT]);
        assert_true(dx[i] == dy[i] * weight[i % COUNT]);
    }
    rig_close(&rig);
}

static void wrong_layers_are_refused(void **state) {
    (void)state;
    const rp_shape shape = rp_shape_1(3);
    const rp_shape scalar = {0};
    rp_layer_plan plan;
    rp_node *keys;
    layer_rig rig;
    rig_open(&rig, "s", "{kind: scale}", 1, &shape, 1);
    expect_err(rp_layer_make_plan(&rig.layer, &scalar, &plan), RP_ERR_SHAPE);
    expect_ok(rp_config_read_text(&rig.arena, "{init: -1}", 10, "keys", &keys));
    expect_err(rig.layer.kind->parse(&rig.layer, keys, &(rp_model_data){0}), RP_ERR_USAGE);
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(one_weight_for_each_channel),
        cmocka_unit_test(frozen_in_place),
        cmocka_unit_test(wrong_layers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
