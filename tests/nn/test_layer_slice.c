#include "golden.h"

#include "nn/model.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("slice", golden_run);
}

static rp_err parse_text(rp_arena *arena, const char *text, rp_model **out) {
    rp_node *root;
    const rp_model_data nothing = {0};
    expect_ok(rp_config_read_text(arena, text, strlen(text), "m.yaml", &root));
    return rp_model_parse(arena, root, &nothing, out);
}

/* Bits of ids stay, also those that are no number as a float. */
static void ids_stay_ids(void **state) {
    (void)state;
    enum { N = 3, T = 7 };
    static const int32_t odd[] = {1, 0x7f800001, -1, 0x00400000, INT32_MIN, 0, 65};
    static int32_t id[N * T];
    static int32_t part[N * 4];
    rp_arena arena;
    rp_darena *memory;
    rp_model *model;
    rp_tensor x = {.shape = rp_shape_2(N, T), .dtype = RP_I32};
    rp_tensor y = {.shape = rp_shape_2(N, 4), .dtype = RP_I32};
    rp_device *device = golden_device();
    rp_arena_init(&arena, "slice", 0);
    expect_ok(parse_text(&arena,
                         "{input: {shape: [7], type: i32}, layers: [{name: s, kind: slice, start: "
                         "2, end: 6}, {name: e, kind: embedding, count: 9, out: 2}]}",
                         &model));
    assert_true(rp_model_type(model, 0) == RP_I32 && rp_model_type(model, 1) == RP_F32);
    for (size_t i = 0; i < N * T; i++) {
        id[i] = odd[i % T] ^ (int32_t)(i / T);
    }
    expect_ok(rp_darena_open(&arena, device, "ids", 0, (size_t)1 << 12, &memory));
    expect_ok(rp_darena_take(memory, sizeof id, &x.buffer));
    expect_ok(rp_darena_take(memory, sizeof part, &y.buffer));
    expect_ok(rp_tensor_write(device, &x, id));
    const rp_layer_call call = {.device = device,
                                .layer = &model->layer[0],
                                .plan = &model->plan[0],
                                .n = N,
                                .in = {rp_shape_1(T)},
                                .x = {&x},
                                .y = &y};
    expect_ok(rp_layer_forward(&call));
    expect_ok(rp_tensor_read(device, part, &y));
    expect_ok(rp_device_drain(device));
    for (size_t n = 0; n < N; n++) {
        assert_memory_equal(part + n * 4, id + n * T + 2, 4 * sizeof *id);
    }
    rp_darena_close(&memory);
    rp_arena_finish(&arena);
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *input, *keys, *says;
    } cases[] = {
        {"[4]", "axis: 1", "slice of axis 1, but its input is [4]"},
        {"[4]", "start: 4", "[4, 4) is not within axis 0 of [4]"},
        {"[4]", "start: 1, end: 5", "[1, 5) is not within axis 0 of [4]"},
        {"[4]", "start: 2, end: 2", "end: expected more than `start`, 2, found 2"},
        {"{shape: [4, 3], type: i32}", "axis: 1, end: 2",
         "token ids can only be sliced along axis 0, found axis 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_arena arena;
        rp_model *model;
        char *text;
        rp_arena_init(&arena, "slice", 0);
        expect_ok(rp_arena_printf(&arena, &text,
                                  "{input: %s, layers: [{name: s, kind: slice, %s}]}",
                                  cases[i].input, cases[i].keys));
        assert_int_not_equal(parse_text(&arena, text, &model), RP_OK);
        if (!strstr(rp_err_message(), cases[i].says)) {
            fail_msg("'%s' is not in '%s'", cases[i].says, rp_err_message());
        }
        rp_arena_finish(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(ids_stay_ids),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
