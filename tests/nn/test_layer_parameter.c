#include "golden.h"

#include "nn/model.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("parameter", golden_run);
}

static rp_err parse_text(rp_arena *arena, const char *text, rp_model **out) {
    rp_node *root;
    const rp_model_data nothing = {0};
    expect_ok(rp_config_read_text(arena, text, strlen(text), "m.yaml", &root));
    return rp_model_parse(arena, root, &nothing, out);
}

/* It reads nothing, and its tensor is a parameter of the model. */
static void first_in_a_model(void **state) {
    (void)state;
    rp_arena arena;
    rp_model *model;
    float value[2];
    rp_arena_init(&arena, "parameter", 0);
    expect_ok(parse_text(&arena,
                         "{input: [3, 2], layers: [{name: p, kind: parameter, shape: [2], std: 2, "
                         "names: {weight: net.shift}}, {name: a, kind: sub, from: [data, p]}, "
                         "{name: c, kind: constant, shape: [2], value: 0.5}, "
                         "{name: b, kind: div, from: [a, c]}]}",
                         &model));
    assert_int_equal(model->layer[0].input_count, 0);
    assert_int_equal(model->param_count, 2);
    assert_string_equal(model->param[0].name, "net.shift");
    assert_string_equal(model->param[1].name, "c.weight");
    assert_int_equal(model->param[0].role, RP_PARAM_TRAINED);
    assert_int_equal(model->param[1].role, RP_PARAM_FROZEN);
    assert_true(model->wants_grad[0] && model->wants_grad[1] && !model->wants_grad[2]);
    rp_model_init_param(model, 0, 1, value);
    assert_true(value[0] != 0.0f && value[1] != value[0]);
    rp_model_init_param(model, 1, 1, value);
    assert_true(value[0] == 0.5f && value[1] == 0.5f);
    rp_arena_finish(&arena);
}

static void refusals(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"kind: parameter, shape: [2], from: data", "parameter takes 0 to 0 inputs"},
        {"kind: parameter, shape: []", "expected a list of 1 to 5 sizes"},
        {"kind: parameter, shape: [0]", "from 1 to 2147483647, found '0'"},
        {"kind: parameter", "shape"},
        {"kind: constant, shape: [2], std: 1", "std"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_arena arena;
        rp_model *model;
        char *text;
        rp_arena_init(&arena, "parameter", 0);
        expect_ok(
            rp_arena_printf(&arena, &text, "{input: [2], layers: [{name: p, %s}]}", cases[i][0]));
        assert_int_not_equal(parse_text(&arena, text, &model), RP_OK);
        if (!strstr(rp_err_message(), cases[i][1])) {
            fail_msg("'%s' is not in '%s'", cases[i][1], rp_err_message());
        }
        rp_arena_finish(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(first_in_a_model),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
