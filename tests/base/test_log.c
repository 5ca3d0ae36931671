#include "base/log.h"

#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "expect.h"

/* What the three lines below are on standard error. */
static void read_lines(char *out, size_t bytes) {
    FILE *file = tmpfile();
    const int standard_error = dup(STDERR_FILENO);
    assert_non_null(file);
    assert_true(standard_error >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    (void)rp_fail(RP_ERR_USAGE, "run.yaml:3: no key '%s'", "bach");
    rp_log_warn("slow");
    rp_log_info("fetching");
    assert_true(dup2(standard_error, STDERR_FILENO) >= 0);
    (void)close(standard_error);
    rewind(file);
    out[fread(out, 1, bytes - 1, file)] = '\0';
    (void)fclose(file);
}

static void a_journal_has_clock_name_and_room(void **state) {
    (void)state;
    char text[512];
    rp_log_setup(RP_LOG_INFO, "board-1");
    read_lines(text, sizeof text);
    assert_non_null(strstr(text, " board-1 base error: run.yaml:3: no key 'bach'\n"));
    assert_non_null(strstr(text, " board-1 base warn: slow\n"));
    assert_int_equal(text[2], ':'); /* the clock */
}

static void a_program_that_is_called_says_its_name(void **state) {
    (void)state;
    char text[512];
    rp_log_setup_plain("ringpipe");
    rp_log_setup(RP_LOG_INFO, "");
    read_lines(text, sizeof text);
    assert_string_equal(text, "ringpipe: run.yaml:3: no key 'bach'\n"
                              "ringpipe: warning: slow\n"
                              "ringpipe: note: fetching\n");
    rp_log_setup(RP_LOG_DEBUG, "");
    read_lines(text, sizeof text);
    assert_non_null(strstr(text, " base error: run.yaml:3: no key 'bach' ("));
}

/* A service's lines have priorities; those of a file that is not the journal's have none. */
static void the_journal_gets_priorities(void **state) {
    (void)state;
    char name[64];
    char text[512];
    struct stat status;
    FILE *file = tmpfile();
    const int standard_error = dup(STDERR_FILENO);
    rp_log_setup_plain("ringpipe");
    rp_log_setup(RP_LOG_INFO, "");
    assert_int_equal(setenv("JOURNAL_STREAM", "1:2", 1), 0);
    read_lines(text, sizeof text);
    assert_memory_equal(text, "ringpipe: run", 13);
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &status), 0);
    (void)snprintf(name, sizeof name, "%ju:%ju", (uintmax_t)status.st_dev,
                   (uintmax_t)status.st_ino);
    assert_int_equal(setenv("JOURNAL_STREAM", name, 1), 0);
    assert_true(standard_error >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    rp_log_error("one");
    rp_log_warn("two");
    rp_log_info("three");
    assert_true(dup2(standard_error, STDERR_FILENO) >= 0);
    (void)close(standard_error);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    assert_string_equal(text, "<3>ringpipe: one\n<4>ringpipe: warning: two\n"
                              "<6>ringpipe: note: three\n");
    assert_int_equal(unsetenv("JOURNAL_STREAM"), 0);
}

static void a_long_line_is_cut(void **state) {
    (void)state;
    static char text[2048];
    char word[700] = {0};
    memset(word, 'x', sizeof word - 1);
    rp_log_setup_plain("ringpipe");
    rp_log_setup(RP_LOG_INFO, "");
    FILE *file = tmpfile();
    const int standard_error = dup(STDERR_FILENO);
    assert_non_null(file);
    assert_true(standard_error >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    rp_log_error("%s", word);
    assert_true(dup2(standard_error, STDERR_FILENO) >= 0);
    (void)close(standard_error);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    assert_memory_equal(text, "ringpipe: xxx", 13);
    assert_true(strlen(text) > 400 && strlen(text) < 530);
}

/* Last: a choice stays. The environment would say something else. */
static void a_command_line_comes_first(void **state) {
    (void)state;
    char text[512];
    assert_int_equal(setenv("RP_LOG", "info", 1), 0);
    rp_log_setup_plain("ringpipe");
    rp_log_choose(RP_LOG_ERROR);
    rp_log_setup(RP_LOG_INFO, "");
    read_lines(text, sizeof text);
    assert_string_equal(text, "ringpipe: run.yaml:3: no key 'bach'\n");
    rp_log_setup(RP_LOG_NOTHING, "");
    read_lines(text, sizeof text);
    assert_string_equal(text, "");
    rp_log_choose(RP_LOG_DEBUG);
    rp_log_setup(RP_LOG_NOTHING, "");
    read_lines(text, sizeof text);
    assert_non_null(strstr(text, " base info: fetching ("));
    assert_int_equal(unsetenv("RP_LOG"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_journal_has_clock_name_and_room),
        cmocka_unit_test(a_program_that_is_called_says_its_name),
        cmocka_unit_test(the_journal_gets_priorities),
        cmocka_unit_test(a_long_line_is_cut),
        cmocka_unit_test(a_command_line_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
