#include "case.h"

static void equals_pytorch(void **state) {
    (void)state;
    optim_golden_each("adamw");
}

static void decay_is_decoupled(void **state) {
    (void)state;
    enum { COUNT = 3 };
    const float zero[COUNT] = {0};
    float w[COUNT] = {1, -2, 4};
    rp_optim optim;
    optim_case c;
    rp_arena arena;
    rp_arena_init(&arena, "decay", 0);
    expect_ok(optim_case_parse(&arena, "{kind: adamw, lr: 0.5}", &optim));
    expect_close(optim.weight_decay, 0.01, 0, 0);
    optim_case_open(&c, &optim, COUNT);
    optim_case_write(c.call.w, w, COUNT);
    optim_case_step(&c, zero);
    optim_case_read(c.call.w, w, COUNT);
    expect_close(w[0], 0.995, 1e-6, 0);
    expect_close(w[1], -1.99, 1e-6, 0);
    expect_close(w[2], 3.98, 1e-6, 0);
    optim_case_close(&c);
    rp_arena_finish(&arena);
}

static void bad_options(void **state) {
    (void)state;
    optim_case_refused("{kind: adamw, lr: 1, weight_decay: -1}", "weight_decay");
    optim_case_refused("{kind: adamw, lr: 1, amsgrad: true}", "amsgrad");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(decay_is_decoupled),
        cmocka_unit_test(bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
