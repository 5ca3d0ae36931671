#include "unflushed.h"

extern const rp_sched_kind rp_sched_pipedream;
#define KIND rp_sched_pipedream

static void sizes(void **state) {
    (void)state;
    check_unflushed_sizes(&KIND);
}

static void facts(void **state) {
    (void)state;
    check_unflushed_facts(&KIND);
    check_unflushed_busy(&KIND);
}

static void vertical_sync(void **state) {
    (void)state;
    rp_arena arena;
    rp_method method;
    rp_arena_init(&arena, "test", 0);
    expect_ok(parse_method(&arena, "schedule: pipedream", 4, &method));
    assert_int_equal(method.weights, RP_WEIGHTS_STASH);
    expect_ok(parse_method(&arena, "schedule: {kind: pipedream, vertical_sync: true}", 4, &method));
    assert_int_equal(method.weights, RP_WEIGHTS_ENTRY);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(facts),
        cmocka_unit_test(vertical_sync),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
