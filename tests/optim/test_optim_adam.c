#include "case.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(options),
        cmocka_unit_test(bad_options),
        cmocka_unit_test(far_from_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
