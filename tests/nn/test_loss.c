/* `loss:` of a run file. */
#include "expect.h"

#include "nn/loss.h"

static rp_err parse_loss(const char *text, const rp_loss_kind **kind, rp_loss_options *options) {
    rp_arena arena;
    rp_node *root;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "run.yaml", &root));
    const rp_err err = rp_loss_parse(root, kind, options);
    rp_arena_finish(&arena);
    return err;
}

static void words_and_maps(void **state) {
    (void)state;
    static const struct {
        const char *text, *name;
        double smoothing;
    } cases[] = {
        {"seed: 1", "cross-entropy", 0},
        {"loss: mse", "mse", 0},
        {"loss: cross-entropy", "cross-entropy", 0},
        {"loss: {kind: mse}", "mse", 0},
        {"loss: {kind: mse, label_smoothing: 0}", "mse", 0},
        {"loss: {kind: cross-entropy, label_smoothing: 0.1}", "cross-entropy", 0.1},
        {"loss: {kind: soft-cross-entropy, label_smoothing: 1}", "soft-cross-entropy", 1},
        {"loss: {kind: cross-entropy, label_smoothing: 0.5, ignore: -100}", "cross-entropy", 0.5},
        {"loss: {kind: cross-entropy, classes_at: last}", "cross-entropy", 0},
        {"loss: {kind: cross-entropy, classes_at: first}", "cross-entropy", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rp_loss_kind *kind = NULL;
        rp_loss_options options;
        expect_ok(parse_loss(cases[i].text, &kind, &options));
        assert_string_equal(kind->name, cases[i].name);
        expect_close(options.label_smoothing, cases[i].smoothing, 1e-7, 0);
        assert_int_equal(options.ignores, strstr(cases[i].text, "ignore") != NULL);
        assert_int_equal(options.ignore, options.ignores ? -100 : 0);
        assert_int_equal(options.classes_first, strstr(cases[i].text, "first") != NULL);
    }
}

static void mistakes(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"loss: huber", "no loss 'huber'; there are: cross-entropy soft-cross-entropy mse"},
        {"loss: {kind: huber}", "no loss 'huber'"},
        {"loss: {label_smoothing: 0.1}", "the key 'kind' is needed here"},
        {"loss: {kind: cross-entropy, smoothing: 0.1}", "smoothing"},
        {"loss: {kind: cross-entropy, label_smoothing: 1.5}", "loss.label_smoothing"},
        {"loss: {kind: cross-entropy, label_smoothing: nan}", "loss.label_smoothing"},
        {"loss: {kind: mse, label_smoothing: 0.1}",
         "is for classes, but the targets of mse are not classes"},
        {"loss: {kind: mse, ignore: 0}", "is a class, but the targets of mse are not classes"},
        {"loss: {kind: cross-entropy, ignore: 0.5}", "loss.ignore: expected a whole number"},
        {"loss: {kind: cross-entropy, ignore: 3e9}", "loss.ignore"},
        {"loss: {kind: mse, classes_at: first}",
         "loss.classes_at: is for classes, but the targets of mse are not classes"},
        {"loss: {kind: cross-entropy, classes_at: 1}", "loss.classes_at: expected one of"},
        {"loss: [mse]", "run.yaml:1: loss"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rp_loss_kind *kind;
        rp_loss_options options;
        expect_err(parse_loss(cases[i].text, &kind, &options), RP_ERR_USAGE);
        if (!strstr(rp_err_message(), cases[i].message)) {
            fail_msg("%s: '%s' is not in '%s'", cases[i].text, cases[i].message, rp_err_message());
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_maps),
        cmocka_unit_test(mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
