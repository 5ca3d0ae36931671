#include "expect.h"

#include "base/clock.h"

static void a_stepped_clock_stands_still(void **state) {
    (void)state;
    rp_clock clock = rp_clock_stepped(5);
    assert_int_equal(rp_clock_now_ns(&clock), 5);
    clock.stepped_ns += RP_NS_PER_MS;
    assert_int_equal(rp_clock_now_ns(&clock), 1000005);
}

static void the_real_clock_moves_forward(void **state) {
    (void)state;
    rp_clock clock = rp_clock_real();
    int64_t first = rp_clock_now_ns(&clock);
    int64_t second = rp_clock_now_ns(&clock);
    assert_true(first > 0 && second >= first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stepped_clock_stands_still),
        cmocka_unit_test(the_real_clock_moves_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
