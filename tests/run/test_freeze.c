/* `train.freeze`: which layers of a model file it freezes, and what it refuses. */
#include "expect.h"

#include "nn/model.h"
#include "run/freeze.h"

static const char model_text[] = "input: [1, 8, 8]\n"
                                 "layers:\n"
                                 "  - {name: conv1, kind: conv2d, out: 2, kernel: 3}\n"
                                 "  - {name: layer1.bn, kind: batchnorm}\n"
                                 "  - {name: layer2.bn, kind: batchnorm, train: true}\n"
                                 "  - {name: fc, kind: dense, out: 3}\n";
enum { LAYERS = 4 };

static rp_arena arena;

static int setup(void **state) {
    (void)state;
    rp_arena_init(&arena, "test", 0);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rp_arena_finish(&arena);
    return 0;
}

static rp_err freeze(const char *patterns, rp_node **model) {
    rp_node *run;
    char *text;
    expect_ok(rp_arena_printf(&arena, &text, "freeze: %s", patterns));
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "run.yaml", &run));
    expect_ok(rp_config_read_text(&arena, model_text, sizeof model_text - 1, "model.yaml", model));
    return rp_freeze_layers(&arena, rp_node_find(run, "freeze"), *model);
}

static void layers_that_fit(void **state) {
    (void)state;
    static const struct {
        const char *patterns;
        bool frozen[LAYERS];
    } cases[] = {
        {"conv1", {true, false, false, false}},
        {"layer?.*", {false, true, true, false}},
        {"[conv*, layer2.bn]", {true, false, true, false}},
        {"'*'", {true, true, true, true}},
        {"'[!f]*'", {true, true, true, false}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_node *root;
        rp_model *model;
        expect_ok(freeze(cases[i].patterns, &root));
        expect_ok(rp_model_parse(&arena, root, &(rp_model_data){0}, &model));
        for (uint32_t l = 0; l < LAYERS; l++) {
            assert_int_equal(model->layer[l].frozen, cases[i].frozen[l]);
        }
    }
    /* what goes to the boards says it, too */
    rp_node *root;
    char *text;
    expect_ok(freeze("layer2.*", &root));
    expect_ok(rp_config_text(&arena, root, &text));
    assert_non_null(strstr(text, "train: false"));
}

static void nothing_is_asked(void **state) {
    (void)state;
    rp_node *root;
    rp_model *model;
    expect_ok(rp_config_read_text(&arena, model_text, sizeof model_text - 1, "model.yaml", &root));
    expect_ok(rp_freeze_layers(&arena, NULL, root));
    expect_ok(rp_model_parse(&arena, root, &(rp_model_data){0}, &model));
    for (uint32_t l = 0; l < LAYERS; l++) {
        assert_false(model->layer[l].frozen);
    }
}

static void mistakes(void **state) {
    (void)state;
    static const struct {
        const char *patterns, *message;
    } cases[] = {
        {"layer3.*", "run.yaml:1: freeze: 'layer3.*' matches no layer of the model; it has: conv1, "
                     "layer1.bn, layer2.bn, fc (4 in all)"},
        {"[conv1, conv]", "'conv' matches no layer"},
        {"{conv1: true}", "expected a pattern"},
        {"[[conv1]]", "expected a pattern"},
        {"[]", "expected a pattern"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_node *root;
        expect_err(freeze(cases[i].patterns, &root), RP_ERR_USAGE);
        if (!strstr(rp_err_message(), cases[i].message)) {
            fail_msg("'%s' is not in '%s'", cases[i].message, rp_err_message());
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(layers_that_fit, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(mistakes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
