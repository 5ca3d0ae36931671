#include "unflushed.h"

extern const rp_sched_kind rp_sched_avgpipe;
#define KIND rp_sched_avgpipe

static void sizes(void **state) {
    (void)state;
    check_unflushed_sizes(&KIND);
}

static void facts(void **state) {
    (void)state;
    check_unflushed_facts(&KIND);
    check_unflushed_busy(&KIND);
}

static void defaults(void **state) {
    (void)state;
    rp_arena arena;
    rp_method method;
    rp_arena_init(&arena, "test", 0);
    expect_ok(parse_method(&arena, "schedule: {kind: avgpipe, replicas: 4}", 4, &method));
    expect_close(method.alpha, 0.25, 1e-12, 0); /* 1 / P */
    assert_int_equal(method.advance, 1);
    assert_int_equal(parse_method(&arena, "schedule: {kind: avgpipe, period: 2}", 4, &method),
                     RP_ERR_USAGE);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(facts),
        cmocka_unit_test(defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
