#include "golden.h"

#include <math.h>

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("unary", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    static const char *const keys[] = {"{kind: neg}", "{kind: exp}", "{kind: erf}",
                                       "{kind: pow, exponent: 2}", "{kind: pow, exponent: 3}"};
    const rp_shape in = rp_shape_2(3, 7);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        golden_differences(keys[i], 2, &in, 1, 1e-2f, 1e-3);
    }
}

/* A NaN is not taken for a number, except by kinds that make masks. */
static void nan_stays_nan(void **state) {
    (void)state;
    static const char *const keys[] = {"{kind: neg}",
                                       "{kind: abs}",
                                       "{kind: exp}",
                                       "{kind: log}",
                                       "{kind: sqrt}",
                                       "{kind: erf}",
                                       "{kind: clip, min: -1, max: 1}",
                                       "{kind: reciprocal}",
                                       "{kind: pow, exponent: 1.5}"};
    const rp_shape in = rp_shape_1(3);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        layer_rig rig;
        rig_open(&rig, "nan", keys[i], 1, &in, 1);
        rig_write(&rig, &rig.x[0], (const float[]){0.5f, NAN, 1.0f});
        expect_ok(rp_layer_forward(&rig.call));
        const float *y = rig_read(&rig, &rig.y);
        assert_true(isfinite(y[0]) && isnan(y[1]) && isfinite(y[2]));
        rig_close(&rig);
    }
    layer_rig rig;
    rig_open(&rig, "nan", "{kind: isnan}", 1, &in, 1);
    rig_write(&rig, &rig.x[0], (const float[]){0.5f, NAN, INFINITY});
    expect_ok(rp_layer_forward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    assert_true(y[0] == 0.0f && y[1] == 1.0f && y[2] == 0.0f);
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
    const rp_shape in = rp_shape_1(3);
    expect_refused("pow", "{kind: pow}", &in, 1, "exponent");
    expect_refused("clip", "{kind: clip, min: 1, max: 1}", &in, 1, "clip needs min below max");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(nan_stays_nan),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
