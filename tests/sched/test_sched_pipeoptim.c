#define KIND rp_sched_pipeoptim
#include "unflushed.h"

/* METHODS 5.4: while the pipes fill the staleness is min(n, D - 1 - k). */
static void staleness_at_the_pipeline_start(void **state) {
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
                    assert_int_equal(rp_sched_staleness(&KIND, &list, &op, 1),
                                     op.step < behind ? op.step : behind);
                }
            }
        }
    }
}

/* Asked for one step, the staleness is that of a walk from the start; replicas r: of every r-th
 * update.
 */
static void staleness_at_a_step(void **state) {
    (void)state;
    for (uint32_t variant = 0; variant < 240; variant++) {
        const uint32_t replicas = 1 + variant / 2 % 2;
        rp_sched_shape shape = {.stages = 1 + variant % 5,
                                .step_first = 3,
                                .step_end = 150,
                                .epoch_samples = variant % 3 ? 20 : 43,
                                .batch = 4,
                                .micro = 1 + variant % 4,
                                .advance = variant % 7 == 1,
                                .steps_open = variant / 16 % 4,
                                .drain = variant / 80 == 1};
        for (shape.stage = 0; shape.stage < shape.stages; shape.stage++) {
            rp_sched_state list;
            rp_op op;
            rp_sched_start(&list, &shape);
            while (KIND.next(&list, &op)) {
                if (op.kind == RP_OP_FORWARD && op.micro == 0) {
                    assert_int_equal(rp_sched_staleness_at(&KIND, &shape, op.step, replicas),
                                     rp_sched_staleness(&KIND, &list, &op, replicas));
                }
            }
            assert_int_equal(rp_sched_staleness_at(&KIND, &shape, 2, 1), 0);
            assert_int_equal(rp_sched_staleness_at(&KIND, &shape, UINT64_MAX, 1), 0);
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
        cmocka_unit_test(staleness_at_the_pipeline_start),
        cmocka_unit_test(staleness_at_a_step),
        cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
