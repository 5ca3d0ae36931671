#include "expect.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folders.h"

static char dir[64] = "/tmp/rp-test-folders-XXXXXX";

static unsigned mode_of(const char *path) {
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return (unsigned)status.st_mode & 0777;
}

static void all_parts_are_made(void **state) {
    (void)state;
    static const char *const parts[] = {"a/b/c", "a/b", "a"};
    char path[128];
    (void)snprintf(path, sizeof path, "%s/a", dir);
    expect_ok(rp_folders_make(path, 0755));
    assert_int_equal(mode_of(path), 0755);
    (void)snprintf(path, sizeof path, "%s/a//b/c/", dir);
    expect_ok(rp_folders_make(path, 0700));
    expect_ok(rp_folders_make(path, 0700)); /* again: nothing to do */
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, parts[i]);
        assert_int_equal(mode_of(path), i < 2 ? 0700 : 0755); /* `a` keeps its own */
        assert_int_equal(rmdir(path), 0);
    }
}

static void what_is_in_the_way_is_named(void **state) {
    (void)state;
    char file[128];
    char path[160];
    char longest[RP_FOLDERS_PATH_BYTES + 1];
    (void)snprintf(file, sizeof file, "%s/file", dir);
    FILE *made = fopen(file, "w");
    assert_non_null(made);
    (void)fclose(made);
    expect_err(rp_folders_make(file, 0700), RP_ERR_USAGE);
    (void)snprintf(path, sizeof path, "%s/below", file);
    expect_err(rp_folders_make(path, 0700), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), file));
    assert_int_equal(unlink(file), 0);
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    expect_err(rp_folders_make(longest, 0700), RP_ERR_USAGE);
    expect_err(rp_folders_make("", 0700), RP_ERR_USAGE);
    expect_err(rp_folders_make("/proc/none/x", 0700), RP_ERR_IO);
}

static void links_in_place_of_a_folder_are_not_followed(void **state) {
    (void)state;
    char target[128];
    char link[128];
    (void)snprintf(target, sizeof target, "%s/target", dir);
    (void)snprintf(link, sizeof link, "%s/link", dir);
    expect_ok(rp_folders_make_own(target, 0700));
    expect_ok(rp_folders_make_own(target, 0700));
    assert_int_equal(symlink(target, link), 0);
    expect_err(rp_folders_make_own(link, 0700), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "link: is a symbolic link"));
    assert_null(rp_folders_open(link));
    assert_int_equal(errno, ELOOP);
    DIR *opened = rp_folders_open(target);
    assert_non_null(opened);
    assert_int_equal(closedir(opened), 0);
    assert_int_equal(unlink(link) + rmdir(target), 0);
}

int main(void) {
    if (!mkdtemp(dir)) {
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_parts_are_made),
        cmocka_unit_test(what_is_in_the_way_is_named),
        cmocka_unit_test(links_in_place_of_a_folder_are_not_followed),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)rmdir(dir);
    return failed;
}
