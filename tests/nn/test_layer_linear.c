#include <math.h>

#include "golden.h"
#include "nn/model.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("linear", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(2, 3, 3);
    golden_differences("{kind: linear, out: 5}", 3, &in, 1, 0.25f, 1e-4);
    golden_differences("{kind: linear, out: 5, layout: in-out}", 3, &in, 1, 0.25f, 1e-4);
}

/* W and the bias do not change, so central differences are of x, A and B only. */
static void low_rank_gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(2, 3, 5);
    golden_differences("{kind: linear, out: 5, lora: {rank: 2, alpha: 3}}", 3, &in, 1, 0.25f, 1e-4);
    golden_differences("{kind: linear, out: 5, bias: false, layout: in-out, lora: {rank: 2, "
                       "dropout: 0.5}}",
                       3, &in, 1, 0.25f, 1e-4);
}

static const rp_param *find_param(const layer_rig *rig, const char *suffix) {
    for (uint32_t p = 0; p < rig->plan.param_count; p++) {
        if (strcmp(rig->plan.param[p].suffix, suffix) == 0) {
            return &rig->plan.param[p];
        }
    }
    fail_msg("no parameter %s", suffix);
    return NULL;
}

/* Names, shapes and initial values of PEFT: B is 0, so the layer begins as the one without it. */
static void low_rank_parameters(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(2, 7, 16);
    layer_rig rig;
    rig_open(&rig, "l", "{kind: linear, out: 10, lora: {rank: 4}}", 1, &in, 1);
    assert_int_equal(rig.plan.param_count, 4);
    assert_int_equal(find_param(&rig, "weight")->role, RP_PARAM_FROZEN);
    assert_int_equal(find_param(&rig, "bias")->role, RP_PARAM_FROZEN);
    const rp_param *a = find_param(&rig, "lora_A.weight");
    const rp_param *b = find_param(&rig, "lora_B.weight");
    assert_true(a->role == RP_PARAM_TRAINED && b->role == RP_PARAM_TRAINED);
    assert_true(rp_shape_equal(&a->shape, &(rp_shape){.dims = 2, .dim = {4, 16}}));
    assert_true(rp_shape_equal(&b->shape, &(rp_shape){.dims = 2, .dim = {10, 4}}));
    expect_close(a->init_bound, 0.25, 0, 0);
    assert_int_equal(b->init, RP_INIT_ZERO);
    assert_false(rig.layer.kind->fuse_relu(&rig.layer)); /* the sum is complete only at the end */
    rig_close(&rig);
}

/* A layer that is frozen by `train: false` still trains A and B; wrong keys are named. */
static void low_rank_keys(void **state) {
    (void)state;
    static const struct {
        const char *keys, *words;
    } bad[] = {
        {"linear, out: 5, lora: 8", "layers[0].lora: expected a map like {rank: 8, alpha: 16}"},
        {"linear, out: 5, lora: {alpha: 8}", "rank"},
        {"linear, out: 5, lora: {rank: 0}", "rank: expected a whole number from 1 to"},
        {"linear, out: 5, lora: {rank: 2, alpha: 0}", "alpha"},
        {"linear, out: 5, lora: {rank: 2, dropout: 2}", "dropout"},
        {"linear, out: 5, lora: {rank: 2, beta: 2}", "beta"},
        {"linear, out: 5, lora: {rank: 6}", "lora.rank is 6, expected at most 5"},
        {"dense, out: 5, lora: {rank: 2}", "lora"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[300];
        rp_arena arena;
        rp_node *root;
        rp_model *model;
        rp_arena_init(&arena, "model", 0);
        (void)snprintf(text, sizeof text, "input: [2, 7]\nlayers:\n  - {name: l, kind: %s}\n",
                       bad[i].keys);
        expect_ok(rp_config_read_text(&arena, text, strlen(text), "net.yaml", &root));
        assert_int_not_equal(rp_model_parse(&arena, root, &(rp_model_data){0}, &model), RP_OK);
        if (!strstr(rp_err_message(), bad[i].words) || !strstr(rp_err_message(), "net.yaml:3")) {
            fail_msg("%s: %s", bad[i].keys, rp_err_message());
        }
        rp_arena_finish(&arena);
    }
}

/* The last axis is the fan in, however many rows a sample has; torch's shapes. */
static void parameters(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(2, 7, 16);
    const rp_shape out = rp_shape_3(2, 7, 10);
    const rp_shape weight[] = {rp_shape_2(10, 16), rp_shape_2(16, 10)};
    const char *const keys[] = {"{kind: linear, out: classes}",
                                "{kind: linear, out: classes, layout: in-out}"};
    for (size_t i = 0; i < 2; i++) {
        layer_rig rig;
        rig_open(&rig, "l", keys[i], 1, &in, 1);
        assert_true(rp_shape_equal(&rig.plan.out, &out));
        assert_int_equal(rig.plan.param_count, 2);
        assert_string_equal(rig.plan.param[0].suffix, "weight");
        assert_true(rp_shape_equal(&rig.plan.param[0].shape, &weight[i]));
        expect_close(rig.plan.param[0].init_bound, 0.25, 0, 0);
        expect_close(rig.plan.param[1].init_bound, 0.25, 0, 0);
        expect_close(rig.plan.flops_forward, 2.0 * 14 * 16 * 10, 0, 0);
        rig_close(&rig);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(low_rank_gradients_are_differences),
        cmocka_unit_test(low_rank_parameters),
        cmocka_unit_test(low_rank_keys),
        cmocka_unit_test(parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
