/* `train.init`: how it is read, what its patterns take, what its rules call a tensor. */
#include "expect.h"

#include "run/init.h"

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

static rp_err parse_init(const char *text, const rp_init **out) {
    rp_node *root;
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "run.yaml", &root));
    return rp_init_parse(&arena, root, out);
}

static void nothing_or_a_file(void **state) {
    (void)state;
    const rp_init *init;
    expect_ok(parse_init("seed: 1", &init));
    assert_null(init);
    expect_ok(parse_init("init: none", &init));
    assert_null(init);
    expect_ok(parse_init("init: a/b.safetensors", &init));
    assert_string_equal(init->from, "a/b.safetensors");
    assert_true(rp_init_takes(init, "fc.weight"));
    expect_ok(parse_init("init: {from: a}", &init));
    assert_string_equal(init->from, "a");
    assert_true(!init->only && !init->except && !init->rename);
}

static void patterns(void **state) {
    (void)state;
    const rp_init *init;
    expect_ok(parse_init("init: {from: a, only: conv*}", &init));
    assert_true(rp_init_takes(init, "conv1.weight") && !rp_init_takes(init, "bn1.weight"));
    expect_ok(parse_init("init: {from: a, only: [conv1.*, 'fc?.bias']}", &init));
    assert_true(rp_init_takes(init, "conv1.bias") && rp_init_takes(init, "fc2.bias"));
    assert_true(!rp_init_takes(init, "conv2.bias") && !rp_init_takes(init, "fc2.weight"));
    assert_true(!rp_init_takes(init, "fc22.bias"));
    expect_ok(parse_init("init: {from: a, except: [fc.*]}", &init));
    assert_true(rp_init_takes(init, "conv1.bias") && !rp_init_takes(init, "fc.bias"));
    expect_ok(parse_init("init: {from: a, only: '*.weight', except: 'fc.*'}", &init));
    assert_true(rp_init_takes(init, "conv1.weight") && !rp_init_takes(init, "conv1.bias"));
    assert_true(!rp_init_takes(init, "fc.weight"));
}

static void expect_name(const rp_init *init, const char *file, const char *model, uint32_t by) {
    char name[RP_INIT_NAME_BYTES];
    uint32_t rule;
    rp_init_rename(init, file, name, &rule);
    assert_string_equal(name, model);
    assert_int_equal(rule, by);
}

static void names(void **state) {
    (void)state;
    const rp_init *init;
    expect_ok(parse_init("init:\n  from: a\n  rename:\n"
                         "    features.0: conv1\n"        /* a layer */
                         "    scale: bn1.weight\n"        /* a tensor */
                         "    features.*: block.*\n"      /* what is left of them */
                         "    layer*.conv: stage*_conv\n" /* layers */
                         "    '*.gamma': '*.weight'\n",
                         &init));
    expect_name(init, "features.0.weight", "conv1.weight", 0);
    expect_name(init, "features.0", "conv1", 0);
    expect_name(init, "scale", "bn1.weight", 1);
    expect_name(init, "scales", "scales", RP_INIT_NO_RULE);
    expect_name(init, "features.01.weight", "block.01.weight", 2);
    expect_name(init, "layer1.0.conv.bias", "stage1.0_conv.bias", 3);
    expect_name(init, "layer1.0.conv", "stage1.0_conv", 3);
    expect_name(init, "layer1.0.conv1.bias", "layer1.0.conv1.bias", RP_INIT_NO_RULE);
    expect_name(init, "bn.gamma", "bn.weight", 4);
    expect_name(init, "bn.beta", "bn.beta", RP_INIT_NO_RULE);
    expect_ok(parse_init("init: {from: a, rename: {'*': 'net.*'}}", &init));
    expect_name(init, "fc.weight", "net.fc.weight", 0);
    expect_ok(parse_init("init: {from: a, rename: {'module.*': '*'}}", &init));
    expect_name(init, "module.fc.weight", "fc.weight", 0);
    /* longer than any name of a tensor: cut off, not over the end */
    char text[512];
    char want[RP_INIT_NAME_BYTES];
    (void)snprintf(text, sizeof text, "init: {from: a, rename: {x: %0300d}}", 1);
    expect_ok(parse_init(text, &init));
    (void)snprintf(want, sizeof want, "%0255d", 0);
    expect_name(init, "x.weight", want, 0);
}

static void mistakes(void **state) {
    (void)state;
    const struct {
        const char *text, *message;
    } cases[] = {
        {"init: {only: a}", "the key 'from' is needed here"},
        {"init: {from: a, onyl: b}", "did you mean 'only'"},
        {"init: {from: a, only: {b: c}}", "expected a pattern"},
        {"init: {from: a, only: []}", "expected a pattern"},
        {"init: {from: a, except: [b, [c]]}", "expected a pattern"},
        {"init: {from: a, rename: b}", "expected a map"},
        {"init: {from: a, rename: {b: [c]}}", "on both sides"},
        {"init: {from: a, rename: {'b*': c}}", "one `*` on both or on neither"},
        {"init: {from: a, rename: {b: 'c*'}}", "one `*` on both or on neither"},
        {"init: {from: a, rename: {'*b*': '*c*'}}", "one `*` on both or on neither"},
        {"init: [a]", "run.yaml:1: init"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rp_init *init;
        expect_err(parse_init(cases[i].text, &init), RP_ERR_USAGE);
        if (!strstr(rp_err_message(), cases[i].message)) {
            fail_msg("%s: '%s' is not in '%s'", cases[i].text, cases[i].message, rp_err_message());
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_or_a_file, setup, teardown),
        cmocka_unit_test_setup_teardown(patterns, setup, teardown),
        cmocka_unit_test_setup_teardown(names, setup, teardown),
        cmocka_unit_test_setup_teardown(mistakes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
