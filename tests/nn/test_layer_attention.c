#include "golden.h"

#include <math.h>

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("attention", golden_run);
}

static void central_differences(void **state) {
    (void)state;
    const rp_shape packed = rp_shape_2(6, 4 * 3 * 2);
    const rp_shape three[] = {rp_shape_2(5, 16), rp_shape_2(34, 8), rp_shape_2(34, 6)};
    golden_differences("{kind: attention, heads: 4, kv_heads: 2, causal: true}", 2,
                       &(rp_shape){2, {6, 8 * 3}}, 1, 1e-2f, 2e-3);
    golden_differences("{kind: attention, heads: 4, dropout: 0.3, rotary: {}}", 2, &packed, 1,
                       1e-2f, 2e-3);
    golden_differences("{kind: attention, heads: 4, kv_heads: 2, dropout: 0.5}", 3, three, 3, 1e-2f,
                       2e-3);
}

/* ---- dropout -------------------------------------------------------------------------------- */

enum { SIZE = 41 }; /* keys, and columns of v, which is the identity: y is P */

static void write_identity(layer_rig *rig) {
    float *v;
    expect_ok(RP_ARENA_NEW(&rig->arena, rp_shape_count(&rig->x[2].shape), &v));
    const size_t heads = rig->call.in[2].dim[1] / SIZE;
    for (size_t row = 0; row < rig->call.n * SIZE; row++) {
        for (size_t head = 0; head < heads; head++) {
            v[(row * heads + head) * SIZE + row % SIZE] = 1.0f;
        }
    }
    rig_write(rig, &rig->x[2], v);
}

static void open_weights(layer_rig *rig, const char *keys, uint32_t n, uint32_t queries,
                         uint32_t heads, uint32_t kv_heads) {
    const rp_shape in[] = {rp_shape_2(queries, heads * 3), rp_shape_2(SIZE, kv_heads * 3),
                           rp_shape_2(SIZE, kv_heads * SIZE)};
    rig_open(rig, "att", keys, n, in, 3);
    rig_draw(rig, &rig->x[0], "q");
    rig_draw(rig, &rig->x[1], "k");
    write_identity(rig);
    rig->call.seed = 5;
}

/* Whether the weight is kept, by the host's generator; see kernels/attention.cl. */
static bool is_kept(const layer_rig *rig, uint64_t run, uint32_t query, uint32_t key, double p) {
    const uint64_t panels = (rig->call.in[0].dim[0] + 31) / 32;
    const uint64_t word = run * ((SIZE + 1) / 2) * panels * 64 +
                          (key / 2 * panels + query / 32) * 64 + key % 2 * 32 + query % 32;
    const rp_rng rng = rp_rng_named(rig->call.seed, "dropout/att");
    return (rp_rng_word_at(&rng, word) >> 8) >= (uint32_t)(p * 0x1p24 + 0.5);
}

/* Every weight is that without dropout, times 0 or 1 / (1 - p), by its own word of the stream. */
static void check_weights(const char *keys, const char *plain_keys, double p, uint32_t heads,
                          uint32_t kv_heads) {
    enum { N = 2, QUERIES = 35 };
    layer_rig rig;
    layer_rig plain;
    open_weights(&rig, keys, N, QUERIES, heads, kv_heads);
    open_weights(&plain, plain_keys, N, QUERIES, heads, kv_heads);
    rig.call.sample_first = UINT64_C(1) << 33;
    expect_ok(rp_layer_forward(&rig.call));
    expect_ok(rp_layer_forward(&plain.call));
    const float *got = rig_read(&rig, &rig.y);
    const float *weight = rig_read(&plain, &plain.y);
    double kept = 0;
    double count = 0;
    for (uint32_t sample = 0; sample < N; sample++) {
        for (uint32_t t = 0; t < QUERIES; t++) {
            for (uint32_t i = 0; i < heads * SIZE; i++) {
                const size_t at = ((size_t)sample * QUERIES + t) * heads * SIZE + i;
                const uint64_t run = (rig.call.sample_first + sample) * heads + i / SIZE;
                const bool keep = is_kept(&rig, run, t, i % SIZE, p);
                expect_close_at((double)got[at], keep ? (double)weight[at] / (1.0 - p) : 0.0, 1e-5,
                                0.0, "weight", at, __FILE__, __LINE__);
                kept += keep;
                count += 1;
            }
        }
    }
    expect_close(kept / count, 1.0 - p, 0, 0.02);
    rig_close(&plain);
    rig_close(&rig);
}

static void dropout_masks_weights(void **state) {
    (void)state;
    check_weights("{kind: attention, heads: 2, dropout: 0.3}", "{kind: attention, heads: 2}", 0.3,
                  2, 2);
    check_weights("{kind: attention, heads: 4, kv_heads: 2, dropout: 0.1, causal: true}",
                  "{kind: attention, heads: 4, kv_heads: 2, causal: true}", 0.1, 4, 2);
}

/* Samples 41..45 in one call, and 41, 42..45: the same bits forward and backward. */
static void mask_belongs_to_the_sample(void **state) {
    (void)state;
    enum { N = 5, FIRST = 1, QUERIES = 3, Y = QUERIES * SIZE, DV = SIZE * SIZE };
    const char *keys = "{kind: attention, heads: 1, dropout: 0.5}";
    layer_rig whole;
    open_weights(&whole, keys, N, QUERIES, 1, 1);
    whole.call.sample_first = 41;
    rig_draw(&whole, &whole.dy, "dy");
    expect_ok(rp_layer_forward(&whole.call));
    expect_ok(rp_layer_backward(&whole.call));
    const float *y = rig_read(&whole, &whole.y);
    const float *dv = rig_read(&whole, &whole.dx[2]);
    const float *x[] = {rig_read(&whole, &whole.x[0]), rig_read(&whole, &whole.x[1])};
    const float *dy = rig_read(&whole, &whole.dy);
    for (uint32_t part = 0; part < 2; part++) {
        const uint32_t n = part == 0 ? FIRST : N - FIRST;
        layer_rig rig;
        open_weights(&rig, keys, n, QUERIES, 1, 1);
        rig.call.sample_first = 41 + part * FIRST;
        rig_write(&rig, &rig.x[0], x[0] + part * FIRST * QUERIES * 3);
        rig_write(&rig, &rig.x[1], x[1] + part * FIRST * SIZE * 3);
        rig_write(&rig, &rig.dy, dy + part * FIRST * Y);
        expect_ok(rp_layer_forward(&rig.call));
        expect_ok(rp_layer_backward(&rig.call));
        assert_memory_equal(rig_read(&rig, &rig.y), y + part * FIRST * Y, n * Y * sizeof(float));
        assert_memory_equal(rig_read(&rig, &rig.dx[2]), dv + part * FIRST * DV,
                            n * DV * sizeof(float));
        rig_close(&rig);
    }
    rig_close(&whole);
}

static void evaluation_drops_nothing(void **state) {
    (void)state;
    layer_rig rig;
    layer_rig plain;
    for (uint32_t frozen = 0; frozen < 2; frozen++) {
        open_weights(&rig, "{kind: attention, heads: 1, dropout: 0.5}", 2, 33, 1, 1);
        open_weights(&plain, "{kind: attention, heads: 1}", 2, 33, 1, 1);
        rig.call.training = frozen;
        rig.layer.frozen = frozen;
        expect_ok(rp_layer_forward(&rig.call));
        expect_ok(rp_layer_forward(&plain.call));
        assert_memory_equal(rig_read(&rig, &rig.y), rig_read(&plain, &plain.y),
                            2 * 33 * SIZE * sizeof(float));
        rig_close(&plain);
        rig_close(&rig);
    }
}

static void all_dropped(void **state) {
    (void)state;
    layer_rig rig;
    open_weights(&rig, "{kind: attention, heads: 1, dropout: 1}", 1, 3, 1, 1);
    rig_draw(&rig, &rig.dy, "dy");
    expect_ok(rp_layer_forward(&rig.call));
    expect_ok(rp_layer_backward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    const float *dq = rig_read(&rig, &rig.dx[0]);
    for (size_t i = 0; i < 3 * SIZE; i++) {
        assert_true(y[i] == 0.0f);
    }
    for (size_t i = 0; i < 9; i++) {
        assert_true(dq[i] == 0.0f);
    }
    rig_close(&rig);
}

/* ---- values --------------------------------------------------------------------------------- */

/* A single key has the weight 1, whatever its score. */
static void single_key(void **state) {
    (void)state;
    const rp_shape in[] = {rp_shape_2(33, 4), rp_shape_2(1, 4), rp_shape_2(1, 5)};
    layer_rig rig;
    rig_open(&rig, "one", "{kind: attention, heads: 1}", 2, in, 3);
    for (uint32_t i = 0; i < 3; i++) {
        rig_draw(&rig, &rig.x[i], "x");
    }
    rig_draw(&rig, &rig.dy, "dy");
    expect_ok(rp_layer_forward(&rig.call));
    expect_ok(rp_layer_backward(&rig.call));
    const float *v = rig_read(&rig, &rig.x[2]);
    const float *y = rig_read(&rig, &rig.y);
    const float *dq = rig_read(&rig, &rig.dx[0]);
    for (size_t i = 0; i < 2 * 33 * 5; i++) {
        expect_close(y[i], v[i / (33 * 5) * 5 + i % 5], 1e-6, 0);
    }
    for (size_t i = 0; i < 2 * 33 * 4; i++) {
        expect_close(dq[i], 0, 0, 1e-6);
    }
    rig_close(&rig);
}

/* Scores of many thousands do not overflow: the largest takes all. */
static void large_scores(void **state) {
    (void)state;
    enum { T = 70 };
    const rp_shape in[] = {rp_shape_2(T, 1), rp_shape_2(T, 1), rp_shape_2(T, 1)};
    float q[T];
    float k[T];
    float v[T];
    layer_rig rig;
    rig_open(&rig, "large", "{kind: attention, heads: 1, scale: 1000}", 1, in, 3);
    for (uint32_t t = 0; t < T; t++) {
        q[t] = t % 2 == 0 ? 100.0f : -100.0f;
        k[t] = (float)t;
        v[t] = 1.0f + (float)t;
    }
    rig_write(&rig, &rig.x[0], q);
    rig_write(&rig, &rig.x[1], k);
    rig_write(&rig, &rig.x[2], v);
    rig_draw(&rig, &rig.dy, "dy");
    expect_ok(rp_layer_forward(&rig.call));
    expect_ok(rp_layer_backward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    const float *dq = rig_read(&rig, &rig.dx[0]);
    for (uint32_t t = 0; t < T; t++) {
        expect_close(y[t], t % 2 == 0 ? (float)T : 1.0f, 1e-6, 0);
        expect_close(dq[t], 0, 0, 1e-3);
    }
    rig_close(&rig);
}

/* A NaN in q stays in its row; one in k or v reaches the queries that see it. One in v may reach
 * more: 0 * NaN is NaN, in PyTorch, too. */
static void nan_is_seen(void **state) {
    (void)state;
    enum { T = 40, AT = 35 };
    const rp_shape in = rp_shape_2(T, 3 * 4);
    float x[T * 12];
    for (uint32_t part = 0; part < 3; part++) {
        layer_rig rig;
        golden_values("x", T * 12, x);
        x[AT * 12 + part * 4 + 1] = NAN;
        rig_open(&rig, "nan", "{kind: attention, heads: 1, causal: true}", 1, &in, 1);
        rig_write(&rig, &rig.x[0], x);
        expect_ok(rp_layer_forward(&rig.call));
        const float *y = rig_read(&rig, &rig.y);
        for (uint32_t t = 0; t < T; t++) {
            const bool hit = part == 0 ? t == AT : t >= AT;
            assert_true(isnan(y[t * 4 + 1]) ? hit || part == 2 : !hit);
        }
        rig_close(&rig);
    }
}

/* Gradients that nobody wants are left out, the others keep their bits. */
static void some_gradients(void **state) {
    (void)state;
    const rp_shape in[] = {rp_shape_2(5, 6), rp_shape_2(37, 6), rp_shape_2(37, 4)};
    const size_t count[] = {5 * 6, 37 * 6, 37 * 4};
    layer_rig rig;
    rig_open_inside(&rig, "some", "{kind: attention, heads: 2}", 1, in, 3);
    for (uint32_t i = 0; i < 3; i++) {
        rig_draw(&rig, &rig.x[i], "x");
    }
    rig_draw(&rig, &rig.dy, "dy");
    expect_ok(rp_layer_forward(&rig.call));
    expect_ok(rp_layer_backward(&rig.call));
    const float *want[3];
    for (uint32_t i = 0; i < 3; i++) {
        want[i] = rig_read(&rig, &rig.dx[i]);
    }
    for (uint32_t mask = 0; mask < 8; mask++) {
        float zeros[37 * 6] = {0};
        for (uint32_t i = 0; i < 3; i++) {
            rig_write(&rig, &rig.dx[i], zeros);
            rig.call.dx[i] = mask >> i & 1 ? &rig.dx[i] : NULL;
        }
        expect_ok(rp_layer_backward(&rig.call));
        for (uint32_t i = 0; i < 3; i++) {
            assert_memory_equal(rig_read(&rig, &rig.dx[i]), mask >> i & 1 ? want[i] : zeros,
                                count[i] * sizeof(float));
        }
    }
    rig_expect_guards(&rig);
    rig_close(&rig);
}

/* One tensor may be q, k and v; its gradient is then the sum, q's part first. */
static void one_tensor_for_all(void **state) {
    (void)state;
    enum { COUNT = 2 * 6 * 8 };
    const rp_shape in[] = {rp_shape_2(6, 8), rp_shape_2(6, 8), rp_shape_2(6, 8)};
    float sum[COUNT] = {0};
    layer_rig rig;
    rig_open(&rig, "self", "{kind: attention, heads: 2, causal: true}", 2, in, 3);
    rig_draw(&rig, &rig.x[0], "x");
    rig_draw(&rig, &rig.dy, "dy");
    rig.call.x[1] = rig.call.x[2] = &rig.x[0];
    expect_ok(rp_layer_forward(&rig.call));
    expect_ok(rp_layer_backward(&rig.call));
    for (uint32_t i = 0; i < 3; i++) {
        const float *part = rig_read(&rig, &rig.dx[i]);
        for (size_t j = 0; j < COUNT; j++) {
            sum[j] += part[j];
        }
    }
    rig.call.dx[1] = rig.call.dx[2] = &rig.dx[0];
    rig.call.dx_add[1] = rig.call.dx_add[2] = true;
    expect_ok(rp_layer_backward(&rig.call));
    expect_close_all(rig_read(&rig, &rig.dx[0]), sum, COUNT, 0, 1e-6);
    rig_close(&rig);
}

/* A forward without a backward has no memory to save to. More samples than a chunk of the workspace
 * holds (two here) give the same bits as each alone. */
static void chunks(void **state) {
    (void)state;
    enum { N = 5, T = 100, Y = T * 2 * 200, X = 3 * Y };
    const rp_shape in = rp_shape_2(T, X / T);
    const char *keys = "{kind: attention, heads: 2, causal: true, dropout: 0.1, rotary: {}}";
    layer_rig rig;
    if (expect_small()) {
        return;
    }
    rig_open(&rig, "chunks", keys, N, &in, 1);
    rig_draw(&rig, &rig.x[0], "x");
    rig_draw(&rig, &rig.dy, "dy");
    rig.call.sample_first = 9;
    rp_buffer *saved = rig.call.saved[0];
    rig.call.saved[0] = NULL;
    expect_ok(rp_layer_forward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    rig.call.saved[0] = saved;
    expect_ok(rp_layer_forward(&rig.call));
    expect_ok(rp_layer_backward(&rig.call));
    const float *x = rig_read(&rig, &rig.x[0]);
    const float *dy = rig_read(&rig, &rig.dy);
    const float *dx = rig_read(&rig, &rig.dx[0]);
    for (size_t i = 0; i < N; i++) {
        layer_rig one;
        rig_open(&one, "chunks", keys, 1, &in, 1);
        assert_true(rp_buffer_bytes(one.call.workspace) * N >
                    2 * rp_buffer_bytes(rig.call.workspace));
        rig_write(&one, &one.x[0], x + i * X);
        rig_write(&one, &one.dy, dy + i * Y);
        one.call.sample_first = 9 + i;
        expect_ok(rp_layer_forward(&one.call));
        expect_ok(rp_layer_backward(&one.call));
        assert_memory_equal(rig_read(&one, &one.y), y + i * Y, Y * sizeof(float));
        assert_memory_equal(rig_read(&one, &one.dx[0]), dx + i * X, X * sizeof(float));
        rig_close(&one);
    }
    rig_close(&rig);
}

/* ---- plans and model files ------------------------------------------------------------------ */

/* No matrix of queries times keys is kept or made. */
static void memory_grows_with_tokens(void **state) {
    (void)state;
    size_t workspace[2];
    size_t saved[2];
    for (uint32_t i = 0; i < 2; i++) {
        const rp_shape in = rp_shape_2(512u << i, 3 * 64);
        layer_rig rig;
        rig_open(&rig, "m", "{kind: attention, heads: 4, causal: true}", 1, &in, 1);
        workspace[i] =
            rig.layer.kind->workspace_bytes(&rig.layer, &rig.plan, &in, 1, RP_GEMM_PANEL);
        saved[i] = rig.plan.saved[0].sample_bytes;
        expect_close(rig.plan.flops_forward, 2.0 * in.dim[0] * in.dim[0] * 64, 1e-12, 0);
        expect_close(rig.plan.flops_backward, 5.0 * in.dim[0] * in.dim[0] * 64, 1e-12, 0);
        assert_true(rig.plan.needs_x && rig.plan.needs_y && !rig.plan.in_place);
        rig_close(&rig);
    }
    assert_int_equal(saved[0], 4 * 512 * sizeof(float));
    assert_int_equal(saved[1], 2 * saved[0]);
    assert_true(workspace[1] <= 2 * workspace[0]);
}

static void refused(const char *keys, const rp_shape *in, uint32_t count, rp_err want,
                    const char *words) {
    rp_arena arena;
    rp_node *root;
    rp_layer_plan plan;
    rp_layer layer = {.kind = rp_layer_find("attention"), .name = "att", .input_count = count};
    rp_arena_init(&arena, "refused", 0);
    expect_ok(rp_config_read_text(&arena, keys, strlen(keys), "keys", &root));
    assert_non_null(rp_node_find(root, "kind"));
    expect_ok(rp_arena_alloc(&arena, 1, layer.kind->spec_bytes, &layer.spec));
    rp_err err = layer.kind->parse(&layer, root, &(rp_model_data){0});
    err = err == RP_OK ? rp_layer_make_plan(&layer, in, &plan) : err;
    assert_int_equal(err, want);
    if (!strstr(rp_err_message(), words)) {
        fail_msg("'%s' is not in: %s", words, rp_err_message());
    }
    rp_arena_finish(&arena);
}

static void bad_layers_are_refused(void **state) {
    (void)state;
    const rp_shape packed[] = {rp_shape_2(5, 24), rp_shape_1(5)};
    const rp_shape image = rp_shape_3(3, 4, 4);
    const rp_shape ids4[] = {rp_shape_2(5, 24), rp_shape_1(4)};
    const rp_shape three[] = {rp_shape_2(5, 8), rp_shape_2(7, 8), rp_shape_2(7, 6)};
    const rp_shape sizes[] = {rp_shape_2(5, 8), rp_shape_2(7, 4), rp_shape_2(7, 6)};
    const rp_shape tokens[] = {rp_shape_2(5, 8), rp_shape_2(7, 8), rp_shape_2(6, 6)};
    const struct {
        const char *keys;
        const rp_shape *in;
        uint32_t count;
        rp_err err;
        const char *words;
    } cases[] = {
        {"{kind: attention}", packed, 1, RP_ERR_USAGE, "heads"},
        {"{kind: attention, heads: 4, kv_heads: 3}", packed, 1, RP_ERR_USAGE,
         "kv_heads: 3 does not divide heads: 4"},
        {"{kind: attention, heads: 0}", packed, 1, RP_ERR_USAGE, "heads"},
        {"{kind: attention, heads: 2, dropout: 1.5}", packed, 1, RP_ERR_USAGE, "dropout"},
        {"{kind: attention, heads: 2, rotary: {pairs: 1}}", packed, 1, RP_ERR_USAGE, "pairs"},
        {"{kind: attention, heads: 2, rotary: yes}", packed, 1, RP_ERR_USAGE, "rotary"},
        {"{kind: attention, heads: 5}", packed, 1, RP_ERR_SHAPE,
         "layer 'att': the 24 columns of input 1 are not a multiple of 15 heads"},
        {"{kind: attention, heads: 2}", &image, 1, RP_ERR_SHAPE,
         "needs sequences [T, C], its input 1 is [3, 4, 4]"},
        {"{kind: attention, heads: 2}", packed, 2, RP_ERR_SHAPE, "needs `padding`"},
        {"{kind: attention, heads: 2, padding: 0}", packed, 1, RP_ERR_SHAPE,
         "`padding` needs the token ids"},
        {"{kind: attention, heads: 2, padding: 0}", ids4, 2, RP_ERR_SHAPE,
         "one token id for each of 5 keys, its last input is [4]"},
        {"{kind: attention, heads: 3}", three, 3, RP_ERR_SHAPE,
         "the 8 columns of input 1 are not a multiple of 3 heads"},
        {"{kind: attention, heads: 2}", sizes, 3, RP_ERR_SHAPE,
         "a head of q has 4 columns (8 of 2 heads), one of k 2 (4 of 2 heads)"},
        {"{kind: attention, heads: 2}", tokens, 3, RP_ERR_SHAPE, "k has 7 tokens, v has 6"},
        {"{kind: attention, heads: 8, rotary: {}}", packed, 1, RP_ERR_SHAPE,
         "even number of columns of a head, found 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        refused(cases[i].keys, cases[i].in, cases[i].count, cases[i].err, cases[i].words);
    }
}

/* The choice of products also chooses the kernels: of both, as equals_pytorch. */
static int run_by(rp_gemm_choice choice) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(central_differences),
        cmocka_unit_test(dropout_masks_weights),
        cmocka_unit_test(mask_belongs_to_the_sample),
        cmocka_unit_test(evaluation_drops_nothing),
        cmocka_unit_test(all_dropped),
        cmocka_unit_test(single_key),
        cmocka_unit_test(large_scores),
        cmocka_unit_test(nan_is_seen),
        cmocka_unit_test(some_gradients),
        cmocka_unit_test(one_tensor_for_all),
        cmocka_unit_test(chunks),
    };
    const rp_gemm_choice before = rp_device_gemm(golden_device());
    rp_device_choose_gemm(golden_device(), choice);
    const int failed = cmocka_run_group_tests_name(rp_gemm_choice_name(choice), tests, NULL, NULL);
    rp_device_choose_gemm(golden_device(), before);
    return failed;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(memory_grows_with_tokens),
        cmocka_unit_test(bad_layers_are_refused),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    failed += expect_small() ? 0 : run_by(RP_GEMM_CLBLAST);
    return failed + run_by(RP_GEMM_PANEL);
}
