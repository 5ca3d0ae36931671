#define KIND rp_sched_ea_pipe
#include "unflushed.h"

static void defaults(void **state) {
    (void)state;
    rp_method method;
    rp_sched_shape shape = {.stages = 4};
    expect_ok(parse_method("ea-pipe", 4, &method));
    assert_int_equal(method.replicas, 4); /* R = D */
    expect_close(method.alpha, 0.225, 1e-12, 0);
    assert_int_equal(method.period, 1);
    rp_method_order(&method, &shape);
    assert_int_equal(shape.steps_open, 4);
    expect_ok(parse_method("{kind: ea-pipe, lean: true}", 4, &method));
    for (uint32_t k = 0; k < 4; k++) {
        assert_int_equal(rp_method_replicas(&method, 4, k), 4 - k);
    }
    expect_ok(parse_method("{kind: ea-pipe, advance: 2}", 4, &method));
    assert_int_equal(method.replicas, 10); /* as many as there are in flight */
    expect_close(method.alpha, 0.09, 1e-12, 0);
}

/* Combinations: prediction inside replicas where they are stale, and only there. */
static void combinations(void **state) {
    (void)state;
    rp_method method;
    expect_ok(parse_method("{kind: ea-pipe, replicas: 2, weights: pipeoptim}", 4, &method));
    assert_int_equal(parse_method("{kind: ea-pipe, weights: pipeoptim}", 4, &method), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "no replica is updated"));
}

/* Of a combination that makes no sense the message says why. */
static void refusals_give_reasons(void **state) {
    (void)state;
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"{kind: ea-pipe, replicas: 2, weights: double}", "versions of one model"},
        {"{kind: ea-pipe, replicas: 2, weights: entry}", "versions of one model"},
        {"{kind: ea-pipe, replicas: 2, weights: spectrain}", "versions of one model"},
        {"{kind: avgpipe, weights: xpipe}", "versions of one model"},
        {"{kind: pipedream, vertical_sync: true, weights: stash}", "exclude each other"},
        {"{kind: 1f1b, weights: stash}", "flushes"},
        {"{kind: avgpipe, replicas: 1}", "reference of the previous update"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_method method;
        assert_int_equal(parse_method(cases[i].text, 4, &method), RP_ERR_USAGE);
        if (!strstr(rp_err_message(), cases[i].reason)) {
            fail_msg("%s: %s", cases[i].text, rp_err_message());
        }
    }
}

/* What a refusal advises can be done, and then there is nothing to refuse. */
static void refusals_give_advice(void **state) {
    (void)state;
    static const struct {
        const char *text, *advice, *done;
        uint32_t stages;
    } cases[] = {
        {"{kind: ea-pipe, weights: stash}", "drop `weights`", "ea-pipe", 1},
        {"{kind: ea-pipe, weights: pipeoptim, lean: true}", "drop `weights`", "ea-pipe", 1},
        {"{kind: avgpipe, weights: stash}", "drop `weights`", "avgpipe", 1},
        {"{kind: ea-pipe, weights: stash}", "use fewer replicas",
         "{kind: ea-pipe, weights: stash, replicas: 1}", 2},
        {"{kind: ea-pipe, lean: true, advance: 1}", "drop one of the two",
         "{kind: ea-pipe, lean: true}", 4},
        {"{kind: ea-pipe, replicas: 2, weights: pipeoptim, advance: auto}", "expected a number",
         "{kind: ea-pipe, replicas: 2, weights: pipeoptim, advance: 1}", 4},
        {"{kind: ea-pipe, weights: stash, replicas: 2, lean: true}", "drop one of the two",
         "{kind: ea-pipe, weights: stash, replicas: 2}", 4},
        {"{kind: avgpipe, replicas: 1}", "use more replicas", "{kind: avgpipe, replicas: 2}", 4},
        {"{kind: avgpipe, replicas: 1}", "give `alpha`", "{kind: avgpipe, replicas: 1, alpha: 0.5}",
         4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_method method;
        assert_int_equal(parse_method(cases[i].text, cases[i].stages, &method), RP_ERR_USAGE);
        if (!strstr(rp_err_message(), cases[i].advice)) {
            fail_msg("%s on %u stages: %s", cases[i].text, cases[i].stages, rp_err_message());
        }
        expect_ok(parse_method(cases[i].done, cases[i].stages, &method));
    }
}

/* With R >= D a replica never changes between a forward and its backward (METHODS 9). */
static void no_gap_inside_a_replica(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages <= 8; stages++) {
        for (uint32_t k = 0; k < stages; k++) {
            const rp_sched_shape shape = {.stages = stages,
                                          .stage = k,
                                          .step_end = 9,
                                          .epoch_samples = 30,
                                          .batch = 1,
                                          .micro = 1};
            assert_int_equal(rp_sched_steady_staleness(&KIND, &shape, 0, stages), 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        UNFLUSHED_TESTS,
        cmocka_unit_test(defaults),
        cmocka_unit_test(combinations),
        cmocka_unit_test(refusals_give_reasons),
        cmocka_unit_test(refusals_give_advice),
        cmocka_unit_test(no_gap_inside_a_replica),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
