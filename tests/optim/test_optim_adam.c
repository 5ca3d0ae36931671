#include "case.h"

#include <math.h>

static void equals_pytorch(void **state) {
    (void)state;
    optim_golden_each("adam");
}

static void options(void **state) {
    (void)state;
    rp_optim optim;
    rp_arena arena;
    rp_arena_init(&arena, "options", 0);
    expect_ok(optim_case_parse(&arena, "{kind: adam, lr: 1e-3}", &optim));
    expect_close(optim.beta1, 0.9, 0, 0);
    expect_close(optim.beta2, 0.999, 0, 0);
    expect_close(optim.eps, 1e-8, 0, 0);
    expect_close(optim.weight_decay, 0, 0, 0);
    expect_ok(optim_case_parse(&arena, "{kind: adam, lr: 0, beta1: 0.5, beta2: 0.75}", &optim));
    expect_close(optim.beta1 + optim.beta2, 1.25, 0, 0);
    expect_ok(optim_case_parse(&arena, "{kind: adam, lr: 0, betas: [0.25, 0.5]}", &optim));
    expect_close(optim.beta1 + 2 * optim.beta2, 1.25, 0, 0);
    rp_arena_finish(&arena);
}

static void bad_options(void **state) {
    (void)state;
    optim_case_refused("kind: adam\nlr: 1\nbetas: [0.9, 0.99]\nbeta1: 0.9\n", "run.yaml:3");
    optim_case_refused("{kind: adam, lr: 1, betas: 0.9}", "list of two");
    optim_case_refused("{kind: adam, lr: 1, betas: [0.9]}", "list of two");
    optim_case_refused("{kind: adam, lr: 1, betas: [0.9, x]}", "betas");
    optim_case_refused("{kind: adam, lr: 1, betas: [0.9, 1.0]}", "below 1");
    optim_case_refused("{kind: adam, lr: 1, beta2: nan}", "beta2");
    optim_case_refused("{kind: adam, lr: 1, momentum: 0.9}", "momentum");
}

/* After 100000 steps the corrections are 1, and the step of a constant gradient is lr. */
static void far_from_the_start(void **state) {
    (void)state;
    enum { COUNT = 5 };
    const float ones[COUNT] = {1, 1, 1, 1, 1};
    float w[COUNT];
    rp_optim optim;
    optim_case c;
    rp_arena arena;
    rp_arena_init(&arena, "far", 0);
    expect_ok(optim_case_parse(&arena, "{kind: adam, lr: 0.125}", &optim));
    optim_case_open(&c, &optim, COUNT);
    optim_case_write(c.call.state[0], ones, COUNT);
    optim_case_write(c.call.state[1], ones, COUNT);
    c.call.t = 100000;
    optim_case_step(&c, ones);
    optim_case_read(c.call.w, w, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        expect_close(w[i], -0.125, 1e-6, 0);
    }
    optim_case_close(&c);
    rp_arena_finish(&arena);
}

/* What predict() must give, in double from METHODS: XPipe corrects the moments by 1 - beta whatever
 * t is (6), PipeOptim by 1 - beta^t (5.1), and `decay` shrinks W for every step ahead (5.1,
 * FTPipe).
 */
static double predicted(const rp_optim *optim, double w, const double moment[2], double t,
                        double s) {
    const double power = optim->rule == RP_PREDICT_XPIPE ? 1 : t;
    const double mean = moment[0] / (1 - pow(optim->beta1, power));
    const double square = moment[1] / (1 - pow(optim->beta2, power));
    const double kept = optim->predict_decay ? pow(1 - optim->lr * optim->weight_decay, s) : 1;
    return w * kept - s * optim->lr * mean / (sqrt(square) + optim->eps);
}

/* Behind each of 5 steps, some updates ahead; a trusted share makes fractions of them. The decay is
 * large, and eps as large as the root of a square, so that neither can be in the wrong place. */
static void predicts_by_the_formula(const char *kind, rp_predict_rule rule, bool decay) {
    enum { COUNT = 19, STEPS = 5 };
    static const double aheads[] = {1, 2.5, 7};
    float w[COUNT], g[COUNT], out[COUNT];
    double want[COUNT], moment[COUNT][2] = {{0}};
    char text[128];
    rp_optim optim;
    optim_case c;
    rp_arena arena;
    rp_arena_init(&arena, "predicts", 0);
    (void)snprintf(text, sizeof text, "{kind: %s, lr: 0.1, weight_decay: 0.5, eps: 0.2}", kind);
    expect_ok(optim_case_parse(&arena, text, &optim));
    optim.rule = rule;
    optim.predict_decay = decay;
    optim_case_open(&c, &optim, COUNT);
    golden_values("w", COUNT, w);
    optim_case_write(c.call.w, w, COUNT);
    for (int t = 1; t <= STEPS; t++) {
        golden_values(t % 2 ? "odd" : "even", COUNT, g);
        for (size_t i = 0; i < COUNT; i++) {
            const double d = (double)g[i] + (optim.kind->decoupled ? 0 : 0.5 * (double)w[i]);
            moment[i][0] = 0.9 * moment[i][0] + 0.1 * d;
            moment[i][1] = 0.999 * moment[i][1] + 0.001 * d * d;
        }
        optim_case_step(&c, g);
        optim_case_read(c.call.w, w, COUNT);
        for (size_t a = 0; a < sizeof aheads / sizeof *aheads; a++) {
            for (size_t i = 0; i < COUNT; i++) {
                want[i] = predicted(&optim, (double)w[i], moment[i], t, aheads[a]);
            }
            expect_ok(optim.kind->predict(&c.call, c.out, (float)aheads[a]));
            optim_case_read(c.out, out, COUNT);
            expect_close_all(out, want, COUNT, 1e-5, 1e-6);
        }
    }
    optim_case_close(&c);
    rp_arena_finish(&arena);
}

static void predictions(void **state) {
    (void)state;
    predicts_by_the_formula("adam", RP_PREDICT_OWN, false);
    predicts_by_the_formula("adam", RP_PREDICT_XPIPE, false);
    predicts_by_the_formula("adamw", RP_PREDICT_OWN, false);
    predicts_by_the_formula("adamw", RP_PREDICT_OWN, true);
    predicts_by_the_formula("adamw", RP_PREDICT_XPIPE, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch), cmocka_unit_test(options),
        cmocka_unit_test(bad_options),    cmocka_unit_test(far_from_the_start),
        cmocka_unit_test(predictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
