#include "expect.h"

#include "base/shell.h"

static void words_are_quoted_where_they_must(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"runs/a-1.yaml", "runs/a-1.yaml"},
        {"tcp://[::1]:7000", "'tcp://[::1]:7000'"},
        {"", "''"},
        {"a b", "'a b'"},
        {"$HOME", "'$HOME'"},
        {"it's", "'it'\\''s'"},
        {"'", "''\\'''"},
        {"a;b", "'a;b'"},
        {"~/x", "'~/x'"},
        {"gr\303\274n", "'gr\303\274n'"},
        {"a\nb", "'a\nb'"},
    };
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *word;
        expect_ok(rp_shell_word(&arena, cases[i][0], &word));
        assert_string_equal(word, cases[i][1]);
    }
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_are_quoted_where_they_must)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
