#include "../../host/cli/probe.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "expect.h"

static rp_arena arena;

static rp_err work(const rp_probe *probe, const void *context, FILE *result) {
    const char *what = context;
    const struct rlimit no_core = {0};
    (void)setrlimit(RLIMIT_CORE, &no_core);
    rp_probe_say(probe, "opening");
    rp_probe_say(probe, "measuring");
    if (strcmp(what, "abort") == 0) {
        (void)raise(SIGABRT);
    }
    while (strcmp(what, "hang") == 0) {
        (void)pause();
    }
    if (strcmp(what, "leave") == 0) {
        _exit(0);
    }
    if (strcmp(what, "exit") == 0) {
        _exit(1); /* as a compiler does that can not write */
    }
    if (strcmp(what, "refuse") == 0) {
        return rp_fail(RP_ERR_USAGE, "no such board");
    }
    for (int i = 0; strcmp(what, "flood") == 0 && i < 100000; i++) {
        (void)fputs("0123456789", result);
    }
    (void)fputs("{\"a\": 1}", result);
    return RP_OK;
}

static rp_err run(const char *what, double seconds, char **out) {
    return rp_probe_run(&arena, seconds, work, what, out);
}

static void a_result_comes_back(void **state) {
    (void)state;
    char *text = NULL;
    expect_ok(run("work", 30, &text));
    assert_string_equal(text, "{\"a\": 1}");
}

static void a_child_that_dies_is_an_error_of_the_device(void **state) {
    (void)state;
    char *text = NULL;
    expect_err(run("abort", 30, &text), RP_ERR_DEVICE);
    assert_non_null(strstr(rp_err_message(), "signal 6"));
    assert_non_null(strstr(rp_err_message(), "while measuring"));
    expect_err(run("leave", 30, &text), RP_ERR_DEVICE);
    assert_non_null(strstr(rp_err_message(), "while measuring"));
    expect_err(run("exit", 30, &text), RP_ERR_DEVICE);
    assert_non_null(strstr(rp_err_message(), "exit code 1 while measuring"));
    assert_null(text);
}

static void a_child_that_hangs_is_ended(void **state) {
    (void)state;
    char *text = NULL;
    expect_err(run("hang", 0.2, &text), RP_ERR_DEVICE);
    assert_non_null(strstr(rp_err_message(), "no answer"));
    assert_null(text);
}

static void its_own_error_keeps_its_exit_code(void **state) {
    (void)state;
    char *text = NULL;
    assert_int_equal(rp_err_exit_code(run("refuse", 30, &text)), 2);
}

static void a_flood_is_cut(void **state) {
    (void)state;
    char *text = NULL;
    expect_ok(run("flood", 30, &text));
    assert_true(strlen(text) <= RP_PROBE_BYTES_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_comes_back),
        cmocka_unit_test(a_child_that_dies_is_an_error_of_the_device),
        cmocka_unit_test(a_child_that_hangs_is_ended),
        cmocka_unit_test(its_own_error_keeps_its_exit_code),
        cmocka_unit_test(a_flood_is_cut),
    };
    rp_arena_init(&arena, "test", 0);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rp_arena_finish(&arena);
    return failed;
}
