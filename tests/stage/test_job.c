#include "agent/ring.h"

static const char model[] = "input: data\nlayers:\n  - {name: a, kind: dense, out: 4}\n"
                            "  - {name: b, kind: dense, out: classes}\n";
static const char four_layers[] =
    "input: data\nlayers:\n  - {name: a, kind: dense, out: 4}\n"
    "  - {name: b, kind: dense, out: 4}\n  - {name: c, kind: dense, out: 4}\n"
    "  - {name: d, kind: dense, out: classes}\n";
static const char good[] =
    "sample: [3]\nclasses: 2\nseed: 1\nbatch: 8\nmicrobatch: 4\nepoch_samples: 16\nsteps: 4\n"
    "loss: cross-entropy\noptimizer: {kind: sgd, lr: 0.1}\nschedule: gpipe\n";

static rp_err parse_job(const char *job, const char *cut, uint32_t stages) {
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_job out;
    rp_err err = test_parse(&arena, model, job, cut, stages, stages - 1, &out);
    rp_arena_finish(&arena);
    return err;
}

/* `good` with one text put in the place of another. */
static rp_err parse_changed(const char *from, const char *to) {
    char text[1024];
    const char *at = strstr(good, from);
    assert_non_null(at);
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    return parse_job(text, "[b]", 2);
}

static void a_good_job(void **state) {
    (void)state;
    expect_ok(parse_job(good, "[b]", 2));
    expect_ok(parse_job(good, "[]", 1));
}

static void bad_jobs_name_the_key(void **state) {
    (void)state;
    expect_err(parse_job(good, "[b]", 3), RP_ERR_USAGE);
    expect_err(parse_changed("gpipe", "gpip"), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "gpipe"));
    expect_err(parse_changed("microbatch: 4", "microbatch: 9"), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "microbatch"));
    expect_err(parse_changed("loss: cross-entropy", "loss: hinge"), RP_ERR_USAGE);
    expect_err(parse_changed("seed: 1\n", ""), RP_ERR_USAGE);
    expect_err(parse_changed("seed: 1\n", "seed: 1\nspeed: 2\n"), RP_ERR_USAGE);
    expect_err(parse_changed("seed: 1\n", "seed: 1\nstorage: u8\n"), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "storage"));
    expect_ok(parse_changed("seed: 1\n", "seed: 1\nstorage: bf16\n"));
    expect_err(parse_changed("sample: [3]", "sample: [0]"), RP_ERR_USAGE);
    expect_err(parse_changed("sample: [3]", "sample: 3"), RP_ERR_USAGE);
    expect_err(parse_changed("cross-entropy", "mse"), RP_ERR_USAGE); /* 2 outputs, 1 column */
}

/* `decay: true` where no decay acts beside the gradient would do nothing. */
static void only_a_decay_is_predicted(void **state) {
    (void)state;
    static const struct {
        const char *optimizer, *decay;
        rp_err want;
    } cases[] = {
        {"kind: adamw, lr: 0.1", "true", RP_OK},
        {"kind: adamw, lr: 0.1, weight_decay: 0", "true", RP_ERR_USAGE},
        {"kind: adam, lr: 0.1, weight_decay: 0.1", "true", RP_ERR_USAGE},
        {"kind: sgd, lr: 0.1, weight_decay: 0.1", "true", RP_ERR_USAGE},
        {"kind: rmsprop, lr: 0.1", "true", RP_ERR_USAGE},
        {"kind: rmsprop, lr: 0.1", "false", RP_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char to[256];
        (void)snprintf(to, sizeof to, "{%s}\nschedule: {kind: pipeoptim, decay: %s}",
                       cases[i].optimizer, cases[i].decay);
        expect_err(parse_changed("{kind: sgd, lr: 0.1}\nschedule: gpipe", to), cases[i].want);
        assert_true(cases[i].want == RP_OK || strstr(rp_err_message(), "drop `decay`"));
    }
}

/* Sums over the microbatches of a step would mix with those of the next one. */
static void deferred_statistics_need_a_flush(void **state) {
    (void)state;
    static const char deferred[] = "input: data\nlayers:\n  - {name: a, kind: dense, out: 4}\n"
                                   "  - {name: n, kind: batchnorm, deferred: true}\n"
                                   "  - {name: b, kind: dense, out: classes}\n";
    const struct {
        const char *schedule;
        rp_err want;
    } cases[] = {{"gpipe", RP_OK}, {"async", RP_ERR_USAGE}, {"ea-pipe", RP_ERR_USAGE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_arena arena;
        rp_job out;
        char text[1024];
        const char *at = strstr(good, "gpipe");
        (void)snprintf(text, sizeof text, "%.*s%s\n", (int)(at - good), good, cases[i].schedule);
        rp_arena_init(&arena, "test", 0);
        expect_err(test_parse(&arena, deferred, text, "[b]", 2, 0, &out), cases[i].want);
        rp_arena_finish(&arena);
    }
}

static void a_step_decision_is_waited_for_when_it_matters(void **state) {
    (void)state;
    rp_optim optim = {0};
    rp_method method = {.kind = rp_sched_find("gpipe")};
    assert_int_equal(rp_decision_maker_of(&method, &optim, false), RP_DECISION_NONE);
    assert_int_equal(rp_decision_maker_of(&method, &optim, true), RP_DECISION_HOST);
    optim.clip_norm = 1;
    assert_int_equal(rp_decision_maker_of(&method, &optim, false), RP_DECISION_HOST);
    method.kind = rp_sched_find("async");
    assert_int_equal(rp_decision_maker_of(&method, &optim, true), RP_DECISION_OWN);
    optim = (rp_optim){.clip_norm_stage = 1};
    assert_int_equal(rp_decision_maker_of(&method, &optim, false), RP_DECISION_OWN);
    method.kind = rp_sched_find("gpipe");
    assert_int_equal(rp_decision_maker_of(&method, &optim, false), RP_DECISION_HOST);
}

/* As the order says: the mean over the microbatches of a full step, replicas count their own. */
static void staleness_is_that_of_the_order(void **state) {
    (void)state;
    enum { STAGES = 4 };
    static const struct {
        const char *schedule;
        uint32_t batch, micro;
        double staleness[STAGES];
    } cases[] = {
        {"gpipe", 8, 2, {0, 0, 0, 0}},
        {"zb-h1", 8, 2, {0, 0, 0, 0}},
        {"async", 8, 8, {3, 2, 1, 0}},
        {"{kind: pipeoptim, advance: 2}", 8, 8, {9, 6, 3, 0}},
        {"async", 8, 4, {1.5, 1, 0.5, 0}},
        {"async", 8, 2, {0.75, 0.5, 0.25, 0}},
        {"async", 7, 4, {1.5, 1, 0.5, 0}},
        {"pipedream-2bw", 8, 4, {1, 1, 0.5, 0}},
        {"ea-pipe", 8, 8, {0, 0, 0, 0}},
        {"{kind: ea-pipe, replicas: 2, weights: pipeoptim}", 8, 8, {1, 1, 0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        rp_arena arena;
        rp_job job;
        (void)snprintf(text, sizeof text,
                       "sample: [4]\nclasses: 3\nbatch: %u\nmicrobatch: %u\nepoch_samples: 64\n"
                       "steps: 20\nseed: 1\nloss: cross-entropy\noptimizer: {kind: sgd, lr: 1}\n"
                       "schedule: %s\n",
                       cases[i].batch, cases[i].micro, cases[i].schedule);
        for (uint32_t k = 0; k < STAGES; k++) {
            rp_arena_init(&arena, "test", 0);
            expect_ok(test_parse(&arena, four_layers, text, "[b, c, d]", STAGES, k, &job));
            expect_close(rp_job_staleness(&job), cases[i].staleness[k], 1e-15, 0);
            job.share[0] = 0.5; /* boards that share the stage have one rate */
            job.share[1] = 1;
            expect_close(rp_job_staleness(&job), cases[i].staleness[k], 1e-15, 0);
            rp_arena_finish(&arena);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_job),
        cmocka_unit_test(bad_jobs_name_the_key),
        cmocka_unit_test(only_a_decay_is_predicted),
        cmocka_unit_test(deferred_statistics_need_a_flush),
        cmocka_unit_test(staleness_is_that_of_the_order),
        cmocka_unit_test(a_step_decision_is_waited_for_when_it_matters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
