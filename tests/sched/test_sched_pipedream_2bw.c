#include "unflushed.h"

extern const rp_sched_kind rp_sched_pipedream_2bw;
#define KIND rp_sched_pipedream_2bw

static void sizes(void **state) {
    (void)state;
    check_unflushed_sizes(&KIND);
}

static void facts(void **state) {
    (void)state;
    check_unflushed_facts(&KIND);
    check_unflushed_busy(&KIND);
}

/* A step begins when at most one before it waits for its update. */
static void two_steps_are_open(void **state) {
    (void)state;
    rp_arena arena;
    rp_method method;
    rp_sched_shape shape = {.stages = 4};
    rp_arena_init(&arena, "test", 0);
    expect_ok(parse_method(&arena, "schedule: pipedream-2bw", 4, &method));
    assert_int_equal(method.weights, RP_WEIGHTS_DOUBLE);
    rp_method_order(&method, &shape);
    assert_int_equal(shape.steps_open, 2);
    expect_ok(
        parse_method(&arena, "schedule: {kind: pipedream-2bw, weights: pipeoptim}", 4, &method));
    rp_method_order(&method, &shape);
    assert_int_equal(shape.steps_open, 2);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(facts),
        cmocka_unit_test(two_steps_are_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
