/* Files that are replaced whole or not at all, and never through a symbolic link. */
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/replace.h"

static rp_err replace(const char *name, const char *text) {
    FILE *file = rp_replace_begin(in_folder(name));
    return rp_replace_end(file, in_folder(name), file && fputs(text, file) >= 0);
}

static void a_file_is_replaced(void **state) {
    (void)state;
    expect_ok(replace("a", "one"));
    expect_ok(replace("a", "two"));
    assert_string_equal(slurp("a", NULL), "two");
    assert_int_equal(access(in_folder("a.tmp"), F_OK), -1);
}

static void or_stays(void **state) {
    (void)state;
    expect_ok(replace("a", "one"));
    FILE *file = rp_replace_begin(in_folder("a"));
    assert_non_null(file);
    assert_true(fputs("two", file) >= 0);
    errno = ENOSPC;
    expect_err(rp_replace_end(file, in_folder("a"), false), RP_ERR_IO);
    assert_non_null(strstr(rp_err_message(), "a: cannot be written: No space left"));
    assert_string_equal(slurp("a", NULL), "one");
    assert_int_equal(access(in_folder("a.tmp"), F_OK), -1);
    expect_err(replace("none/a", "x"), RP_ERR_IO);
    assert_non_null(strstr(rp_err_message(), "No such file"));
}

/* For a caller that has another error to report: the temporary file is gone, and errno stays. */
static void or_is_abandoned(void **state) {
    (void)state;
    expect_ok(replace("a", "one"));
    FILE *file = rp_replace_begin(in_folder("a"));
    assert_non_null(file);
    assert_true(fputs("two", file) >= 0);
    errno = ENOSPC;
    rp_replace_abandon(file, in_folder("a"));
    rp_replace_abandon(NULL, in_folder("a"));
    assert_int_equal(errno, ENOSPC);
    assert_string_equal(slurp("a", NULL), "one");
    assert_int_equal(access(in_folder("a.tmp"), F_OK), -1);
}

/* A link in the place of what is written is not followed; one in the file's own place is replaced.
 */
static void links_are_not_followed(void **state) {
    (void)state;
    append("victim", "mine", 4);
    assert_int_equal(symlink("victim", in_folder("l.tmp")), 0);
    expect_err(replace("l", "x"), RP_ERR_IO);
    assert_non_null(strstr(rp_err_message(), "a symbolic link is not followed"));
    assert_int_equal(rp_replace_open(in_folder("l.tmp"), O_WRONLY | O_TRUNC), -1);
    assert_int_equal(symlink("victim", in_folder("k")), 0);
    expect_ok(replace("k", "x"));
    assert_string_equal(slurp("victim", NULL), "mine");
    struct stat facts;
    assert_int_equal(lstat(in_folder("k"), &facts), 0);
    assert_true(S_ISREG(facts.st_mode));
}

static void a_folder_is_synced(void **state) {
    (void)state;
    expect_ok(rp_replace_sync_folder(in_folder("any")));
    expect_err(rp_replace_sync_folder(in_folder("none/any")), RP_ERR_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_replaced, setup, teardown),
        cmocka_unit_test_setup_teardown(or_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(or_is_abandoned, setup, teardown),
        cmocka_unit_test_setup_teardown(links_are_not_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_folder_is_synced, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
