#include "case.h"

static void equals_pytorch(void **state) {
    (void)state;
    optim_golden_each("rmsprop");
}

static void states(void **state) {
    (void)state;
    static const optim_states cases[] = {{"{kind: rmsprop, lr: 1}", 2, 1},
                                         {"{kind: rmsprop, lr: 1, momentum: 0.9}", 2, 2},
                                         {"{kind: rmsprop, lr: 1, centered: true}", 3, 3}};
    optim_case_states(cases, sizeof cases / sizeof *cases);
}

static void without_prediction(void **state) {
    (void)state;
    enum { COUNT = 37 };
    float w[2][COUNT];
    for (int predicts = 0; predicts < 2; predicts++) {
        float g[COUNT];
        rp_optim optim;
        optim_case c;
        rp_arena arena;
        rp_arena_init(&arena, "parse", 0);
        expect_ok(optim_case_parse(&arena, "{kind: rmsprop, lr: 0.1}", &optim));
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

static void bad_options(void **state) {
    (void)state;
    optim_case_refused("{kind: rmsprop, lr: 1, alpha: 2}", "alpha");
    optim_case_refused("{kind: rmsprop, lr: 1, nesterov: true}", "nesterov");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(states),
        cmocka_unit_test(without_prediction),
        cmocka_unit_test(bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
