/* What a run is told about staleness and momentum before it starts. */
#include "open_run.h"

#include "planning/staleness.h"

static rp_staleness found;

static bool hint(const char *schedule, const char *optimizer) {
    char more[256];
    rp_runfile_close(&run);
    (void)snprintf(more, sizeof more, "schedule: %s\noptimizer: %s\n", schedule, optimizer);
    read_run(&run, more);
    run.micro = run.batch;
    return rp_staleness_is_costly(&run, &found);
}

static void momentum_and_staleness_are_named(void **state) {
    (void)state;
    assert_true(hint("{kind: async, advance: 3}", "{kind: sgd, lr: 0.1, momentum: 0.9}"));
    assert_int_equal(found.staleness, 4);
    assert_string_equal(found.key, "momentum");
    expect_close(found.momentum, 0.9, 1e-6, 0);
    expect_close(found.updates, 9, 1e-5, 0);
    assert_string_equal(found.advice, "momentum: 0, staleness_power: 1");
    assert_true(hint("{kind: pipeoptim, advance: 2}", "{kind: adam, lr: 0.1}"));
    assert_int_equal(found.staleness, 3);
    assert_string_equal(found.key, "beta1");
    assert_string_equal(found.advice, "betas: [0, 0.99], staleness_power: 1");
    assert_true(hint("{kind: async, advance: 3}",
                     "{kind: adamw, lr: 0.1, betas: [0.5, 0.9], staleness_power: 0.5}"));
    assert_string_equal(found.advice, "betas: [0, 0.99]");
}

static void others_are_told_nothing(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"gpipe", "{kind: sgd, lr: 0.1, momentum: 0.9}"},
        {"async", "{kind: sgd, lr: 0.1, momentum: 0.9}"},
        {"{kind: async, advance: 1}", "{kind: sgd, lr: 0.1, momentum: 0.9}"},
        {"{kind: async, advance: 3}", "{kind: sgd, lr: 0.1, momentum: 0.49}"},
        {"{kind: async, advance: 3}", "{kind: sgd, lr: 0.1}"},
        {"{kind: async, advance: 3}", "{kind: adam, lr: 0.1, betas: [0, 0.99]}"},
        {"{kind: ea-pipe, advance: 3}", "{kind: adam, lr: 0.1}"}, /* a replica sees no update */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (hint(cases[i][0], cases[i][1])) {
            fail_msg("%s, %s: %s", cases[i][0], cases[i][1], found.advice);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(momentum_and_staleness_are_named, setup, close_run),
        cmocka_unit_test_setup_teardown(others_are_told_nothing, setup, close_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
