/* Texts from files: which are UTF-8, and how those that are not look in a message. */
#include "expect.h"

#include "base/json_print.h"
#include "base/utf8.h"

static void valid_and_invalid(void **state) {
    (void)state;
    static const char *const valid[] = {"", "plain", "gr\xc3\xb6\xc3\x9f", "\xf0\x9f\x90\x8c",
                                        "a\tb"};
    static const char *const invalid[] = {"gr\xf6\xdf", "\xc3", "\xc0\xaf", "\xed\xa0\x80",
                                          "\xf5\x80\x80\x80"};
    for (size_t i = 0; i < sizeof valid / sizeof *valid; i++) {
        assert_true(rp_utf8_is_valid(valid[i]));
    }
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
        assert_false(rp_utf8_is_valid(invalid[i]));
    }
}

static void shown(void **state) {
    (void)state;
    char out[32];
    assert_string_equal(rp_utf8_show("gr\xf6\xdf", 20, out, sizeof out), "gr\\xf6\\xdf");
    assert_string_equal(rp_utf8_show("gr\xc3\xb6", 20, out, sizeof out), "gr\xc3\xb6");
    assert_string_equal(rp_utf8_show("a\x1b[31m", 20, out, sizeof out), "a\\u001b[31m");
    assert_string_equal(rp_utf8_show("abcdef", 3, out, sizeof out), "abc");
    assert_string_equal(rp_utf8_show("abcdef", 20, out, 4), "abc");
    assert_string_equal(rp_utf8_show("ab\x1b", 20, out, 8), "ab"); /* no half of it */
    assert_string_equal(rp_utf8_show("abcdef", 20, out, 1), "");
}

static void paths_in_json(void **state) {
    (void)state;
    static const char *const paths[][2] = {{"m\xf6re/\xc3\xbc.csv", "m\\xf6re/\xc3\xbc.csv"},
                                           {"a\nb\xc3\xb6", "a\nb\xc3\xb6"}};
    for (size_t i = 0; i < 2; i++) {
        json_t *path = rp_json_path(paths[i][0]);
        assert_string_equal(json_string_value(path), paths[i][1]);
        json_decref(path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_and_invalid),
        cmocka_unit_test(shown),
        cmocka_unit_test(paths_in_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
