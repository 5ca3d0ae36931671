/* Names of parameters, tied weights, and what a cut makes of them. */
#include "expect.h"

#include "nn/names.h"
#include "nn/ties.h"

static rp_arena arena;

static int setup(void **state) {
    (void)state;
    rp_arena_init(&arena, "test names", 0);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rp_arena_finish(&arena);
    return 0;
}

static rp_err parse(const char *layers, rp_model **out) {
    char *text;
    rp_node *root;
    expect_ok(
        rp_arena_printf(&arena, &text, "input: {shape: [6], type: i32}\nlayers:\n%s", layers));
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "m.yaml", &root));
    const rp_model_data about = {
        .sample = rp_shape_1(6), .type = RP_I32, .classes = 9, .tokens = 9};
    return rp_model_parse(&arena, root, &about, out);
}

static void refuse(const char *layers, rp_err want, const char *said) {
    rp_model *model;
    assert_int_equal(parse(layers, &model), want);
    if (!strstr(rp_err_message(), said)) {
        fail_msg("'%s' does not say '%s'", rp_err_message(), said);
    }
}

#define EMBED "  - {name: embed, kind: embedding, count: 9, out: 4}\n"
#define FC "  - {name: fc, kind: linear, out: 4}\n"
#define HEAD(names) "  - {name: head, kind: linear, out: 9, names: " names "}\n"
#define TIE "{weight: embed.weight}"

static void a_file_gives_names(void **state) {
    (void)state;
    rp_model *model;
    expect_ok(parse(EMBED HEAD("{weight: lm_head.w, bias: b}"), &model));
    assert_string_equal(model->param[1].name, "lm_head.w");
    assert_string_equal(model->param[2].name, "b");
    assert_true(rp_model_has_names(model));
    assert_int_equal(rp_model_tied_count(model), 0);
    expect_ok(parse(EMBED FC, &model));
    assert_string_equal(model->param[1].name, "fc.weight");
    assert_false(rp_model_has_names(model));
}

/* Files have a shape with dimensions of 1 before that of the layer. */
static void a_file_gives_a_number_of_dimensions(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"{weight: {name: w, dims: 1}}", "'head': expected 2 to 6, because weight has the shape"},
        {"{weight: {name: w, dims: 7}}", "dims: expected a whole number from 1 to 6, found '7'"},
        {"{weight: {name: w, dim: 3}}", "unknown key; did you mean 'dims'?"},
        {"{weight: {dims: 3}}", "the key 'name' is needed here"},
        {"{weight: {name: [w]}}", "a parameter's name has 1 to 160 of"},
        {"{weight: {name: embed.weight, dims: 3}}",
         "share 'embed.weight', but its shape is [9, 4] in the first and [1, 9, 4] in the second"},
    };
    char layers[300];
    float plain[36];
    float stored[36];
    rp_model *model;
    expect_ok(parse(EMBED HEAD("{weight: {name: lm_head.w, dims: 4}, bias: {name: b}}"), &model));
    assert_string_equal(model->param[1].name, "lm_head.w");
    assert_true(rp_shape_equal(&model->param[1].shape, &(rp_shape){4, {1, 1, 9, 4}}));
    assert_true(rp_shape_equal(&model->plan[1].param[0].shape, &(rp_shape){2, {9, 4}}));
    assert_true(model->param[1].count == 36 && model->param[2].shape.dims == 1);
    expect_ok(parse("  - {name: embed, kind: embedding, count: 9, out: 1, names: {weight: {name: "
                    "w, dims: 2}}}\n",
                    &model));
    assert_true(rp_shape_equal(&model->param[0].shape, &(rp_shape){2, {9, 1}}));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)snprintf(layers, sizeof layers,
                       EMBED "  - {name: head, kind: linear, out: 9, names: %s}\n", bad[i][0]);
        refuse(layers, RP_ERR_USAGE, bad[i][1]);
    }
    expect_ok(parse("  - {name: embed, kind: embedding, count: 9, out: 4, padding: 2}\n", &model));
    rp_model_init_param(model, 0, 3, plain);
    expect_ok(parse("  - {name: embed, kind: embedding, count: 9, out: 4, padding: 2, names: "
                    "{weight: {name: w, dims: 3}}}\n",
                    &model));
    rp_model_init_param(model, 0, 3, stored);
    assert_memory_equal(stored, plain, sizeof plain);
}

/* Fewer dimensions leave out those of 1 before the last one, and no other. */
static void a_file_has_fewer_dimensions(void **state) {
    (void)state;
    static const struct {
        rp_shape layer;
        uint32_t dims;
        bool fits;
        rp_shape file;
    } cases[] = {
        {{4, {8, 4, 1, 5}}, 3, true, {3, {8, 4, 5}}},
        {{4, {8, 1, 1, 5}}, 3, true, {3, {8, 1, 5}}},
        {{4, {8, 1, 1, 5}}, 2, true, {2, {8, 5}}},
        {{4, {8, 4, 1, 1}}, 3, true, {3, {8, 4, 1}}},
        {{4, {1, 1, 1, 1}}, 1, true, {1, {1}}},
        {{4, {8, 4, 1, 5}}, 2, false, {3, {8, 4, 5}}},
        {{4, {8, 4, 3, 5}}, 3, false, {4, {8, 4, 3, 5}}},
        {{2, {9, 4}}, 4, true, {4, {1, 1, 9, 4}}},
        {{2, {9, 4}}, 2, true, {2, {9, 4}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_shape found;
        assert_int_equal(rp_names_shape(&cases[i].layer, cases[i].dims, &found), cases[i].fits);
        assert_true(rp_shape_equal(&found, &cases[i].file));
    }
}

static void layers_with_one_name_share_the_tensor(void **state) {
    (void)state;
    float first[36];
    float second[36];
    rp_model *model;
    expect_ok(parse(EMBED FC HEAD(TIE), &model));
    assert_int_equal(model->param_count, 5); /* embed; fc: weight, bias; head: weight, bias */
    assert_int_equal(model->param[3].owner, 0);
    assert_true(model->param[0].tied && model->param[3].tied);
    assert_int_equal(model->param[4].owner, 4);
    assert_false(model->param[4].tied);
    assert_int_equal(rp_model_tensor_count(model, RP_PARAM_TRAINED), 36 + 16 + 4 + 9);
    assert_int_equal(rp_model_param_count(model, RP_PARAM_TRAINED, 0, 3), 2 * 36 + 16 + 4 + 9);
    rp_model_init_param(model, 0, 7, first);
    rp_model_init_param(model, 3, 7, second);
    assert_memory_equal(first, second, sizeof first); /* the owner's rule */
    /* a name may be that of a later layer */
    expect_ok(parse("  - {name: embed, kind: embedding, count: 9, out: 4, names: {weight: "
                    "head.weight}}\n  - {name: head, kind: linear, out: 9}\n",
                    &model));
    assert_int_equal(model->param[1].owner, 0);
    assert_string_equal(model->param[0].name, "head.weight");
}

static void what_is_refused(void **state) {
    (void)state;
    refuse(EMBED HEAD("weight"), RP_ERR_USAGE, "m.yaml:4: layers[1].names: layer 'head': expected");
    refuse(EMBED HEAD("{weigth: a}"), RP_ERR_USAGE,
           "layer 'head': linear has no parameter 'weigth'; expected weight, bias");
    refuse(EMBED HEAD("{weight: \"a b\"}"), RP_ERR_USAGE, "A-Z a-z 0-9 _ . -, found 'a b'");
    refuse(EMBED HEAD("{weight: [a]}"), RP_ERR_USAGE, "found 'a list or map'");
    refuse(EMBED HEAD("{weight: x, bias: x}"), RP_ERR_USAGE,
           "but parameters of one layer need different names");
    refuse("  - {name: embed, kind: embedding, count: 9, out: 5}\n" FC HEAD(TIE), RP_ERR_USAGE,
           "layers 'embed' (line 3) and 'head' (line 5) share 'embed.weight', but its shape is "
           "[9, 5] in the first and [9, 4] in the second");
    refuse(EMBED FC "  - {name: head, kind: linear, out: 9, train: false, names: " TIE "}\n",
           RP_ERR_USAGE, "but only the second one is frozen");
    refuse("  - {name: embed, kind: embedding, count: 9, out: 4, train: false}\n" HEAD(TIE),
           RP_ERR_USAGE, "but only the first one is frozen");
    refuse(EMBED "  - {name: act, kind: relu, names: {weight: x}}\n", RP_ERR_USAGE,
           "relu has no parameter 'weight'; expected no names");
}

/* 128 characters are a name, 129 are not; those of a parameter may be longer. */
static void long_names(void **state) {
    (void)state;
    char layer[400];
    char name[170];
    rp_model *model;
    memset(name, 'n', sizeof name);
    name[128] = '\0';
    (void)snprintf(layer, sizeof layer, EMBED "  - {name: %s, kind: linear, out: 9}\n", name);
    expect_ok(parse(layer, &model));
    (void)snprintf(layer, sizeof layer, EMBED "  - {name: %sx, kind: linear, out: 9}\n", name);
    refuse(layer, RP_ERR_USAGE, "a layer's name has 1 to 128 of");
    name[128] = 'n';
    name[160] = '\0';
    (void)snprintf(layer, sizeof layer, EMBED HEAD("{weight: %s}"), name);
    expect_ok(parse(layer, &model));
    (void)snprintf(layer, sizeof layer, EMBED HEAD("{weight: %sx}"), name);
    refuse(layer, RP_ERR_USAGE, "a parameter's name has 1 to 160 of");
}

/* Names that checkpoints use for other entries: the message has file, line and key. */
static void reserved_names(void **state) {
    (void)state;
    static const struct {
        const char *layers, *said;
    } cases[] = {
        {EMBED HEAD("{weight: optim.w}"), "m.yaml:4: layers[1].names.weight: layer 'head': the "
                                          "tensor's name would be 'optim.w'; expected one that "
                                          "does not begin with 'optim.'"},
        {EMBED HEAD("{bias: older.b}"), "layers[1].names.bias: "},
        {EMBED HEAD("{bias: centre.b}"), "not begin with 'centre.'"},
        {EMBED HEAD("{bias: replica.3.b}"), "not begin with 'replica.'"},
        {EMBED HEAD("{bias: __metadata__}"), "not begin with '__metadata__'"},
        {EMBED "  - {name: optim, kind: linear, out: 9}\n",
         "m.yaml:4: layers[1].name: layer 'optim': the tensor's name would be 'optim.weight'"},
        {EMBED "  - {name: replica.0, kind: linear, out: 9}\n", "would be 'replica.0.weight'"},
    };
    rp_model *model;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        refuse(cases[i].layers, RP_ERR_USAGE, cases[i].said);
    }
    /* names without a tensor, other beginnings, and a layer whose tensors have other names */
    expect_ok(parse(EMBED "  - {name: older, kind: relu}\n"
                          "  - {name: optimum, kind: linear, out: 9}\n",
                    &model));
    expect_ok(parse(EMBED "  - {name: centre, kind: linear, out: 9, bias: false, "
                          "names: {weight: middle.weight}}\n",
                    &model));
}

static void rows_of_a_cut(void **state) {
    (void)state;
    static const uint32_t three[] = {0, 1, 2, 4};
    static const uint32_t two[] = {0, 2, 4};
    const rp_cut apart = {.stage_count = 3, .first = three};
    const rp_cut half = {.stage_count = 2, .first = two};
    rp_model *model;
    expect_ok(parse(EMBED FC
                    "  - {name: fc2, kind: linear, out: 4, names: {weight: fc.weight}}\n" HEAD(TIE),
                    &model));
    assert_true(rp_ties_cross(model, &apart));
    assert_true(rp_ties_join(model, &apart, 0, 2));
    assert_true(rp_ties_join(model, &apart, 2, 1));
    assert_false(rp_ties_join(model, &apart, 0, 1));
    assert_false(rp_ties_join(model, &apart, 2, 2));
    assert_int_equal(rp_ties_row_bytes(model, &apart, 0), 36 * sizeof(float));
    assert_int_equal(rp_ties_row_bytes(model, &apart, 1), 16 * sizeof(float));
    assert_int_equal(rp_ties_row_bytes(model, &apart, 2), (16 + 36) * sizeof(float));
    assert_int_equal(rp_ties_place(model, &apart, 5), 16 * sizeof(float)); /* head.weight */
    assert_int_equal(rp_ties_stage_of(model, &half, 5), 1);
    assert_true(rp_ties_is_sent(model, &half, 1));
    assert_false(rp_ties_is_sent(model, &half, 2)); /* fc.bias */
    static const uint32_t all[] = {0, 4};
    const rp_cut one = {.stage_count = 1, .first = all};
    assert_false(rp_ties_cross(model, &one));
    assert_int_equal(rp_ties_row_bytes(model, &one, 0), 0);
}

/* A frozen tensor is shared without an exchange. */
static void frozen_uses(void **state) {
    (void)state;
    static const uint32_t first[] = {0, 1, 3};
    const rp_cut cut = {.stage_count = 2, .first = first};
    rp_model *model;
    expect_ok(parse("  - {name: embed, kind: embedding, count: 9, out: 4, train: false}\n" FC
                    "  - {name: head, kind: linear, out: 9, bias: false, train: false, names: " TIE
                    "}\n",
                    &model));
    assert_int_equal(rp_model_tensor_count(model, RP_PARAM_FROZEN), 36);
    assert_false(rp_ties_cross(model, &cut));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_gives_names, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_gives_a_number_of_dimensions, setup, teardown),
        cmocka_unit_test(a_file_has_fewer_dimensions),
        cmocka_unit_test_setup_teardown(layers_with_one_name_share_the_tensor, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(long_names, setup, teardown),
        cmocka_unit_test_setup_teardown(reserved_names, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_of_a_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(frozen_uses, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
