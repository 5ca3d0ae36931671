#include "case.h"

static void equals_pytorch(void **state) {
    (void)state;
    optim_golden_each("sgd");
}

static void bad_options(void **state) {
    (void)state;
    optim_case_refused("kind: sgd\nlr: 1\nnesterov: true\n", "run.yaml:3");
    optim_case_refused("kind: sgd\nlr: 1\nmomentum: 0.9\ndampening: 0.1\nnesterov: true\n",
                       "run.yaml:5");
    optim_case_refused("{kind: sgd, lr: 1, momentum: -0.1}", "momentum");
    optim_case_refused("{kind: sgd, lr: 1, betas: [0.9, 0.99]}", "betas");
}

/* State counts: only what the options and a predicting stage need. */
static void states(void **state) {
    (void)state;
    static const optim_states cases[] = {
        {"{kind: sgd, lr: 1}", 1, 0},
        {"{kind: sgd, lr: 1, momentum: 0.9}", 1, 1},
        {"{kind: sgd, lr: 1, momentum: 0.9, nesterov: true}", 2, 1}};
    optim_case_states(cases, sizeof cases / sizeof *cases);
}

/* A stage that does not predict gets the same steps from fewer states, and no prediction. */
static void without_prediction(void **state) {
    (void)state;
    enum { COUNT = 37 };
    const char *const texts[] = {"{kind: sgd, lr: 0.1}",
                                 "{kind: sgd, lr: 0.1, momentum: 0.9, nesterov: true}"};
    for (size_t k = 0; k < 2; k++) {
        float w[2][COUNT];
        for (int predicts = 0; predicts < 2; predicts++) {
            float g[COUNT];
            rp_optim optim;
            optim_case c;
            rp_arena arena;
            rp_arena_init(&arena, "parse", 0);
            expect_ok(optim_case_parse(&arena, texts[k], &optim));
            rp_arena_finish(&arena);
            optim.predicts = predicts;
            optim_case_open(&c, &optim, COUNT);
            golden_values("g", COUNT, g);
            optim_case_step(&c, g);
            optim_case_step(&c, g);
            optim_case_read(c.call.w, w[predicts], COUNT);
            expect_err(optim.kind->predict(&c.call, c.out, 1.0f), predicts ? RP_OK : RP_ERR_USAGE);
            optim_case_close(&c);
        }
        assert_memory_equal(w[0], w[1], sizeof w[0]);
    }
}

/* PipeOptim's released code goes along mu buf + (1 - dampening) g, g without decay; what lies in
 * the gradients when it predicts is of a later step. */
static void released_counts_the_last_gradient_twice(void **state) {
    (void)state;
    enum { COUNT = 21 };
    const char *const texts[] = {
        "{kind: sgd, lr: 0.1, momentum: 0.9, dampening: 0.25, weight_decay: 0.5}",
        "{kind: sgd, lr: 0.1, weight_decay: 0.5}"};
    for (size_t k = 0; k < 2; k++) {
        float w[COUNT], g[2][COUNT], out[COUNT];
        rp_optim optim;
        optim_case c;
        rp_arena arena;
        rp_arena_init(&arena, "parse", 0);
        expect_ok(optim_case_parse(&arena, texts[k], &optim));
        rp_arena_finish(&arena);
        optim.rule = RP_PREDICT_RELEASED;
        assert_int_equal(optim.kind->state_count(&optim), k == 0 ? 2 : 1);
        optim_case_open(&c, &optim, COUNT);
        golden_values("w", COUNT, w);
        golden_values("g0", COUNT, g[0]);
        golden_values("g1", COUNT, g[1]);
        optim_case_write(c.call.w, w, COUNT);
        double buf[COUNT], weight[COUNT];
        for (size_t i = 0; i < COUNT; i++) {
            weight[i] = (double)w[i];
            for (int t = 0; t < 2; t++) {
                const double d = (double)g[t][i] + 0.5 * weight[i];
                buf[i] = k == 1 || t == 0 ? d : 0.9 * buf[i] + 0.75 * d;
                weight[i] -= (double)c.call.lr * buf[i];
            }
            const double twice = k == 0 ? 0.9 * buf[i] + 0.75 * (double)g[1][i] : (double)g[1][i];
            weight[i] -= 4.0 * (double)c.call.lr * twice;
        }
        optim_case_step(&c, g[0]);
        optim_case_step(&c, g[1]);
        optim_case_write(c.g, g[0], COUNT);
        expect_ok(optim.kind->predict(&c.call, c.out, 4.0f));
        optim_case_read(c.out, out, COUNT);
        expect_close_all(out, weight, COUNT, 1e-5, 1e-6);
        optim_case_close(&c);
    }
}

/* Heavy ball on 0.5 (w - 0.5)^2 for 200 steps, against the recurrence in double. */
static void follows_the_recurrence(void **state) {
    (void)state;
    enum { COUNT = 4, STEPS = 200 };
    float w[COUNT] = {1.0f, 0.9f, 1.1f, 1.05f};
    double want[COUNT];
    double buf[COUNT] = {0};
    rp_optim optim;
    optim_case c;
    rp_arena arena;
    rp_arena_init(&arena, "parse", 0);
    expect_ok(optim_case_parse(&arena, "{kind: sgd, lr: 0.02, momentum: 0.9}", &optim));
    optim_case_open(&c, &optim, COUNT);
    optim_case_write(c.call.w, w, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        want[i] = (double)w[i];
    }
    for (int t = 0; t < STEPS; t++) {
        float g[COUNT];
        optim_case_read(c.call.w, w, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            g[i] = w[i] - 0.5f;
            buf[i] = 0.9 * buf[i] + (want[i] - 0.5);
            want[i] -= 0.02 * buf[i];
        }
        optim_case_step(&c, g);
    }
    optim_case_read(c.call.w, w, COUNT);
    expect_close_all(w, want, COUNT, 1e-5, 1e-6);
    optim_case_close(&c);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(bad_options),
        cmocka_unit_test(states),
        cmocka_unit_test(without_prediction),
        cmocka_unit_test(released_counts_the_last_gradient_twice),
        cmocka_unit_test(follows_the_recurrence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
