#include "golden.h"

#include <math.h>

#include "device/program.h"

/* The mask by the host's generator. */
static float kept(const layer_rig *rig, uint64_t word, double p) {
    char name[128];
    snprintf(name, sizeof name, "dropout/%s", rig->layer.name);
    const rp_rng rng = rp_rng_named(rig->call.seed, name);
    return (rp_rng_word_at(&rng, word) >> 8) >= (uint32_t)(p * 0x1p24 + 0.5) ? 1.0f : 0.0f;
}

static void words_equal_the_host(void **state) {
    (void)state;
    enum { COUNT = 301 };
    rp_device *device = golden_device();
    rp_arena arena;
    rp_darena *memory;
    rp_buffer *words;
    uint32_t got[COUNT];
    const rp_rng rng = rp_rng_named(77, "dropout/d");
    const uint64_t firsts[] = {0, 5, (UINT64_C(1) << 34) - 100, UINT64_MAX - 1000};
    rp_arena_init(&arena, "words", 0);
    expect_ok(rp_darena_open(&arena, device, "words", 0, 0, &memory));
    expect_ok(rp_darena_take(memory, sizeof got, &words));
    for (size_t f = 0; f < sizeof firsts / sizeof *firsts; f++) {
        rp_kernel *kernel;
        expect_ok(rp_kernel_find(device, "dropout", "philox_words", NULL, &kernel));
        rp_launch launch = rp_launch_begin(kernel);
        rp_arg_buffer(&launch, words);
        rp_arg_u32(&launch, COUNT);
        rp_arg_u64(&launch, firsts[f]);
        rp_arg_u32(&launch, rng.key[0]);
        rp_arg_u32(&launch, rng.key[1]);
        expect_ok(rp_launch_run(&launch, 1, (size_t[]){COUNT / 64 + 2}, NULL));
        expect_ok(rp_buffer_read_now(device, got, words, 0, sizeof got));
        for (uint32_t i = 0; i < COUNT; i++) {
            assert_int_equal(got[i], rp_rng_word_at(&rng, firsts[f] + i));
        }
    }
    rp_darena_close(&memory);
    rp_arena_finish(&arena);
}

static void check_masked(layer_rig *rig, const rp_tensor *to, const rp_tensor *from,
                         const float *before, double p) {
    const float *got = rig_read(rig, to);
    const float *in = rig_read(rig, from);
    const size_t elements = rp_shape_count(&rig->call.in[0]);
    const float scale = (float)(1.0 / (1.0 - p));
    for (size_t i = 0; i < rp_shape_count(&to->shape); i++) {
        const uint64_t word = rig->call.sample_first * elements + i;
        const float want = in[i] * kept(rig, word, p) * scale + (before ? before[i] : 0.0f);
        expect_close_at((double)got[i], (double)want, 1e-6, 1e-6, "masked", i, __FILE__, __LINE__);
    }
}

static void forward_and_backward(void **state) {
    (void)state;
    const struct {
        const char *keys;
        double p;
        uint32_t n, elements;
        uint64_t sample_first;
    } cases[] = {{"{kind: dropout}", 0.5, 1, 1, 0},
                 {"{kind: dropout, p: 0.1}", 0.1, 3, 31, 1},
                 {"{kind: dropout, p: 0.25}", 0.25, 5, 33, 1000003},
                 {"{kind: dropout, p: 0.9}", 0.9, 2, 65, UINT64_C(1) << 33},
                 {"{kind: dropout, p: 0}", 0.0, 2, 32, 3}};
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
        expect_ok(rig.layer.kind->forward(&rig.call));
        check_masked(&rig, &rig.y, &rig.x[0], NULL, cases[c].p);
        rig.call.x[0] = NULL;
        rig.call.y = NULL;
        expect_ok(rig.layer.kind->backward(&rig.call));
        check_masked(&rig, &rig.dx[0], &rig.dy, NULL, cases[c].p);
        const float *before = rig_read(&rig, &rig.dx[0]);
        rig.call.dx_add[0] = true;
        expect_ok(rig.layer.kind->backward(&rig.call));
        check_masked(&rig, &rig.dx[0], &rig.dy, before, cases[c].p);
        rig_expect_guards(&rig);
        rig_close(&rig);
    }
}

/* Samples 0..6 at once, and as 0..2, 3..6: one mask. In place too. */
static void mask_belongs_to_the_sample(void **state) {
    (void)state;
    enum { N = 7, FIRST = 3, ELEMENTS = 37 };
    const rp_shape shape = rp_shape_1(ELEMENTS);
    float ones[N * ELEMENTS];
    for (size_t i = 0; i < N * ELEMENTS; i++) {
        ones[i] = 1.0f;
    }
    layer_rig whole;
    rig_open(&whole, "drop", "{kind: dropout}", N, &shape, 1);
    rig_write(&whole, &whole.x[0], ones);
    whole.call.sample_first = 41;
    expect_ok(whole.layer.kind->forward(&whole.call));
    const float *want = rig_read(&whole, &whole.y);
    for (uint32_t part = 0; part < 2; part++) {
        const uint32_t n = part == 0 ? FIRST : N - FIRST;
        layer_rig rig;
        rig_open(&rig, "drop", "{kind: dropout}", n, &shape, 1);
        rig_write(&rig, &rig.x[0], ones);
        rig.call.sample_first = 41 + part * FIRST;
        rig.call.y = &rig.x[0];
        expect_ok(rig.layer.kind->forward(&rig.call));
        const float *got = rig_read(&rig, &rig.x[0]);
        assert_memory_equal(got, want + part * FIRST * ELEMENTS, n * ELEMENTS * sizeof(float));
        rig_close(&rig);
    }
    rig_close(&whole);
}

static void evaluation_is_identity(void **state) {
    (void)state;
    const rp_shape shape = rp_shape_1(33);
    layer_rig rig;
    rig_open(&rig, "drop", "{kind: dropout}", 3, &shape, 1);
    rig.call.training = false;
    rig_draw(&rig, &rig.x[0], "x");
    expect_ok(rig.layer.kind->forward(&rig.call));
    assert_memory_equal(rig_read(&rig, &rig.y), rig_read(&rig, &rig.x[0]), 99 * sizeof(float));
    rp_tensor *x = &rig.x[0];
    rig.call.y = x;
    expect_ok(rig.layer.kind->forward(&rig.call));
    assert_memory_equal(rig_read(&rig, &rig.y), rig_read(&rig, x), 99 * sizeof(float));
    rig_draw(&rig, &rig.dy, "dy");
    expect_ok(rig.layer.kind->backward(&rig.call));
    assert_memory_equal(rig_read(&rig, &rig.dx[0]), rig_read(&rig, &rig.dy), 99 * sizeof(float));
    rig_close(&rig);
}

static void all_dropped_and_nan(void **state) {
    (void)state;
    enum { COUNT = 40 };
    const rp_shape shape = rp_shape_1(COUNT);
    float x[COUNT];
    golden_values("x", COUNT, x);
    x[17] = NAN;
    layer_rig rig;
    rig_open(&rig, "drop", "{kind: dropout, p: 1}", 1, &shape, 1);
    rig_write(&rig, &rig.x[0], x);
    expect_ok(rig.layer.kind->forward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(i == 17 ? isnan(y[i]) : y[i] == 0.0f);
    }
    rig_close(&rig);
}

static void rate_is_p(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    const rp_shape shape = rp_shape_1(COUNT);
    layer_rig rig;
    rig_open(&rig, "drop", "{kind: dropout, p: 0.3}", 1, &shape, 1);
    rig_draw(&rig, &rig.x[0], "x");
    expect_ok(rig.layer.kind->forward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    double dropped = 0;
    for (size_t i = 0; i < COUNT; i++) {
        dropped += y[i] == 0.0f;
    }
    expect_close(dropped / COUNT, 0.3, 0, 0.01);
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_equal_the_host),       cmocka_unit_test(forward_and_backward),
        cmocka_unit_test(mask_belongs_to_the_sample), cmocka_unit_test(evaluation_is_identity),
        cmocka_unit_test(all_dropped_and_nan),        cmocka_unit_test(rate_is_p),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
