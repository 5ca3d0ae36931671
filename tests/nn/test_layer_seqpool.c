#include <math.h>

#include "golden.h"

#include "nn/model.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("seqpool", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in = rp_shape_2(5, 7);
    golden_differences("{kind: seqpool}", 2, &in, 1, 0.25f, 1e-4);
    golden_differences("{kind: seqpool, mode: last}", 2, &in, 1, 0.25f, 1e-4);
    golden_differences("{kind: seqpool, mode: first}", 2, &in, 1, 0.25f, 1e-4);
    golden_differences("{kind: seqpool, mode: max}", 2, &in, 1, 1e-3f, 1e-3);
}

/* Runs `x` [4, 3] of one sample with ids {0, 5, 5, 0} and padding 0, and leaves y and dx of dy = 1.
 */
static void run_padded(const char *keys, const float x[12], float y[3], float dx[12]) {
    static const int32_t ids[] = {0, 5, 5, 0};
    const rp_shape in[] = {rp_shape_2(4, 3), rp_shape_1(4)};
    layer_rig rig;
    rig_open_inside(&rig, "s", keys, 1, in, 2);
    assert_int_equal(rig.plan.ids, 2);
    assert_int_equal(rig.plan.id_count, 0);
    assert_false(rig.plan.needs_x);
    rig_write(&rig, &rig.x[0], x);
    expect_ok(rp_tensor_write(golden_device(), &rig.x[1], ids));
    rig_write(&rig, &rig.dy, (const float[]){1, 1, 1});
    expect_ok(rp_layer_forward(&rig.call));
    expect_ok(rp_layer_backward(&rig.call));
    memcpy(y, rig_read(&rig, &rig.y), 3 * sizeof *y);
    memcpy(dx, rig_read(&rig, &rig.dx[0]), 12 * sizeof *dx);
    rig_expect_guards(&rig);
    rig_close(&rig);
}

/* The first of equal elements takes the gradient, a NaN is the maximum, and minus infinity is an
 * element like any other. */
static void max_of_special_values(void **state) {
    (void)state;
    static const float x[12] = {9, 9, 9, 2, NAN, -INFINITY, 2, 7, -INFINITY, 9, 9, 9};
    static const float want[12] = {0, 0, 0, 1, 1, 1};
    float y[3];
    float dx[12];
    run_padded("{kind: seqpool, mode: max, padding: 0}", x, y, dx);
    assert_true(y[0] == 2.0f && isnan(y[1]) && y[2] == -INFINITY);
    assert_memory_equal(dx, want, sizeof want);
}

/* What padding contains has no effect, not even a NaN. */
static void padding_does_not_count(void **state) {
    (void)state;
    static const float x[12] = {NAN, NAN, NAN, 1, 2, 3, 5, 6, 7, NAN, INFINITY, NAN};
    static const struct {
        const char *mode;
        float y[3];
        float share[2]; /* of the gradient, of the two steps that count */
    } cases[] = {
        {"mean", {3, 4, 5}, {0.5f, 0.5f}},
        {"max", {5, 6, 7}, {0, 1}},
        {"last", {5, 6, 7}, {0, 1}},
        {"first", {1, 2, 3}, {1, 0}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char keys[64];
        float y[3];
        float dx[12];
        snprintf(keys, sizeof keys, "{kind: seqpool, mode: %s, padding: 0}", cases[k].mode);
        run_padded(keys, x, y, dx);
        assert_memory_equal(y, cases[k].y, sizeof y);
        for (size_t i = 0; i < 12; i++) {
            const bool some = i / 3 == 1 || i / 3 == 2;
            assert_true(dx[i] == (some ? cases[k].share[i / 3 - 1] : 0.0f));
        }
    }
}

/* An evaluation has no memory to save to. */
static void runs_without_a_backward(void **state) {
    (void)state;
    static const char *const modes[] = {"mean", "max", "last", "first"};
    const rp_shape in[] = {rp_shape_2(4, 3), rp_shape_1(4)};
    for (size_t k = 0; k < sizeof modes / sizeof *modes; k++) {
        char keys[64];
        layer_rig rig;
        snprintf(keys, sizeof keys, "{kind: seqpool, mode: %s, padding: 1}", modes[k]);
        rig_open(&rig, "s", keys, 2, in, 2);
        rig_draw(&rig, &rig.x[0], "x");
        expect_ok(rp_layer_forward(&rig.call));
        const float *with = rig_read(&rig, &rig.y);
        rig.call.saved[0] = NULL;
        expect_ok(rp_layer_forward(&rig.call));
        assert_memory_equal(rig_read(&rig, &rig.y), with, 6 * sizeof *with);
        assert_true(with[0] != 0.0f);
        rig_close(&rig);
    }
}

/* The result of a model whose pooling is written as `pool`. */
static rp_err parse_model(const char *pool) {
    rp_arena arena;
    rp_node *root;
    rp_model *model;
    char *text;
    const rp_model_data data = {.sample = rp_shape_1(4), .type = RP_I32, .tokens = 10};
    rp_arena_init(&arena, "model", 0);
    expect_ok(rp_arena_printf(&arena, &text,
                              "{input: data, layers: [{name: e, kind: embedding, count: tokens, "
                              "out: 3}, {name: p, kind: seqpool, %s}]}",
                              pool));
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "m", &root));
    const rp_err err = rp_model_parse(&arena, root, &data, &model);
    rp_arena_finish(&arena);
    return err;
}

static void keys_and_inputs_agree(void **state) {
    (void)state;
    expect_ok(parse_model("mode: max"));
    expect_ok(parse_model("from: [e, data], padding: 0"));
    expect_err(parse_model("from: [e, data]"), RP_ERR_USAGE);
    expect_err(parse_model("padding: 0"), RP_ERR_USAGE);
    expect_err(parse_model("mode: median"), RP_ERR_USAGE);
    expect_err(parse_model("from: data"), RP_ERR_SHAPE);
    expect_err(parse_model("from: [e, e], padding: 0"), RP_ERR_SHAPE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),          cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(max_of_special_values),   cmocka_unit_test(padding_does_not_count),
        cmocka_unit_test(runs_without_a_backward), cmocka_unit_test(keys_and_inputs_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
