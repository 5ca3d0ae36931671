#include "golden.h"

#include <math.h>

/* The factor of a sample, by the host's generator. */
static float factor_of(const layer_rig *rig, uint64_t sample, double p) {
    char name[128];
    snprintf(name, sizeof name, "droppath/%s", rig->layer.name);
    const rp_rng rng = rp_rng_named(rig->call.seed, name);
    const bool kept = (rp_rng_word_at(&rng, sample) >> 8) >= (uint32_t)(p * 0x1p24 + 0.5);
    return kept ? (float)(1.0 / (1.0 - p)) : 0.0f;
}

static void check_masked(layer_rig *rig, const rp_tensor *to, const rp_tensor *from,
                         const float *before, double p) {
    const float *got = rig_read(rig, to);
    const float *in = rig_read(rig, from);
    const size_t elements = rp_shape_count(&rig->call.in[0]);
    for (size_t i = 0; i < rp_shape_count(&to->shape); i++) {
        const float factor = factor_of(rig, rig->call.sample_first + i / elements, p);
        const float want = in[i] * factor + (before ? before[i] : 0.0f);
        expect_close_at((double)got[i], (double)want, 1e-6, 1e-6, "masked", i, __FILE__, __LINE__);
    }
}

static const struct {
    const char *keys;
    double p;
    uint32_t n, elements;
    uint64_t sample_first;
} cases[] = {{"{kind: droppath, p: 0.5}", 0.5, 1, 1, 0},
             {"{kind: droppath, p: 0.1}", 0.1, 33, 31, 1},
             {"{kind: droppath, p: 0.25}", 0.25, 65, 33, 1000003},
             {"{kind: droppath, p: 0.9}", 0.9, 32, 65, UINT64_C(1) << 33},
             {"{kind: droppath, p: 0.5}", 0.5, 31, 300, (UINT64_C(1) << 34) - 7},
             {"{kind: droppath, p: 0}", 0.0, 2, 32, 3}};

static void forward_and_backward(void **state) {
    (void)state;
    const size_t case_count = sizeof cases / sizeof *cases;
    for (size_t i = 0; i < 2 * case_count; i++) {
        const size_t c = i % case_count;
        const rp_shape shape = rp_shape_1(cases[c].elements);
        layer_rig rig;
        (i < case_count ? rig_open : rig_open_inside)(&rig, "drop", cases[c].keys, cases[c].n,
                                                      &shape, 1);
        rig.call.seed = 9;
        rig.call.sample_first = cases[c].sample_first;
        rig_draw(&rig, &rig.x[0], "x");
        rig_draw(&rig, &rig.dy, "dy");
        expect_ok(rp_layer_forward(&rig.call));
        check_masked(&rig, &rig.y, &rig.x[0], NULL, cases[c].p);
        rig.call.x[0] = NULL;
        rig.call.y = NULL;
        expect_ok(rp_layer_backward(&rig.call));
        check_masked(&rig, &rig.dx[0], &rig.dy, NULL, cases[c].p);
        const float *before = rig_read(&rig, &rig.dx[0]);
        rig.call.dx_add[0] = true;
        expect_ok(rp_layer_backward(&rig.call));
        check_masked(&rig, &rig.dx[0], &rig.dy, before, cases[c].p);
        rig_expect_guards(&rig);
        rig_close(&rig);
    }
}

/* Samples 0..6 at once, and as 0..2, 3..6 in place: one mask. */
static void mask_belongs_to_the_sample(void **state) {
    (void)state;
    enum { N = 7, FIRST = 3, ELEMENTS = 37 };
    const rp_shape shape = rp_shape_1(ELEMENTS);
    float ones[N * ELEMENTS];
    for (size_t i = 0; i < N * ELEMENTS; i++) {
        ones[i] = 1.0f;
    }
    layer_rig whole;
    rig_open(&whole, "drop", "{kind: droppath, p: 0.5}", N, &shape, 1);
    rig_write(&whole, &whole.x[0], ones);
    whole.call.sample_first = 41;
    expect_ok(rp_layer_forward(&whole.call));
    const float *want = rig_read(&whole, &whole.y);
    for (uint32_t part = 0; part < 2; part++) {
        const uint32_t n = part == 0 ? FIRST : N - FIRST;
        layer_rig rig;
        rig_open(&rig, "drop", "{kind: droppath, p: 0.5}", n, &shape, 1);
        rig_write(&rig, &rig.x[0], ones);
        rig.call.sample_first = 41 + part * FIRST;
        rig.call.y = &rig.x[0];
        expect_ok(rp_layer_forward(&rig.call));
        assert_memory_equal(rig_read(&rig, &rig.x[0]), want + part * FIRST * ELEMENTS,
                            n * ELEMENTS * sizeof(float));
        rig_close(&rig);
    }
    rig_close(&whole);
}

static void evaluation_and_frozen_are_identity(void **state) {
    (void)state;
    const rp_shape shape = rp_shape_1(33);
    for (uint32_t frozen = 0; frozen < 2; frozen++) {
        layer_rig rig;
        rig_open(&rig, "drop", "{kind: droppath, p: 0.9}", 9, &shape, 1);
        rig.call.training = frozen;
        rig.layer.frozen = frozen;
        expect_ok(rp_layer_make_plan(&rig.layer, &shape, &rig.plan));
        assert_true(rig.plan.same == (frozen == 1));
        rig_draw(&rig, &rig.x[0], "x");
        rig_draw(&rig, &rig.dy, "dy");
        expect_ok(rp_layer_forward(&rig.call));
        expect_ok(rp_layer_backward(&rig.call));
        const size_t bytes = rp_tensor_bytes(&rig.y);
        assert_memory_equal(rig_read(&rig, &rig.y), rig_read(&rig, &rig.x[0]), bytes);
        assert_memory_equal(rig_read(&rig, &rig.dx[0]), rig_read(&rig, &rig.dy), bytes);
        rig_close(&rig);
    }
}

static void all_dropped_and_nan(void **state) {
    (void)state;
    enum { COUNT = 40 };
    const rp_shape shape = rp_shape_1(COUNT);
    float x[COUNT];
    golden_values("x", COUNT, x);
    x[17] = NAN;
    layer_rig rig;
    rig_open(&rig, "drop", "{kind: droppath, p: 1}", 1, &shape, 1);
    rig_write(&rig, &rig.x[0], x);
    expect_ok(rp_layer_forward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(i == 17 ? isnan(y[i]) : y[i] == 0.0f);
    }
    rig_close(&rig);
}

static void rate_is_p(void **state) {
    (void)state;
    const uint32_t n = expect_small() ? 100 : 20000;
    const rp_shape shape = rp_shape_1(2);
    layer_rig rig;
    rig_open(&rig, "drop", "{kind: droppath, p: 0.3}", n, &shape, 1);
    rig_draw(&rig, &rig.x[0], "x");
    expect_ok(rp_layer_forward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    double dropped = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true((y[2 * i] == 0.0f) == (y[2 * i + 1] == 0.0f));
        dropped += y[2 * i] == 0.0f;
    }
    expect_close(dropped / n, 0.3, 0, expect_small() ? 0.2 : 0.015);
    rig_close(&rig);
}

static void wrong_keys_are_refused(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"{kind: droppath}", "'p' is needed"},
        {"{kind: droppath, p: 1.5}", "p: expected a number from 0 to 1"},
        {"{kind: droppath, p: -0.1}", "p: expected a number from 0 to 1"}};
    const rp_shape shape = rp_shape_1(2);
    layer_rig rig;
    rig_open(&rig, "drop", "{kind: droppath, p: 0.3}", 1, &shape, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        rp_node *keys;
        expect_ok(rp_config_read_text(&rig.arena, wrong[i][0], strlen(wrong[i][0]), "keys", &keys));
        expect_err(rig.layer.kind->parse(&rig.layer, keys, &(rp_model_data){0}), RP_ERR_USAGE);
        assert_non_null(strstr(rp_err_message(), wrong[i][1]));
    }
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_and_backward),
        cmocka_unit_test(mask_belongs_to_the_sample),
        cmocka_unit_test(evaluation_and_frozen_are_identity),
        cmocka_unit_test(all_dropped_and_nan),
        cmocka_unit_test(rate_is_p),
        cmocka_unit_test(wrong_keys_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
