#include "norm_case.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("groupnorm", golden_run);
}

static void central_differences(void **state) {
    (void)state;
    const rp_shape image = rp_shape_3(6, 5, 5);
    const rp_shape row = rp_shape_1(36);
    golden_differences("{kind: groupnorm, groups: 2}", 3, &image, 1, 1e-2f, 2e-3);
    golden_differences("{kind: groupnorm, groups: 3}", 5, &row, 1, 1e-2f, 2e-3);
}

static void a_sample_stands_alone(void **state) {
    (void)state;
    const rp_shape image = rp_shape_3(6, 5, 7);
    const rp_shape row = rp_shape_1(36);
    norm_case_alone("{kind: groupnorm, groups: 3}", &image);
    norm_case_alone("{kind: groupnorm, groups: 2}", &row);
}

static void variance_is_stable(void **state) {
    (void)state;
    const rp_shape image = rp_shape_3(2, 70, 70);
    norm_case_stable("{kind: groupnorm, groups: 1}", &image);
}

/* PyTorch raises where a group has one value; here y = bias and dx = 0. */
static void groups_of_one_value(void **state) {
    (void)state;
    const rp_shape shape = rp_shape_1(33);
    layer_rig rig;
    rig_open(&rig, "gn", "{kind: groupnorm, groups: 33}", 2, &shape, 1);
    rig_draw(&rig, &rig.x[0], "x");
    rig_draw(&rig, &rig.dy, "dy");
    rig_draw(&rig, &rig.param[0], "w");
    rig_draw(&rig, &rig.param[1], "b");
    expect_ok(rig.layer.kind->forward(&rig.call));
    expect_ok(rig.layer.kind->backward(&rig.call));
    const float *bias = rig_read(&rig, &rig.param[1]);
    for (size_t i = 0; i < 2 * (size_t)33; i++) {
        expect_close(rig_read(&rig, &rig.y)[i], bias[i % 33], 0, 0);
        expect_close(rig_read(&rig, &rig.dx[0])[i], 0, 0, 0);
    }
    rig_close(&rig);
}

static void groups_divide_the_channels(void **state) {
    (void)state;
    const rp_shape shape = rp_shape_3(6, 2, 2);
    rp_layer_plan plan;
    uint64_t spec[2];
    rp_layer layer = {.kind = rp_layer_find("groupnorm"), .name = "gn", .spec = spec};
    rp_arena arena;
    rp_node *keys;
    assert_true(layer.kind->spec_bytes <= sizeof spec);
    rp_arena_init(&arena, "keys", 0);
    const char *text = "{groups: 4}";
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "keys", &keys));
    expect_ok(layer.kind->parse(&layer, keys, &(rp_model_data){.classes = 10, .tokens = 10}));
    expect_err(layer.kind->plan(&layer, &shape, &plan), RP_ERR_SHAPE);
    assert_non_null(strstr(rp_err_message(), "6 channels do not divide into 4 groups"));
    text = "{eps: 0.1}"; /* groups has no default */
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "keys", &keys));
    expect_err(layer.kind->parse(&layer, keys, &(rp_model_data){.classes = 10, .tokens = 10}),
               RP_ERR_USAGE);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),        cmocka_unit_test(central_differences),
        cmocka_unit_test(a_sample_stands_alone), cmocka_unit_test(variance_is_stable),
        cmocka_unit_test(groups_of_one_value),   cmocka_unit_test(groups_divide_the_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
