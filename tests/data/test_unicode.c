/* UTF-8 is read as RFC 3629 says, and classes of characters are those of Python 3.11. */
#include "expect.h"

#include <string.h>

#include "data/unicode.h"

static void every_character_comes_back(void **state) {
    (void)state;
    uint32_t characters = 0;
    for (uint32_t code = 0; code < RP_UNICODE_END; code++) {
        char text[RP_UNICODE_BYTES_MAX];
        uint32_t got = UINT32_MAX;
        const uint32_t bytes = rp_unicode_write(code, text);
        const bool surrogate = code >= 0xd800 && code < 0xe000;
        assert_int_equal(rp_unicode_read(text, text + bytes, &got), surrogate ? 0 : bytes);
        assert_int_equal(rp_unicode_read(text, text + bytes - 1, &got), 0); /* cut off */
        assert_true(surrogate || got == code || bytes == 1);
        characters += !surrogate;
    }
    assert_int_equal(characters, 0x110000 - 0x800);
}

static void other_bytes_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"\x80",
                                      "\xbf",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xc3(",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xe2\x82(",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf8\x88\x80\x80",
                                      "\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint32_t code;
        assert_int_equal(rp_unicode_read(bad[i], bad[i] + strlen(bad[i]), &code), 0);
    }
}

/* Counts and sums over all characters, from Python:
 *   sum(c.isspace() for c in all), and so on; isalnum() or category M or '_' for words. */
static void classes_of_characters(void **state) {
    (void)state;
    static const uint32_t words[] = {'_', '0', 'z', 0xe4, 0x3b1, 0x416, 0x5d0, 0x301, 0x4e2d, 0xb2};
    static const uint32_t marks[] = {'-', '\'', '$', 0xa0, 0xd7, 0x2019, 0x20ac, 0x3002, 0x1f600};
    uint32_t spaces = 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        assert_true(rp_unicode_is_word(words[i]));
    }
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        assert_false(rp_unicode_is_word(marks[i]));
    }
    for (uint32_t code = 0; code < RP_UNICODE_END; code++) {
        spaces += rp_unicode_is_space(code);
        sum += rp_unicode_is_space(code) ? code : 0;
        assert_false(rp_unicode_is_space(code) && rp_unicode_is_word(code));
    }
    assert_int_equal(spaces, 29);
    assert_int_equal(sum, 141704);
}

static void lower_case(void **state) {
    (void)state;
    static const uint32_t pairs[][2] = {
        {'A', 'a'},     {'z', 'z'},         {'[', '['},      {0xc4, 0xe4},
        {0xd7, 0xd7},   {0xdf, 0xdf},       {0x100, 0x101},  {0x101, 0x101},
        {0x178, 0xff},  {0x391, 0x3b1},     {0x410, 0x430},  {0x130, 0x130},
        {0x1e9e, 0xdf}, {0x10400, 0x10428}, {0x23a, 0x2c65}, {0x4e2d, 0x4e2d}};
    uint32_t changed = 0;
    uint64_t sum = 0;
    const char *out;
    size_t bytes;
    rp_arena arena;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(rp_unicode_lower(pairs[i][0]), pairs[i][1]);
    }
    for (uint32_t code = 0; code < RP_UNICODE_END; code++) {
        changed += rp_unicode_lower(code) != code;
        sum += rp_unicode_lower(code);
    }
    assert_int_equal(changed, 1432);
    assert_true(sum == UINT64_C(620624909275));
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_unicode_lower_text(&arena, "\xc3\x84 \xc8\xba!", 6, &out, &bytes));
    assert_int_equal(bytes, 7); /* one of the letters takes more bytes */
    assert_memory_equal(out, "\xc3\xa4 \xe2\xb1\xa5!", 7);
    rp_arena_finish(&arena);
}

static void expect_nfc(const char *text, size_t bytes) {
    assert_int_equal(rp_unicode_nfc_bytes(text, strlen(text)), bytes);
}

/* Counts and sums are Python's. */
static void normal_form_c(void **state) {
    (void)state;
    uint32_t changed = 0;
    uint64_t sum = 0;
    for (uint32_t code = 1; code < RP_UNICODE_END; code++) {
        char text[RP_UNICODE_BYTES_MAX];
        const uint32_t bytes = rp_unicode_write(code, text);
        if ((code < 0xd800 || code >= 0xe000) && rp_unicode_nfc_bytes(text, bytes) < bytes) {
            changed++;
            sum += code;
        }
    }
    assert_int_equal(changed, 1120);
    assert_true(sum == UINT64_C(139119398));
    expect_nfc("", 0);
    expect_nfc("na\xc3\xafve", 6);
    expect_nfc("nai\xcc\x88ve", 3);            /* i and diaeresis */
    expect_nfc("q\xcc\x87\xcc\xa3", 3);        /* marks in the wrong order */
    expect_nfc("q\xcc\xa3\xcc\x87", 5);        /* in order; no such letter is composed */
    expect_nfc("a\xcc\xa3", 1);                /* a with a dot below */
    expect_nfc("\xc3\xa9\xcc\xa3", 2);         /* e with acute and a dot below: e, dot, acute */
    expect_nfc("\xcc\x81", 2);                 /* a mark alone */
    expect_nfc("\xe1\x84\x80\xe1\x85\xa1", 3); /* parts of a Hangul syllable */
    expect_nfc("\xea\xb0\x80\xe1\x86\xa8", 3);
    expect_nfc("\xea\xb0\x81\xe1\x86\xa8", 6); /* it has a tail already */
    expect_nfc("\xe2\x84\xaa", 0);             /* the sign of Kelvin */
    expect_nfc("\xe0\xa6\x95\xe0\xa6\xbe", 6); /* Bengali ka, aa */
    expect_nfc("\xe0\xa7\x87\xe0\xa6\xbe", 3); /* Bengali e, aa: o */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character_comes_back),
        cmocka_unit_test(other_bytes_are_refused),
        cmocka_unit_test(classes_of_characters),
        cmocka_unit_test(lower_case),
        cmocka_unit_test(normal_form_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
