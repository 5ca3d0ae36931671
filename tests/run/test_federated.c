/* The keys of `sites`. */
#include "folder.h"

#include "run/federated.h"

static rp_err read_keys(const char *text, rp_federated_keys *out) {
    rp_node *root;
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "run.yaml", &root));
    return rp_federated_read(root, out);
}

#define SITES(more) "sites: {split: s.json, rounds: 3" more "}\n"

static void what_is_not_said_is_chosen(void **state) {
    rp_federated_keys keys;
    (void)state;
    expect_ok(read_keys("model: mlp\n", &keys));
    assert_false(keys.given);
    expect_ok(read_keys(SITES(""), &keys));
    assert_true(keys.given);
    assert_string_equal(keys.split, "s.json");
    assert_int_equal(keys.rule.kind, RP_RULE_FEDAVG);
    assert_false(keys.rule.equal);
    assert_int_equal(keys.rounds, 3);
    assert_int_equal(keys.steps, 0);
    assert_int_equal(keys.epochs, 1);
    assert_int_equal(keys.count, 0);
    expect_close(keys.share, 0, 0, 0);
    assert_int_equal(keys.least, 0);
    assert_int_equal(keys.wait_s, 0);
    assert_int_equal(keys.at_once, 1);
    assert_null(keys.trace);
    assert_null(keys.files);
    expect_ok(read_keys(SITES(", steps: 7, take: {wait: 9}"), &keys));
    assert_int_equal(keys.steps, 7);
    assert_int_equal(keys.epochs, 0);
    assert_int_equal(keys.least, 1);
    assert_int_equal(keys.wait_s, 9);
    /* A round lasts take.wait on the clock of the trace, if nothing else is said. */
    expect_ok(read_keys(SITES(", take: {wait: 9}, availability: {trace: t.json}"), &keys));
    assert_string_equal(keys.trace, "t.json");
    expect_close(keys.trace_s, 9, 0, 0);
}

static void rules_have_their_defaults(void **state) {
    const struct {
        const char *text;
        rp_rule want;
    } cases[] = {
        {SITES(", rule: fednova"), {.kind = RP_RULE_FEDNOVA}},
        {SITES(", rule: {kind: fedavg, weights: equal}"), {.kind = RP_RULE_FEDAVG, .equal = true}},
        {SITES(", rule: fedavgm"), {.kind = RP_RULE_FEDAVGM, .lr = 1, .momentum = 0.9}},
        {SITES(", rule: {kind: fedavgm, lr: 0.7, momentum: 0, nesterov: true}"),
         {.kind = RP_RULE_FEDAVGM, .lr = 0.7, .nesterov = true}},
        {SITES(", rule: fedadam"),
         {.kind = RP_RULE_FEDADAM, .lr = 0.1, .beta1 = 0.9, .beta2 = 0.99, .tau = 1e-3}},
        {SITES(", rule: {kind: fedadam, variant: adam}"),
         {.kind = RP_RULE_FEDADAM,
          .variant = RP_RULE_ADAM,
          .lr = 0.1,
          .beta1 = 0.9,
          .beta2 = 0.99,
          .tau = 1e-3}},
        {SITES(", rule: {kind: fedyogi, variant: flower, tau: 0.01}"),
         {.kind = RP_RULE_FEDYOGI,
          .variant = RP_RULE_FLOWER,
          .lr = 0.01,
          .beta1 = 0.9,
          .beta2 = 0.99,
          .tau = 0.01}},
        {SITES(", rule: {kind: elastic, alpha: 0.2}"),
         {.kind = RP_RULE_ELASTIC, .equal = true, .alpha = 0.2}},
        {SITES(", rule: median"), {.kind = RP_RULE_MEDIAN, .equal = true}},
        {SITES(", rule: trimmed-mean"), {.kind = RP_RULE_TRIMMED_MEAN, .equal = true, .trim = 0.1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rp_rule *want = &cases[i].want;
        rp_federated_keys keys;
        expect_ok(read_keys(cases[i].text, &keys));
        assert_int_equal(keys.rule.kind, want->kind);
        assert_int_equal(keys.rule.variant, want->variant);
        assert_int_equal(keys.rule.equal, want->equal);
        assert_int_equal(keys.rule.nesterov, want->nesterov);
        expect_close(keys.rule.lr, want->lr, 0, 0);
        expect_close(keys.rule.momentum, want->momentum, 0, 0);
        expect_close(keys.rule.beta1, want->beta1, 0, 0);
        expect_close(keys.rule.beta2, want->beta2, 0, 0);
        expect_close(keys.rule.tau, want->tau, 0, 0);
        expect_close(keys.rule.alpha, want->alpha, 0, 0);
        expect_close(keys.rule.trim, want->trim, 0, 0);
    }
}

static void wrong_keys_are_refused(void **state) {
    static const char *const wrong[] = {
        "sites: 3\n",
        "sites: {rounds: 3}\n",
        "sites: {split: s.json}\n",
        SITES(", rule: scaffold"),
        SITES(", rule: [fedavg]"),
        SITES(", rule: {kind: krum}"),
        SITES(", rule: {kind: fedavg, lr: 1}"),
        SITES(", rule: {kind: fedavgm, lr: .nan}"),
        SITES(", rule: {kind: fedavgm, momentum: 1}"),
        SITES(", rule: {kind: fedadam, beta2: 1}"),
        SITES(", rule: {kind: fedadam, tau: 0}"),
        SITES(", rule: {kind: fedyogi, variant: adam}"),
        SITES(", rule: {kind: elastic, alpha: 0}"),
        SITES(", rule: {kind: elastic, weights: held}"),
        SITES(", rule: {kind: median, trim: 0.1}"),
        SITES(", rule: {kind: trimmed-mean, trim: 0.5}"),
        SITES(", steps: 1, epochs: 1"),
        SITES(", steps: 0"),
        SITES(", count: 0"),
        SITES(", count: 2, share: 0.5"),
        SITES(", share: 1.5"),
        SITES(", share: .nan"),
        SITES(", take: 5"),
        SITES(", take: {wait: 0}"),
        SITES(", take: {most: 5}"),
        SITES(", availability: t.json"),
        SITES(", availability: {trace: t.json}"),
        SITES(", availability: {trace: t.json, seconds: 0}"),
        SITES(", availability: {seconds: 5}"),
        SITES(", at_once: 0"),
        SITES(", files: [a.yaml]"),
        SITES(", files: {a: {b: c}}"),
        SITES(", codec: int8"),
        SITES(", keep: []"),
        SITES(", keep: {a: b}"),
        SITES(", keep: ['']"),
        SITES(", optimizer: sgd"),
        SITES(", clip: 0"),
        SITES(", clip: .nan"),
        SITES(", clip: -1"),
        SITES(", drift: 1"),
        SITES(", delta: int8"),
        SITES(", delta: {share: 0.1}"),
        SITES(", delta: {codec: int4}"),
        SITES(", delta: {codec: int8, share: 0.1}"),
        SITES(", delta: {codec: topk, share: 0}"),
        SITES(", delta: {codec: topk, share: 1.5}"),
        SITES(", delta: {codec: topk, share: .nan}"),
    };
    rp_federated_keys keys;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (read_keys(wrong[i], &keys) != RP_ERR_USAGE) {
            fail_msg("accepted: %s", wrong[i]);
        }
        assert_non_null(strstr(rp_err_message(), "run.yaml:1: sites"));
    }
}

static void options_are_those_of_a_round(void **state) {
    rp_federated_keys keys;
    (void)state;
    expect_ok(read_keys(SITES(""), &keys));
    assert_null(keys.options.keep);
    assert_false(keys.options.drift || keys.options.keeps_optimizer);
    assert_false(keys.options.clip > 0);
    assert_false(rp_site_options_keep_state(&keys.options));
    expect_ok(read_keys(SITES(", keep: ['fc2.*', bn*], optimizer: keep, clip: 2.5"), &keys));
    assert_int_equal(rp_node_count(keys.options.keep), 2);
    assert_true(keys.options.keeps_optimizer);
    expect_close(keys.options.clip, 2.5, 0, 0);
    assert_true(rp_site_options_keep_state(&keys.options));
    expect_ok(read_keys(SITES(", optimizer: fresh, clip: 1"), &keys));
    assert_false(rp_site_options_keep_state(&keys.options));
}

static void differences_are_coded(void **state) {
    static const struct {
        const char *text, *why;
    } wrong[] = {
        {SITES(", delta: {codec: int8}, clip: 1"), "after it was clipped"},
        {SITES(", delta: {codec: int8}, rule: fednova"), "part of earlier rounds"},
        {SITES(", delta: {codec: topk}, rule: median"), "median takes each value"},
        {SITES(", delta: {codec: topk}, rule: trimmed-mean"), "trimmed-mean takes each value"},
        {SITES(", delta: {codec: int8}, steps: 4, drift: true, rule: {kind: fedavg, weights: "
               "equal}"),
         "whole difference"},
    };
    rp_federated_keys keys;
    (void)state;
    expect_ok(read_keys(SITES(", delta: {codec: int8}, rule: median"), &keys));
    assert_int_equal(keys.options.delta.kind, RP_DELTA_INT8);
    assert_true(rp_site_options_keep_state(&keys.options));
    expect_ok(read_keys(SITES(", delta: {codec: topk}"), &keys));
    assert_int_equal(keys.options.delta.kind, RP_DELTA_TOPK);
    expect_close(keys.options.delta.share, 0.01, 0, 0);
    expect_ok(read_keys(SITES(", delta: {codec: topk, share: 1}"), &keys));
    expect_close(keys.options.delta.share, 1, 0, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect_err(read_keys(wrong[i].text, &keys), RP_ERR_USAGE);
        if (!strstr(rp_err_message(), wrong[i].why)) {
            fail_msg("'%s' is not in '%s'", wrong[i].why, rp_err_message());
        }
    }
}

/* Scaffold's cheap form is exact for a plain mean of sites with equal steps. */
static void a_drift_needs_equal_sites(void **state) {
    static const struct {
        const char *text, *why;
    } wrong[] = {
        {SITES(", drift: true, steps: 4"), "weights: equal"},
        {SITES(", drift: true, steps: 4, rule: median"), "weights: equal"},
        {SITES(", drift: true, steps: 4, rule: {kind: fedavgm, weights: equal}"), "weights: equal"},
        {SITES(", drift: true, rule: {kind: fedavg, weights: equal}"), "`steps`"},
        {SITES(", drift: true, steps: 4, rule: {kind: fedavg, weights: equal}, clip: 1"),
         "whole difference"},
    };
    const rp_federated_keys plain = {.options = {.drift = true}};
    rp_optim optim = {.kind = rp_optim_find("sgd")};
    rp_lr_schedule lr = {.kind = RP_LR_COSINE};
    rp_federated_keys keys;
    rp_node *at;
    (void)state;
    expect_ok(
        read_keys(SITES(", drift: true, steps: 4, rule: {kind: fedavg, weights: equal}"), &keys));
    assert_true(keys.options.drift && rp_site_options_keep_state(&keys.options));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect_err(read_keys(wrong[i].text, &keys), RP_ERR_USAGE);
        if (!strstr(rp_err_message(), wrong[i].why)) {
            fail_msg("'%s' is not in '%s'", wrong[i].why, rp_err_message());
        }
    }
    expect_ok(rp_config_read_text(&arena, "a: b\n", 5, "run.yaml", &at));
    expect_ok(rp_federated_check_optimizer(&plain, &optim, &lr, at));
    lr.kind = RP_LR_STEP;
    expect_err(rp_federated_check_optimizer(&plain, &optim, &lr, at), RP_ERR_USAGE);
    lr.kind = RP_LR_CONSTANT;
    optim.momentum = 0.9;
    expect_err(rp_federated_check_optimizer(&plain, &optim, &lr, at), RP_ERR_USAGE);
    optim = (rp_optim){.kind = rp_optim_find("sgd"), .anchor = {.drift = true}};
    expect_err(rp_federated_check_optimizer(&plain, &optim, &lr, at), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "sites: {drift: true}"));
}

/* Patterns match tensors of weights files, and leave one to average. */
static void patterns_match_tensors(void **state) {
    rp_model_param param[] = {{.name = "a.weight", .owner = 0},
                              {.name = "a.scratch", .owner = 1, .role = RP_PARAM_SCRATCH},
                              {.name = "head.weight", .owner = 2},
                              {.name = "tied.weight", .owner = 0}};
    const rp_model model = {.param_count = 4, .param = param};
    static const struct {
        const char *text;
        bool good;
    } cases[] = {
        {SITES(""), true},
        {SITES(", keep: head.*"), true},
        {SITES(", keep: [head.*, tail.*]"), false},
        {SITES(", keep: a.scratch"), false},
        {SITES(", keep: tied.*"), false},
        {SITES(", keep: '*'"), false},
        {SITES(", keep: ['h*', 'a.w*']"), false},
    };
    rp_federated_keys keys;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_ok(read_keys(cases[i].text, &keys));
        const rp_err err = rp_site_options_check_model(&keys.options, &model);
        if (err != (cases[i].good ? RP_OK : RP_ERR_USAGE)) {
            fail_msg("%s: %d", cases[i].text, err);
        }
    }
}

/* FedNova's weights of steps are those of plain SGD. */
static void nova_needs_plain_sgd(void **state) {
    rp_federated_keys nova = {.rule = {.kind = RP_RULE_FEDNOVA}};
    const rp_federated_keys mean = {.rule = {.kind = RP_RULE_FEDAVG}};
    const rp_lr_schedule lr = {.kind = RP_LR_STEP};
    rp_optim optim = {.kind = rp_optim_find("sgd"), .momentum = 0.9};
    rp_node *at;
    (void)state;
    expect_ok(rp_config_read_text(&arena, "a: b\n", 5, "run.yaml", &at));
    expect_ok(rp_federated_check_optimizer(&nova, &optim, &lr, at));
    nova.options.keeps_optimizer = true; /* earlier rounds' momentum has no weight */
    expect_err(rp_federated_check_optimizer(&nova, &optim, &lr, at), RP_ERR_USAGE);
    nova.options.keeps_optimizer = false;
    optim.nesterov = true;
    expect_err(rp_federated_check_optimizer(&nova, &optim, &lr, at), RP_ERR_USAGE);
    expect_ok(rp_federated_check_optimizer(&mean, &optim, &lr, at));
    optim = (rp_optim){.kind = rp_optim_find("sgd"), .weight_decay = 0.1};
    expect_err(rp_federated_check_optimizer(&nova, &optim, &lr, at), RP_ERR_USAGE);
    optim = (rp_optim){.kind = rp_optim_find("adam")};
    expect_err(rp_federated_check_optimizer(&nova, &optim, &lr, at), RP_ERR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_not_said_is_chosen, setup, teardown),
        cmocka_unit_test_setup_teardown(rules_have_their_defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_keys_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(options_are_those_of_a_round, setup, teardown),
        cmocka_unit_test_setup_teardown(differences_are_coded, setup, teardown),
        cmocka_unit_test_setup_teardown(a_drift_needs_equal_sites, setup, teardown),
        cmocka_unit_test_setup_teardown(patterns_match_tensors, setup, teardown),
        cmocka_unit_test_setup_teardown(nova_needs_plain_sgd, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
