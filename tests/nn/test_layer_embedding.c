#include <math.h>

#include "golden.h"

#include "nn/model.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("embedding", golden_run);
}

static void write_ids(layer_rig *rig, const int32_t *ids) {
    expect_ok(rp_tensor_write(golden_device(), &rig->x[0], ids));
    expect_ok(rp_device_drain(golden_device()));
}

/* Ids outside of the table give NaN, and neither read nor change anything. */
static void ids_outside_give_nan(void **state) {
    (void)state;
    enum { COUNT = 4, OUT = 19, T = 6 };
    static const int32_t ids[T] = {3, COUNT, -1, INT32_MIN, INT32_MAX, 0};
    const rp_shape shape = rp_shape_1(T);
    layer_rig rig;
    rig_open_inside(&rig, "e", "{kind: embedding, count: 4, out: 19}", 1, &shape, 1);
    assert_int_equal(rig.plan.ids, 1);
    assert_int_equal(rig.plan.id_count, COUNT);
    rig_draw(&rig, &rig.param[0], "w");
    rig_draw(&rig, &rig.dy, "dy");
    rig_draw(&rig, &rig.dparam[0], "before");
    write_ids(&rig, ids);
    expect_ok(rp_layer_forward(&rig.call));
    const float *w = rig_read(&rig, &rig.param[0]);
    const float *y = rig_read(&rig, &rig.y);
    for (size_t t = 0; t < T; t++) {
        for (size_t i = 0; i < OUT; i++) {
            const float got = y[t * OUT + i];
            if (ids[t] >= 0 && ids[t] < COUNT) {
                assert_true(got == w[(size_t)ids[t] * OUT + i]);
            } else {
                assert_false(expect_finite_bits((double)got));
            }
        }
    }
    expect_ok(rp_layer_backward(&rig.call));
    const float *dw = rig_read(&rig, &rig.dparam[0]);
    const float *dy = rig_read(&rig, &rig.dy);
    for (size_t i = 0; i < OUT; i++) {
        assert_true(dw[i] == dy[5 * OUT + i]);
        assert_true(dw[OUT + i] == 0.0f && dw[2 * OUT + i] == 0.0f);
        assert_true(dw[3 * OUT + i] == dy[i]);
    }
    rig_expect_guards(&rig);
    rig_close(&rig);
}

/* Bit by bit the sums in float32 over ascending positions, for a table and a microbatch of usual
 * size, and the same again. */
static void sums_are_in_the_order_of_positions(void **state) {
    (void)state;
    const uint32_t count = expect_small() ? 50 : 9000;
    enum { OUT = 21, N = 13, T = 77 };
    const rp_shape shape = rp_shape_1(T);
    static int32_t ids[N * T];
    char keys[64];
    layer_rig rig;
    float *want;
    snprintf(keys, sizeof keys, "{kind: embedding, count: %u, out: 21, padding: 3}", count);
    rig_open(&rig, "e", keys, N, &shape, 1);
    rig_draw(&rig, &rig.dy, "dy");
    for (uint32_t p = 0; p < N * T; p++) { /* a few frequent ids and many rare ones */
        ids[p] = (int32_t)(p % 3 == 0 ? p % 7 : p * 2654435761u % count);
    }
    write_ids(&rig, ids);
    const size_t elements = rp_shape_count(&rig.param[0].shape);
    expect_ok(RP_ARENA_NEW(&rig.arena, elements, &want));
    const float *dy = rig_read(&rig, &rig.dy);
    for (size_t p = 0; p < N * T; p++) {
        for (size_t i = 0; i < OUT && ids[p] != 3; i++) {
            want[(size_t)ids[p] * OUT + i] += dy[p * OUT + i];
        }
    }
    for (uint32_t repeat = 0; repeat < 2; repeat++) {
        rig_draw(&rig, &rig.dparam[0], "before");
        expect_ok(rp_layer_backward(&rig.call));
        assert_memory_equal(rig_read(&rig, &rig.dparam[0]), want, elements * sizeof(float));
    }
    rig_close(&rig);
}

/* Accumulating leaves the rows without a token, and the padding, as they are. */
static void untouched_rows_stay(void **state) {
    (void)state;
    static const int32_t ids[] = {2, 0, 2};
    const rp_shape shape = rp_shape_1(3);
    float before[8];
    layer_rig rig;
    rig_open(&rig, "e", "{kind: embedding, count: 4, out: 2, padding: 0}", 1, &shape, 1);
    rig_draw(&rig, &rig.dy, "dy");
    rig_draw(&rig, &rig.dparam[0], "before");
    write_ids(&rig, ids);
    golden_values("before", 8, before);
    rig.call.accumulate = true;
    expect_ok(rp_layer_backward(&rig.call));
    const float *dw = rig_read(&rig, &rig.dparam[0]);
    const float *dy = rig_read(&rig, &rig.dy);
    assert_memory_equal(dw, before, 4 * sizeof(float));
    assert_memory_equal(dw + 6, before + 6, 2 * sizeof(float));
    for (size_t i = 0; i < 2; i++) {
        assert_true(dw[4 + i] == before[4 + i] + (dy[i] + dy[4 + i]));
    }
    rig_close(&rig);
}

/* Initial values of the table of a model with this layer. */
static float *init_table(rp_arena *arena, const char *keys, size_t *count) {
    char *text;
    rp_node *root;
    rp_model *model;
    float *out;
    const rp_model_data data = {.sample = rp_shape_1(4), .type = RP_I32, .tokens = 1000};
    expect_ok(rp_arena_printf(arena, &text,
                              "{input: data, layers: [{name: e, kind: embedding, %s}]}", keys));
    expect_ok(rp_config_read_text(arena, text, strlen(text), "m", &root));
    expect_ok(rp_model_parse(arena, root, &data, &model));
    assert_int_equal(rp_model_id_count(model), 1000);
    *count = model->param[0].count;
    expect_ok(RP_ARENA_NEW(arena, *count, &out));
    rp_model_init_param(model, 0, 7, out);
    return out;
}

static void initial_values(void **state) {
    (void)state;
    enum { OUT = 50, PADDING = 9 };
    rp_arena arena;
    size_t count;
    double square = 0;
    rp_arena_init(&arena, "init", 0);
    const float *plain = init_table(&arena, "count: tokens, out: 50", &count);
    const float *small = init_table(&arena, "count: 1000, out: 50, padding: 9, std: 0.25", &count);
    assert_int_equal(count, 1000 * OUT);
    for (size_t i = 0; i < count; i++) {
        const bool zero = i / OUT == PADDING;
        square += (double)plain[i] * (double)plain[i] / (double)count;
        assert_true(zero ? small[i] == 0.0f && plain[i] != 0.0f : small[i] == 0.25f * plain[i]);
    }
    expect_close(square, 1.0, 0, 0.03);
    rp_arena_finish(&arena);
}

static void wrong_keys_are_refused(void **state) {
    (void)state;
    static const char *const keys[] = {
        "{count: 4, out: 2, padding: 4}",
        "{count: 4, out: 2, padding: -1}",
        "{count: tokens, out: 2}",
        "{out: 2}",
        "{count: 4}",
        "{count: 4, out: 2, std: -1}",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        rp_arena arena;
        rp_node *node;
        rp_layer layer = {.kind = rp_layer_find("embedding"), .name = "e"};
        rp_arena_init(&arena, "keys", 0);
        expect_ok(rp_config_read_text(&arena, keys[i], strlen(keys[i]), "keys", &node));
        expect_ok(rp_arena_alloc(&arena, 1, layer.kind->spec_bytes, &layer.spec));
        expect_err(layer.kind->parse(&layer, node, &(rp_model_data){.classes = 10}), RP_ERR_USAGE);
        rp_arena_finish(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(ids_outside_give_nan),
        cmocka_unit_test(sums_are_in_the_order_of_positions),
        cmocka_unit_test(untouched_rows_stay),
        cmocka_unit_test(initial_values),
        cmocka_unit_test(wrong_keys_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
