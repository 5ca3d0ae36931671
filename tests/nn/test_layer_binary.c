#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("binary", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape pairs[][2] = {
        {{2, {3, 7}}, {2, {3, 7}}}, {{1, {7}}, {2, {3, 7}}}, {{2, {3, 1}}, {2, {1, 7}}}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        golden_differences("{kind: sub}", 2, pairs[i], 2, 1e-2f, 1e-3);
    }
}

/* `from: [a, a]`, as a stage calls it: both gradients are one tensor, and the second is added. */
static void one_tensor_twice(void **state) {
    (void)state;
    enum { COUNT = 37, N = 3 };
    static const struct {
        const char *keys;
        double value, gradient;
    } cases[] = {{"{kind: div}", 1, 0}, {"{kind: sub}", 0, 0}, {"{kind: equal}", 1, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const rp_shape in[] = {rp_shape_1(COUNT), rp_shape_1(COUNT)};
        layer_rig rig;
        rig_open_inside(&rig, "twice", cases[c].keys, N, in, 2);
        rig_draw(&rig, &rig.x[0], "a");
        rig_draw(&rig, &rig.dy, "dy");
        rig.call.x[1] = &rig.x[0];
        rig.call.dx[1] = &rig.dx[0];
        rig.call.dx_add[1] = true;
        expect_ok(rp_layer_forward(&rig.call));
        expect_ok(rp_layer_backward(&rig.call));
        const float *y = rig_read(&rig, &rig.y);
        const float *dx = rig_read(&rig, &rig.dx[0]);
        for (size_t i = 0; i < N * COUNT; i++) {
            expect_close_at((double)y[i], cases[c].value, 0, 1e-6, "y", i, __FILE__, __LINE__);
            expect_close_at((double)dx[i], cases[c].gradient, 0, 1e-3, "dx", i, __FILE__, __LINE__);
        }
        rig_expect_guards(&rig);
        rig_close(&rig);
    }
}

/* The gradient of an operand does not depend on whether that of the other is wanted. */
static void one_gradient_alone(void **state) {
    (void)state;
    const rp_shape in[] = {{2, {5, 33}}, {1, {33}}};
    float *both[2];
    layer_rig rig;
    rig_open(&rig, "alone", "{kind: div}", 2, in, 2);
    rig_draw(&rig, &rig.x[0], "a");
    rig_draw(&rig, &rig.x[1], "b");
    rig_draw(&rig, &rig.dy, "dy");
    expect_ok(rp_layer_backward(&rig.call));
    both[0] = rig_read(&rig, &rig.dx[0]);
    both[1] = rig_read(&rig, &rig.dx[1]);
    for (uint32_t i = 0; i < 2; i++) {
        rig.call.dx[i] = &rig.dx[i];
        rig.call.dx[1 - i] = NULL;
        rig_draw(&rig, &rig.dx[i], "before");
        expect_ok(rp_layer_backward(&rig.call));
        assert_memory_equal(rig_read(&rig, &rig.dx[i]), both[i], rp_tensor_bytes(&rig.dx[i]));
    }
    rig_close(&rig);
}

/* Ids of the model's input are compared as numbers. */
static void ids_make_a_mask(void **state) {
    (void)state;
    static const int32_t id[] = {0, 7, 1 << 20, 0, -3, 7};
    static const float wanted[] = {0, 1, 0, 0, 0, 1};
    const rp_shape in[] = {rp_shape_1(3), rp_shape_1(1)};
    layer_rig rig;
    rig_open(&rig, "mask", "{kind: equal}", 2, in, 2);
    rig.layer.reads_ids = true;
    expect_ok(rig.layer.kind->plan(&rig.layer, in, &rig.plan));
    assert_true(rp_layer_takes_ids(&rig.plan, 0) && !rp_layer_takes_ids(&rig.plan, 1));
    rig.x[0].dtype = RP_I32;
    rig.call.dx[0] = NULL;
    expect_ok(rp_tensor_write(golden_device(), &rig.x[0], id));
    rig_write(&rig, &rig.x[1], (const float[]){7, 7});
    expect_ok(rp_layer_forward(&rig.call));
    assert_memory_equal(rig_read(&rig, &rig.y), wanted, sizeof wanted);
    expect_ok(rp_layer_backward(&rig.call));
    const float *dx = rig_read(&rig, &rig.dx[1]);
    assert_true(dx[0] == 0.0f && dx[1] == 0.0f);
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
    const rp_shape pair[] = {{2, {2, 3}}, {2, {3, 2}}};
    const rp_shape three[] = {{1, {3}}, {1, {3}}, {1, {2}}};
    expect_refused("sub", "{kind: sub}", pair, 2, "sub cannot broadcast [2, 3], [3, 2] to one");
    expect_refused("where", "{kind: where}", three, 3, "where cannot broadcast [3], [3], [2] to");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),   cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(one_tensor_twice), cmocka_unit_test(one_gradient_alone),
        cmocka_unit_test(ids_make_a_mask),  cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
