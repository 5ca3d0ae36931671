#include "expect.h"

#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/share.h"

static const char variable[] = "RP_TEST_SHARE";

static void the_user_comes_first(void **state) {
    (void)state;
    assert_int_equal(setenv(variable, "mine", 1), 0);
    rp_share_announce(variable, "..");
    assert_string_equal(getenv(variable), "mine");
    assert_int_equal(unsetenv(variable), 0);
}

static void no_folder_changes_nothing(void **state) {
    (void)state;
    char *longest = calloc(PATH_MAX + 1, 1);
    assert_non_null(longest);
    memset(longest, 'x', PATH_MAX);
    rp_share_announce(variable, "no-such-folder");
    rp_share_announce(variable, longest);
    assert_null(getenv(variable));
    free(longest);
}

/* <folder of this program>/../share/ringpipe/<name>, without the dots. */
static void a_folder_is_found(void **state) {
    (void)state;
    static const char *const parts[] = {"share", "share/ringpipe", "share/ringpipe/rp-test"};
    char made[3][PATH_MAX + 32];
    char program[PATH_MAX] = "";
    int fresh[3];
    assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
    const char *tree = dirname(dirname(program));
    for (int i = 0; i < 3; i++) {
        (void)snprintf(made[i], sizeof made[i], "%s/%s", tree, parts[i]);
        fresh[i] = mkdir(made[i], 0700) == 0;
    }
    rp_share_announce(variable, "rp-test");
    for (int i = 2; i >= 0; i--) {
        if (fresh[i]) {
            (void)rmdir(made[i]);
        }
    }
    assert_non_null(getenv(variable));
    assert_string_equal(getenv(variable), made[2]);
    assert_int_equal(unsetenv(variable), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_user_comes_first),
        cmocka_unit_test(no_folder_changes_nothing),
        cmocka_unit_test(a_folder_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
