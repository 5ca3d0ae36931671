#define KIND rp_sched_pipedream
#include "unflushed.h"

static void vertical_sync(void **state) {
    (void)state;
    rp_method method;
    expect_ok(parse_method("pipedream", 4, &method));
    assert_int_equal(method.weights, RP_WEIGHTS_STASH);
    expect_ok(parse_method("{kind: pipedream, vertical_sync: true}", 4, &method));
    assert_int_equal(method.weights, RP_WEIGHTS_ENTRY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        UNFLUSHED_TESTS,
        cmocka_unit_test(vertical_sync),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
