#define KIND rp_sched_pipeoptim
#include "unflushed.h"

/* METHODS 5.4: while the pipes fill the gap is min(n, D - 1 - k). */
static void gap_while_filling(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages <= 8; stages++) {
        for (uint32_t k = 0; k < stages; k++) {
            const rp_sched_shape shape = {.stages = stages,
                                          .stage = k,
                                          .step_end = 30,
                                          .epoch_samples = 30,
                                          .batch = 1,
                                          .micro = 1};
            rp_sched_state list;
            rp_op op;
            rp_sched_start(&list, &shape);
            while (KIND.next(&list, &op)) {
                if (op.kind == RP_OP_FORWARD) {
                    const uint64_t behind = stages - 1 - k;
                    assert_int_equal(rp_sched_gap(&KIND, &list, &op, 1),
                                     op.step < behind ? op.step : behind);
                }
            }
        }
    }
}

static void words(void **state) {
    (void)state;
    rp_method method;
    expect_ok(parse_method("pipeoptim", 4, &method));
    assert_int_equal(method.horizon, RP_HORIZON_PAPER);
    expect_ok(parse_method("{kind: pipeoptim, horizon: released}", 4, &method));
    assert_int_equal(method.horizon, RP_HORIZON_RELEASED);
    assert_int_equal(parse_method("{kind: async, horizon: paper}", 4, &method), RP_ERR_USAGE);
    assert_int_equal(parse_method("{kind: gpipe, weights: pipeoptim}", 4, &method), RP_ERR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        UNFLUSHED_TESTS,
        cmocka_unit_test(gap_while_filling),
        cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
