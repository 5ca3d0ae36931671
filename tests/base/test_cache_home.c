/* Homes that can not be written. Root may write anywhere, so that a file stands in for such a home.
 */
#include "folder.h"

#include <sys/stat.h>

#include "base/cache_home.h"

static void use(const char *home, const char *cache) {
    assert_int_equal(home ? setenv("HOME", home, 1) : unsetenv("HOME"), 0);
    assert_int_equal(cache ? setenv("XDG_CACHE_HOME", cache, 1) : unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(unsetenv("POCL_CACHE_DIR") + setenv("TMPDIR", folder, 1), 0);
}

static const char *name_temporary(void) {
    static char path[128];
    (void)snprintf(path, sizeof path, "%s/ringpipe-cache-%u", folder, (unsigned)geteuid());
    return path;
}

static void a_home_that_can_be_written_is_used(void **state) {
    (void)state;
    char usual[128];
    (void)snprintf(usual, sizeof usual, "%s/.cache", folder);
    use(folder, NULL);
    assert_string_equal(rp_cache_home(), usual);
    assert_int_equal(access(usual, F_OK), -1); /* nothing is made ahead */
    use("/nowhere", folder);
    assert_string_equal(rp_cache_home(), folder);
    assert_null(rp_cache_home_obstacle());
    assert_null(strstr(getenv("XDG_CACHE_HOME"), "ringpipe-cache"));
}

static void another_folder_takes_its_place(void **state) {
    (void)state;
    append("file", "x", 1);
    use(in_folder("file"), NULL);
    assert_non_null(rp_cache_home_obstacle());
    assert_string_equal(rp_cache_home(), name_temporary());
    assert_string_equal(getenv("XDG_CACHE_HOME"), name_temporary()); /* for PoCL, and children */
    assert_string_equal(rp_cache_home(), name_temporary());
    assert_null(rp_cache_home_obstacle());
    struct stat facts;
    assert_int_equal(stat(name_temporary(), &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0700);
    use(NULL, NULL);
    assert_string_equal(rp_cache_home(), name_temporary());
    assert_int_equal(rmdir(name_temporary()), 0);
}

/* One of PoCL's folders is enough: ~/.cache/pocl that once became another account's. */
static void the_drivers_own_folder_counts(void **state) {
    (void)state;
    append("pocl", "x", 1);
    use(NULL, folder);
    assert_string_equal(rp_cache_home(), name_temporary());
    use(NULL, folder);
    assert_int_equal(setenv("POCL_CACHE_DIR", folder, 1), 0);
    assert_string_equal(rp_cache_home(), folder);
    assert_int_equal(setenv("POCL_CACHE_DIR", in_folder("pocl"), 1), 0);
    assert_string_equal(rp_cache_home_obstacle(), in_folder("pocl"));
    assert_int_equal(rmdir(name_temporary()), 0);
}

static void a_folder_of_another_account_is_not_taken(void **state) {
    (void)state;
    append("file", "x", 1);
    use(in_folder("file"), NULL);
    assert_int_equal(symlink("/tmp", name_temporary()), 0);
    assert_string_equal(rp_cache_home(), "");
    assert_int_equal(unlink(name_temporary()) + mkdir(name_temporary(), 0777), 0);
    assert_int_equal(chmod(name_temporary(), 0777), 0);
    assert_string_equal(rp_cache_home(), "");
    assert_string_equal(rp_cache_home_obstacle() + strlen(folder), "/file/.cache");
    assert_int_equal(rmdir(name_temporary()), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_home_that_can_be_written_is_used, setup, teardown),
        cmocka_unit_test_setup_teardown(another_folder_takes_its_place, setup, teardown),
        cmocka_unit_test_setup_teardown(the_drivers_own_folder_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(a_folder_of_another_account_is_not_taken, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
