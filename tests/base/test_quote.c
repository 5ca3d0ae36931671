#include "expect.h"

#include "base/config.h"
#include "base/quote.h"

static const char *const cases[][2] = {
    {"", "\"\""},
    {"left-1", "\"left-1\""},
    {"a b: c # d", "\"a b: c # d\""},
    {"\", role: admin, x: \"", "\"\\\", role: admin, x: \\\"\""},
    {"C:\\n", "\"C:\\\\n\""},
    {"a\nb\tc\x1b[31m\x7f", "\"a\\u000ab\\u0009c\\u001b[31m\\u007f\""},
    {"gr\303\274n \360\237\230\200", "\"gr\303\274n \360\237\230\200\""},
    {"a\342\200\250b\357\273\277", "\"a\\u2028b\\ufeff\""},
};

/* What is written is read back as the same text, as YAML and so as JSON. */
static void a_quoted_text_is_read_as_it_was(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *quoted;
        const char *back = NULL;
        char *text;
        rp_node *root;
        expect_ok(rp_quote(&arena, cases[i][0], &quoted));
        assert_string_equal(quoted, cases[i][1]);
        expect_ok(rp_arena_printf(&arena, &text, "{key: %s}\n", quoted));
        expect_ok(rp_config_read_text(&arena, text, strlen(text), "text", &root));
        expect_ok(rp_node_string(root, "key", &back));
        assert_string_equal(back, cases[i][0]);
    }
    rp_arena_finish(&arena);
}

static void a_file_gets_the_same(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128] = "";
        FILE *file = fmemopen(text, sizeof text, "w");
        assert_non_null(file);
        rp_quote_put(file, cases[i][0]);
        assert_int_equal(fclose(file), 0);
        assert_string_equal(text, cases[i][1]);
    }
}

/* Room for the quotes and five bytes: what does not fit whole is left out. */
static void a_text_is_cut_between_characters(void **state) {
    (void)state;
    static const char *const cut[][2] = {{"abcdef", "\"abcde\""},
                                         {"abcd\"e", "\"abcd\""},
                                         {"abcd\303\274", "\"abcd\""},
                                         {"a\tb", "\"a\""},
                                         {"", "\"\""}};
    char out[8];
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        assert_string_equal(rp_quote_fit(cut[i][0], out, sizeof out), cut[i][1]);
    }
}

static void bytes_that_are_not_utf8_are_replaced(void **state) {
    (void)state;
    static const char *const wrong[] = {"\377", "\300\257", "\355\240\200", "\303", "\302\205"};
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *quoted;
        expect_ok(rp_quote(&arena, wrong[i], &quoted));
        assert_int_equal(strlen(quoted), 2 + 6 * strlen(wrong[i]));
        assert_memory_equal(quoted, "\"\\ufffd", 7);
        assert_int_equal(rp_printable_bytes(wrong[i]), 0);
    }
    rp_arena_finish(&arena);
}

static void a_plain_name_needs_no_quotes(void **state) {
    (void)state;
    assert_true(rp_is_plain_name("rk3588-a_1.B"));
    assert_true(rp_is_plain_name(""));
    assert_false(rp_is_plain_name("a b"));
    assert_false(rp_is_plain_name("a\"b"));
    assert_false(rp_is_plain_name("gr\303\274n"));
}

/* What a terminal would act on is shown; what it draws is left as it is. */
static void text_for_a_terminal(void **state) {
    (void)state;
    static const char *const shown[][2] = {
        {"gr\303\274n \360\237\230\200", "gr\303\274n \360\237\230\200"},
        {"a\x1b[2Jb\x7f\r", "a\\u001b[2Jb\\u007f\\u000d"},
        {"\302\2331m", "\\u009b1m"}, /* CSI in one character */
        {"\233\377\303", "\\x9b\\xff\\xc3"},
        {"a\n\tb", "a\\u000a\\u0009b"},
    };
    char out[64];
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        rp_printable(shown[i][0], false, out, sizeof out);
        assert_string_equal(out, shown[i][1]);
    }
    rp_printable("a\n\tb", true, out, sizeof out);
    assert_string_equal(out, "a\n\tb");
    rp_printable("ab\303\274", false, out, 4); /* no half of a character */
    assert_string_equal(out, "ab");
    rp_printable("ab\x1b", false, out, 8);
    assert_string_equal(out, "ab");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quoted_text_is_read_as_it_was),
        cmocka_unit_test(a_file_gets_the_same),
        cmocka_unit_test(a_text_is_cut_between_characters),
        cmocka_unit_test(text_for_a_terminal),
        cmocka_unit_test(bytes_that_are_not_utf8_are_replaced),
        cmocka_unit_test(a_plain_name_needs_no_quotes),
    };
    return cmocka_run_group_tests_name("quote", tests, NULL, NULL);
}
