#define KIND rp_sched_avgpipe
#include "unflushed.h"

static void defaults(void **state) {
    (void)state;
    rp_method method;
    expect_ok(parse_method("{kind: avgpipe, replicas: 4}", 4, &method));
    expect_close(method.alpha, 0.25, 1e-12, 0); /* 1 / P */
    assert_int_equal(method.advance, 1);
    assert_int_equal(parse_method("{kind: avgpipe, period: 2}", 4, &method), RP_ERR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        UNFLUSHED_TESTS,
        cmocka_unit_test(defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
