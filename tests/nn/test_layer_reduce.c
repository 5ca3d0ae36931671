#include "golden.h"

#include <math.h>

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("reduce", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(3, 4, 5);
    golden_differences("{kind: mean, axes: [0, 2]}", 2, &in, 1, 0.25f, 1e-3);
    golden_differences("{kind: sum, axes: [1], keep: true}", 2, &in, 1, 0.25f, 1e-3);
    golden_differences("{kind: max-over, axes: [1]}", 2, &in, 1, 1e-3f, 1e-2);
}

/* The largest of numbers and a NaN is the NaN, which has the gradient. */
static void nan_is_largest(void **state) {
    (void)state;
    const rp_shape in = rp_shape_1(4);
    layer_rig rig;
    rig_open(&rig, "nan", "{kind: max-over}", 1, &in, 1);
    rig_write(&rig, &rig.x[0], (const float[]){2, NAN, 5, NAN});
    rig_write(&rig, &rig.dy, (const float[]){3});
    expect_ok(rp_layer_forward(&rig.call));
    expect_ok(rp_layer_backward(&rig.call));
    assert_true(isnan(rig_read(&rig, &rig.y)[0]));
    assert_memory_equal(rig_read(&rig, &rig.dx[0]), ((const float[]){0, 3, 0, 0}),
                        4 * sizeof(float));
    rig_close(&rig);
}

/* The message of a plan that is refused. */
static void expect_refused(const char *kind, const char *keys, const rp_shape *in, uint32_t count,
                           const char *says) {
    rp_layer layer = {.kind = rp_layer_find(kind), .name = "l", .input_count = count};
    rp_arena arena;
    rp_node *node;
    rp_layer_plan plan;
    rp_arena_init(&arena, "refused", 0);
    expect_ok(rp_config_read_text(&arena, keys, strlen(keys), "m.yaml", &node));
    expect_ok(rp_arena_alloc(&arena, 1, layer.kind->spec_bytes + 1, &layer.spec));
    rp_err err = layer.kind->parse(&layer, node, &(rp_model_data){0});
    err = err == RP_OK ? layer.kind->plan(&layer, in, &plan) : err;
    assert_int_not_equal(err, RP_OK);
    if (!strstr(rp_err_message(), says)) {
        fail_msg("'%s' is not in '%s'", says, rp_err_message());
    }
    rp_arena_finish(&arena);
}

static void refusals(void **state) {
    (void)state;
    const rp_shape in = rp_shape_2(3, 4);
    expect_refused("mean", "{kind: mean, axes: [2]}", &in, 1,
                   "mean of axis 2, but its input is [3, 4]");
    expect_refused("sum", "{kind: sum, axes: [1, 1]}", &in, 1, "axes that differ, found 1 twice");
    expect_refused("sum", "{kind: sum, axes: 1}", &in, 1, "expected a list of 1 to 5 axes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(nan_is_largest),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
