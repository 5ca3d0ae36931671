/* How long a device may take for one op: 200 times its longest, and 30 s at least. */
#include "expect.h"

#include "base/clock.h"
#include "sched/op_limit.h"

static const int64_t MS = RP_NS_PER_MS, S = RP_NS_PER_S;

static void the_limit_follows_the_longest_op(void **state) {
    (void)state;
    assert_int_equal(rp_op_limit_ns(0), 300 * S); /* nothing is known of the device */
    assert_int_equal(rp_op_limit_ns(1), 30 * S);
    assert_int_equal(rp_op_limit_ns(150 * MS), 30 * S);
    assert_int_equal(rp_op_limit_ns(151 * MS), 200 * 151 * MS);
    assert_int_equal(rp_op_limit_ns(10 * S), 2000 * S);
    assert_int_equal(rp_op_limit_ns(INT64_MAX), INT64_MAX);
}

/* One stall of 20 s does not let the next one take more than an hour. */
static void a_stall_counts_little(void **state) {
    (void)state;
    assert_int_equal(rp_op_longest_ns(0, 5 * MS), 5 * MS);
    assert_int_equal(rp_op_longest_ns(0, 0), 1); /* one has ended */
    assert_int_equal(rp_op_longest_ns(5 * MS, 3 * MS), 5 * MS);
    assert_int_equal(rp_op_longest_ns(5 * MS, 12 * MS), 12 * MS);
    assert_int_equal(rp_op_longest_ns(5 * MS, 20 * S), 40 * MS);
    assert_int_equal(rp_op_longest_ns(40 * MS, 20 * S), 320 * MS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_follows_the_longest_op),
        cmocka_unit_test(a_stall_counts_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
