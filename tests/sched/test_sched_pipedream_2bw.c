#define KIND rp_sched_pipedream_2bw
#include "unflushed.h"

/* A step begins when at most one before it waits for its update. */
static void two_steps_are_open(void **state) {
    (void)state;
    rp_method method;
    rp_sched_shape shape = {.stages = 4};
    expect_ok(parse_method("pipedream-2bw", 4, &method));
    assert_int_equal(method.weights, RP_WEIGHTS_DOUBLE);
    rp_method_order(&method, &shape);
    assert_int_equal(shape.steps_open, 2);
    expect_ok(parse_method("{kind: pipedream-2bw, weights: pipeoptim}", 4, &method));
    rp_method_order(&method, &shape);
    assert_int_equal(shape.steps_open, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        UNFLUSHED_TESTS,
        cmocka_unit_test(two_steps_are_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
