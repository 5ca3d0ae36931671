#include "expect.h"

#include <math.h>

#include "base/log_lines.h"

static void every_error_has_a_text_and_an_exit_code(void **state) {
    (void)state;
    for (int e = 0; e < RP_ERR_COUNT; e++) {
        assert_true(strlen(rp_err_text((rp_err)e)) > 0);
    }
    assert_int_equal(rp_err_exit_code(RP_OK), 0);
    assert_int_equal(rp_err_exit_code(RP_ERR_USAGE), 2);
    assert_int_equal(rp_err_exit_code(RP_ERR_PEER), 3);
    assert_int_equal(rp_err_exit_code(RP_ERR_DEVICE), 4);
    assert_int_equal(rp_err_exit_code(RP_ERR_REFUSED), 5);
    assert_int_equal(rp_err_exit_code(RP_ERR_INTERRUPTED), 130);
}

/* What a person has to change first is not transient; nor is a number that no error has. */
static void an_error_says_whether_trying_again_can_help(void **state) {
    (void)state;
    static const rp_err transient[] = {RP_ERR_TIMEOUT, RP_ERR_FAULT, RP_ERR_AGAIN};
    int count = 0;
    for (int e = 0; e < RP_ERR_COUNT + 3; e++) {
        count += rp_err_is_transient((rp_err)e);
        assert_false(rp_err_is_transient((rp_err)e) && rp_err_exit_code((rp_err)e) != 3);
    }
    assert_int_equal(count, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(rp_err_is_transient(transient[i]));
    }
}

static void fail_keeps_the_message(void **state) {
    (void)state;
    expect_err(rp_fail(RP_ERR_SHAPE, "C %u", 7u), RP_ERR_SHAPE);
    assert_string_equal(rp_err_message(), "C 7");
    expect_err(rp_fail(RP_ERR_SHAPE, "again: %s", rp_err_message()), RP_ERR_SHAPE);
    assert_string_equal(rp_err_message(), "again: C 7");
}

/* A caller that adds the place to a message logs it once. */
static void held_messages_are_not_logged(void **state) {
    (void)state;
    const uint64_t before = rp_log_lines_end();
    assert_false(rp_err_hold(true));
    expect_err(rp_fail(RP_ERR_SHAPE, "too wide"), RP_ERR_SHAPE);
    assert_true(rp_err_hold(false));
    assert_int_equal(rp_log_lines_end(), before);
    expect_err(rp_fail(RP_ERR_SHAPE, "net.yaml:3: %s", rp_err_message()), RP_ERR_SHAPE);
    assert_int_equal(rp_log_lines_end(), before + 1);
    assert_string_equal(rp_err_message(), "net.yaml:3: too wide");
}

/* The canary of every comparison in the tests: it has to ring. */
static void a_nan_is_close_to_nothing(void **state) {
    (void)state;
    assert_false(expect_is_close(NAN, NAN, 1, 1));
    assert_false(expect_is_close(NAN, 0, 1e30, 1e30));
    assert_false(expect_is_close(INFINITY, INFINITY, 1, 1));
    assert_false(expect_is_close(1.1, 1.0, 0.05, 0));
    assert_true(expect_is_close(1.04, 1.0, 0.05, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_a_text_and_an_exit_code),
        cmocka_unit_test(an_error_says_whether_trying_again_can_help),
        cmocka_unit_test(fail_keeps_the_message),
        cmocka_unit_test(held_messages_are_not_logged),
        cmocka_unit_test(a_nan_is_close_to_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
