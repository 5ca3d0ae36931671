/* Programs that are started with closed descriptors, on a full disk, into a pipe without a reader.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/process.h"
#include "expect.h"

/* The exit code of `body` in a process of its own, or 128 and the signal that ended it. */
static int run_child(int (*body)(void)) {
    int status = 0;
    (void)fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        _exit(body());
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int open_with_closed(void) {
    for (int fd = 0; fd <= 2; fd++) {
        (void)close(fd);
    }
    rp_process_begin();
    const int fd = open("/dev/null", O_RDONLY);
    return fd > 2 && write(1, "x", 1) == 1 && write(2, "x", 1) == 1 && fcntl(0, F_GETFD) == 0 ? 0
                                                                                              : 1;
}

static int keep_open(void) {
    int ends[2];
    char got = 0;
    if (pipe(ends) != 0 || dup2(ends[1], 1) < 0) {
        return 1;
    }
    rp_process_begin();
    return write(1, "y", 1) == 1 && read(ends[0], &got, 1) == 1 && got == 'y' ? 0 : 1;
}

static void test_closed_descriptors_are_opened(void **state) {
    (void)state;
    assert_int_equal(run_child(open_with_closed), 0);
    assert_int_equal(run_child(keep_open), 0);
}

static int write_beyond_limit(void) {
    const struct rlimit limit = {1, 1};
    char path[] = "/tmp/ringpipe-process-XXXXXX";
    const int fd = mkstemp(path);
    (void)unlink(path);
    (void)setrlimit(RLIMIT_FSIZE, &limit);
    rp_process_begin();
    return write(fd, "x", 1) == 1 && write(fd, "x", 1) == -1 && errno == EFBIG ? 0 : 1;
}

static void test_size_limit_is_an_error(void **state) {
    (void)state;
    assert_int_equal(run_child(write_beyond_limit), 0);
}

/* A pipe without a reader as standard output. */
static void lose_reader(void) {
    int ends[2];
    if (pipe(ends) == 0) {
        (void)dup2(ends[1], 1);
        (void)close(ends[0]);
        (void)close(ends[1]);
    }
}

static int go_on_without_reader(void) {
    lose_reader();
    rp_process_begin();
    (void)printf("result\n");
    return fflush(stdout) == EOF && errno == EPIPE ? 0 : 1;
}

static int end_without_reader(void) {
    lose_reader();
    rp_process_begin();
    (void)printf("result\n");
    return rp_process_end(0);
}

static int fail_without_reader(void) {
    lose_reader();
    rp_process_begin();
    (void)printf("result\n");
    return rp_process_end(3);
}

static int end_with_ignored_pipe(void) {
    (void)signal(SIGPIPE, SIG_IGN);
    return end_without_reader();
}

static void test_reader_that_has_gone(void **state) {
    (void)state;
    assert_int_equal(run_child(go_on_without_reader), 0);
    assert_int_equal(run_child(end_without_reader), 128 + SIGPIPE);
    assert_int_equal(run_child(fail_without_reader), 3);
    assert_int_equal(run_child(end_with_ignored_pipe), 2);
}

static int end_on_full_disk(size_t bytes, const char *expected) {
    const int full = open("/dev/full", O_WRONLY);
    (void)dup2(full, 1);
    rp_process_begin();
    for (size_t i = 0; i < bytes; i++) {
        (void)putchar('x');
    }
    const int code = rp_process_end(0);
    return strcmp(rp_err_message(), expected) == 0 && rp_process_end(0) == 0 ? code : 100;
}

static const char no_space[] = "standard output could not be written: No space left on device";

static int end_within_buffer(void) {
    return end_on_full_disk(10, no_space);
}

static int end_beyond_buffer(void) {
    return end_on_full_disk(1 << 20, no_space);
}

static int end_with_nothing(void) {
    return end_on_full_disk(0, "");
}

static void test_full_disk_is_said_once(void **state) {
    (void)state;
    assert_int_equal(run_child(end_within_buffer), 2);
    assert_int_equal(run_child(end_beyond_buffer), 2);
    assert_int_equal(run_child(end_with_nothing), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_descriptors_are_opened),
        cmocka_unit_test(test_size_limit_is_an_error),
        cmocka_unit_test(test_reader_that_has_gone),
        cmocka_unit_test(test_full_disk_is_said_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
