#include "base/log_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "expect.h"
#include "folder.h"

/* In a process of its own, for what is kept belongs to one. */
static void in_a_process(void (*does)(const char *path), const char *path) {
    int status = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        rp_log_setup(RP_LOG_NOTHING, "board");
        does(path);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define need(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%d: %s\n", __LINE__, #condition);                               \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void lines_have_numbers_and_levels(void **state) {
    (void)state;
    rp_log_line line;
    rp_log_setup(RP_LOG_NOTHING, "board");
    const uint64_t begin = rp_log_lines_end();
    rp_log_info("one");
    rp_log_debug("two");
    rp_log_error("three");
    assert_int_equal(rp_log_lines_end(), begin + 3);
    assert_int_equal(rp_log_newest_error(), begin + 2);
    assert_true(rp_log_line_from(begin, RP_LOG_INFO, &line));
    assert_int_equal(line.number, begin);
    assert_string_equal(line.text, "board base info: one");
    assert_true(line.time_ms > INT64_C(1600000000000));
    assert_true(rp_log_line_from(begin + 1, RP_LOG_INFO, &line)); /* not the debug line */
    assert_string_equal(line.text, "board base error: three");
    assert_true(rp_log_line_from(begin + 1, RP_LOG_DEBUG, &line));
    assert_string_equal(line.text, "board base debug: two");
    assert_false(rp_log_line_from(begin + 3, RP_LOG_DEBUG, &line));
    assert_int_equal(rp_log_lines_begin(2, RP_LOG_DEBUG), begin + 1);
    assert_int_equal(rp_log_lines_begin(2, RP_LOG_INFO), begin);
    assert_int_equal(rp_log_lines_begin(1, RP_LOG_ERROR), begin + 2);
}

static void old_lines_go(void **state) {
    (void)state;
    rp_log_line line;
    rp_log_setup(RP_LOG_NOTHING, "board");
    rp_log_error("the first");
    for (int i = 0; i < RP_LOG_LINES; i++) {
        rp_log_info("%d", i);
    }
    assert_int_equal(rp_log_newest_error(), 0);
    assert_true(rp_log_line_from(1, RP_LOG_DEBUG, &line));
    assert_int_equal(line.number, rp_log_lines_end() - RP_LOG_LINES);
    assert_int_equal(rp_log_lines_begin(RP_LOG_LINES + 9, RP_LOG_DEBUG), line.number);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void dies(const char *path) {
    need(rp_log_keep(path) == 0);
    rp_log_info("it works\non");
    rp_log_debug("of no importance");
    rp_log_error("the device is gone");
    /* without a word */
}

static void sees_that(const char *path) {
    static const char ended[] = "the previous process ended without a last line: it was killed, "
                                "has crashed, or the power failed";
    static const char *const words[] = {"board base info: early",
                                        "board base info: it works\\u000aon",
                                        "board base error: the device is gone", ended};
    rp_log_line line;
    uint64_t at = 0;
    rp_log_info("early"); /* of this process, before it knows the file */
    need(rp_log_keep(path) == 0);
    need(rp_log_line_from(at, RP_LOG_INFO, &line) && strcmp(line.text, words[1]) == 0);
    need(line.number == 1);
    at = line.number + 1;
    need(rp_log_line_from(at, RP_LOG_INFO, &line) && strcmp(line.text, words[2]) == 0);
    need(line.level == RP_LOG_ERROR);
    at = line.number + 1;
    need(rp_log_line_from(at, RP_LOG_INFO, &line) && strcmp(line.text, words[0]) == 0);
    at = line.number + 1;
    need(rp_log_line_from(at, RP_LOG_INFO, &line) && strcmp(line.text, words[3]) == 0);
    need(rp_log_newest_error() == line.number);
    need(rp_log_lines_end() == line.number + 1);
    rp_log_keep_end();
}

static void sees_an_end(const char *path) {
    rp_log_line line;
    need(rp_log_keep(path) == 0);
    const uint64_t end = rp_log_lines_end();
    need(rp_log_line_from(end - 1, RP_LOG_INFO, &line));
    need(strcmp(line.text, "the process ends") == 0);
    rp_log_info("again");
    need(rp_log_lines_end() == end + 1);
}

static void a_file_has_the_words_of_the_life_before(void **state) {
    (void)state;
    const char *path = in_folder("words");
    in_a_process(dies, path);
    in_a_process(sees_that, path);
    in_a_process(sees_an_end, path);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, RP_LOG_KEPT_LINES * RP_LOG_KEPT_BYTES);
    assert_int_equal(status.st_mode & 0777, 0600);
}

static void writes_much(const char *path) {
    need(rp_log_keep(path) == 0);
    for (int i = 0; i < 1000; i++) {
        rp_log_info("line %d %0300d", i, 7);
    }
    rp_log_keep_end();
}

static void sees_the_newest(const char *path) {
    rp_log_line line;
    need(rp_log_keep(path) == 0);
    need(rp_log_lines_end() == 1002);
    need(rp_log_line_from(0, RP_LOG_INFO, &line));
    need(line.number == 1002 - RP_LOG_KEPT_LINES);
    need(strncmp(line.text, "board base info: line 937 0000", 30) == 0);
    need(strlen(line.text) < RP_LOG_KEPT_BYTES);
}

static void a_file_stays_as_large_as_it_is(void **state) {
    (void)state;
    const char *path = in_folder("much");
    in_a_process(writes_much, path);
    in_a_process(sees_the_newest, path);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, RP_LOG_KEPT_LINES * RP_LOG_KEPT_BYTES);
}

static void sees_nothing(const char *path) {
    rp_log_line line;
    need(rp_log_keep(path) == 0);
    need(!rp_log_line_from(0, RP_LOG_DEBUG, &line));
    need(rp_log_lines_end() == 1);
    rp_log_keep_end();
}

/* Whatever lies there: bytes, records in wrong places, of numbers that leave no room. */
static void what_is_no_record_is_passed_over(void **state) {
    (void)state;
    static const char *const heads[] = {
        "000000000002 1700000000000 e in the place of another",
        "999999999937 1700000000000 e of a number that is too large",
        "00000000000x 1700000000000 e of no number",
        "000000000001 17000000x0000 e of no time",
        "000000000001 1700000000000 q of no level",
        "000000000001 1700000000000 effect",
        "000000000001",
        ""};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        char name[16];
        char bytes[2 * RP_LOG_KEPT_BYTES];
        (void)snprintf(name, sizeof name, "bad-%zu", i);
        const char *path = in_folder(name);
        memset(bytes, ' ', sizeof bytes);
        memcpy(bytes + RP_LOG_KEPT_BYTES, heads[i], strlen(heads[i]));
        bytes[2 * RP_LOG_KEPT_BYTES - 1] = '\n';
        const int fd = open(path, O_WRONLY | O_CREAT, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
        assert_int_equal(close(fd), 0);
        in_a_process(sees_nothing, path);
    }
}

static void a_path_that_can_not_be(void **state) {
    (void)state;
    assert_int_equal(rp_log_keep(in_folder("none/words")), ENOENT);
    assert_int_equal(symlink("far", in_folder("link")), 0);
    assert_int_equal(rp_log_keep(in_folder("link")), ELOOP);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_has_the_words_of_the_life_before),
        cmocka_unit_test(a_file_stays_as_large_as_it_is),
        cmocka_unit_test(what_is_no_record_is_passed_over),
        cmocka_unit_test(a_path_that_can_not_be),
        /* what these log would be in the processes above, too */
        cmocka_unit_test(lines_have_numbers_and_levels),
        cmocka_unit_test(old_lines_go),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
