#include <unistd.h>

#include "base/log.h"
#include "expect.h"
#include "transport/loop.h"

static void poll_sleeps_until_the_deadline(void **state) {
    (void)state;
    rp_clock clock = rp_clock_real();
    rp_loop loop = rp_loop_poll(&clock);
    const int64_t began = rp_loop_now_ns(&loop);
    expect_ok(loop.wait(&loop, began + 30 * RP_NS_PER_MS, NULL, 0));
    assert_in_range(rp_loop_now_ns(&loop) - began, 30 * RP_NS_PER_MS, 2 * RP_NS_PER_S);
    const int64_t again = rp_loop_now_ns(&loop);
    expect_ok(loop.wait(&loop, INT64_MIN, NULL, 0)); /* is over */
    assert_true(rp_loop_now_ns(&loop) - again < RP_NS_PER_S);
}

static void poll_sees_descriptors(void **state) {
    (void)state;
    rp_clock clock = rp_clock_real();
    rp_loop loop = rp_loop_poll(&clock);
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    const rp_handle handle = {.fd = fds[0]};
    const int64_t began = rp_loop_now_ns(&loop);
    expect_ok(loop.wait(&loop, began + 30 * RP_NS_PER_MS, &handle, 1));
    assert_true(rp_loop_now_ns(&loop) - began >= 30 * RP_NS_PER_MS);
    assert_int_equal(write(fds[1], "x", 1), 1);
    expect_ok(loop.wait(&loop, INT64_MAX, &handle, 1));
    assert_true(rp_loop_now_ns(&loop) - began < 5 * RP_NS_PER_S);
    (void)close(fds[0]);
    (void)close(fds[1]);
    rp_handle many[RP_LOOP_HANDLES_MAX + 1] = {0};
    expect_err(loop.wait(&loop, 0, many, RP_LOOP_HANDLES_MAX + 1), RP_ERR_LIMIT);
}

static void virtual_time_is_the_deadline(void **state) {
    (void)state;
    rp_clock clock = rp_clock_stepped(5);
    rp_loop loop = rp_loop_virtual(&clock);
    expect_ok(loop.wait(&loop, 1000, NULL, 0));
    assert_int_equal(rp_loop_now_ns(&loop), 1000);
    expect_ok(loop.wait(&loop, 10, NULL, 0)); /* never back */
    assert_int_equal(clock.stepped_ns, 1000);
    expect_err(loop.wait(&loop, INT64_MAX, NULL, 0), RP_ERR_FAULT);
    assert_int_equal(clock.stepped_ns, 1000);
}

int main(void) {
    rp_log_setup(RP_LOG_ERROR, "test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(poll_sleeps_until_the_deadline),
        cmocka_unit_test(poll_sees_descriptors),
        cmocka_unit_test(virtual_time_is_the_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
