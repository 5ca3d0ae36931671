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

/* FedNova's weights of steps are those of plain SGD. */
static void nova_needs_plain_sgd(void **state) {
    const rp_rule nova = {.kind = RP_RULE_FEDNOVA};
    const rp_rule mean = {.kind = RP_RULE_FEDAVG};
    rp_optim optim = {.kind = rp_optim_find("sgd"), .momentum = 0.9};
    rp_node *at;
    (void)state;
    expect_ok(rp_config_read_text(&arena, "a: b\n", 5, "run.yaml", &at));
    expect_ok(rp_federated_check_optimizer(&nova, &optim, at));
    optim.nesterov = true;
    expect_err(rp_federated_check_optimizer(&nova, &optim, at), RP_ERR_USAGE);
    expect_ok(rp_federated_check_optimizer(&mean, &optim, at));
    optim = (rp_optim){.kind = rp_optim_find("sgd"), .weight_decay = 0.1};
    expect_err(rp_federated_check_optimizer(&nova, &optim, at), RP_ERR_USAGE);
    optim = (rp_optim){.kind = rp_optim_find("adam")};
    expect_err(rp_federated_check_optimizer(&nova, &optim, at), RP_ERR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_not_said_is_chosen, setup, teardown),
        cmocka_unit_test_setup_teardown(rules_have_their_defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_keys_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(nova_needs_plain_sgd, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
