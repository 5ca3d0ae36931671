#include <ctype.h>

#include "base/config.h"
#include "expect.h"
#include "transport/keys.h"

/* Z85 by ZeroMQ RFC 32, words and fingerprints by BIP 350's own reference code in Python. */
static const struct {
    const char *z85, *word, *secret, *fingerprint;
} golden[] = {
    {"0000000000000000000000000000000000000000",
     "rpk1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqmtx05s",
     "rpsecret1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq40wr0u", "ve58-4t0c-v27h-wmy0"},
    {"009c61o!#m2NH?C3>iWS5d]J*6CRx17-skh9337x",
     "rpk1qqqsyqcyq5rqwzqfpg9scrgwpugpzysnzs23v9ccrydpk8qarc0sjldd5f",
     "rpsecret1qqqsyqcyq5rqwzqfpg9scrgwpugpzysnzs23v9ccrydpk8qarc0sum9p09", "vvxu-62tx-csek-dygj"},
    {"%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0",
     "rpk1lllllllllllllllllllllllllllllllllllllllllllllllllllse497a8",
     "rpsecret1lllllllllllllllllllllllllllllllllllllllllllllllllllsh3djxt", "47tp-xas0-wf34-l0d5"},
};
enum { GOLDEN = sizeof golden / sizeof *golden };

static void expect_wrong(const char *text, const char *part) {
    char out[RP_KEY_TEXT] = "unchanged";
    const char *wrong = rp_key_parse(text, out);
    assert_non_null(wrong);
    assert_string_equal(out, "unchanged");
    if (!strstr(wrong, part)) {
        fail_msg("'%s': got '%s', expected '%s'", text, wrong, part);
    }
}

static void words_are_those_of_the_reference(void **state) {
    (void)state;
    for (size_t i = 0; i < GOLDEN; i++) {
        char word[RP_KEY_WORD];
        char secret[RP_KEY_SECRET_WORD];
        char fingerprint[RP_KEY_FINGERPRINT];
        char z85[RP_KEY_TEXT];
        rp_key_write(golden[i].z85, word);
        rp_key_write_secret(golden[i].z85, secret);
        rp_key_fingerprint(golden[i].z85, fingerprint);
        assert_string_equal(word, golden[i].word);
        assert_string_equal(secret, golden[i].secret);
        assert_string_equal(fingerprint, golden[i].fingerprint);
        assert_null(rp_key_parse(word, z85));
        assert_string_equal(z85, golden[i].z85);
        assert_null(rp_key_parse_secret(secret, z85));
        assert_string_equal(z85, golden[i].z85);
        assert_null(rp_key_parse(golden[i].z85, z85)); /* the older form */
        assert_string_equal(z85, golden[i].z85);
    }
}

static void a_wrong_character_is_found(void **state) {
    (void)state;
    static const char alphabet[] = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    const char *word = golden[1].word;
    char text[RP_KEY_WORD + 1];
    for (size_t at = 4; at < RP_KEY_WORD - 1; at++) {
        for (const char *c = alphabet; *c; c++) {
            memcpy(text, word, RP_KEY_WORD);
            text[at] = *c;
            if (*c != word[at]) {
                expect_wrong(text, "checksum");
            }
        }
        memcpy(text, word, RP_KEY_WORD);
        text[at] = text[at + 1] ? text[at + 1] : text[at];
        text[at + 1] = text[at + 1] ? word[at] : '\0';
        if (strcmp(text, word) != 0) {
            expect_wrong(text, "checksum"); /* two neighbours swapped */
        }
        memcpy(text, word, at);
        memcpy(text + at, word + at + 1, RP_KEY_WORD - at - 1);
        expect_wrong(text, "too short");
    }
    (void)snprintf(text, sizeof text, "%sq", word);
    expect_wrong(text, "too long");
}

static void what_is_no_key_is_told_apart(void **state) {
    (void)state;
    char z85[RP_KEY_TEXT];
    char text[RP_KEY_SECRET_WORD];
    expect_wrong("", "not a public key");
    expect_wrong("rpk", "not a public key");
    expect_wrong("rpk1", "too short");
    expect_wrong("\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"",
                 "not a public key"); /* 40 characters that Z85 does not have */
    expect_wrong(golden[1].secret, "secret key");
    (void)snprintf(text, sizeof text, "%s", golden[1].word);
    text[20] = 'b'; /* not of the alphabet */
    expect_wrong(text, "such texts never have");
    /* Right but for its last 4 bits, which are no part of the key. */
    expect_wrong("rpk1qqqsyqcyq5rqwzqfpg9scrgwpugpzysnzs23v9ccrydpk8qarc030fecfm", "bits");
    assert_non_null(rp_key_parse_secret(golden[1].word, z85));
    assert_non_null(rp_key_parse_secret("", z85));
    for (size_t i = 0; i < RP_KEY_WORD; i++) {
        text[i] = (char)toupper((unsigned char)golden[1].word[i]);
    }
    assert_null(rp_key_parse(text, z85));
    assert_string_equal(z85, golden[1].z85);
    text[10] = (char)tolower((unsigned char)text[10]);
    expect_wrong(text, "capital");
}

/* Of 60 fresh Z85 texts 49 were something else there. */
static void yaml_takes_it_without_quotes(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++) {
        rp_arena arena;
        rp_node *root;
        rp_keypair keys;
        char word[RP_KEY_WORD];
        char text[128];
        char z85[RP_KEY_TEXT];
        const char *read = "";
        rp_arena_init(&arena, "test", 0);
        expect_ok(rp_keys_make(&keys));
        rp_key_write(keys.public_text, word);
        (void)snprintf(text, sizeof text, "{name: left, key: %s}\n", word);
        expect_ok(rp_config_read_text(&arena, text, strlen(text), "test", &root));
        expect_ok(rp_node_string(root, "key", &read));
        assert_null(rp_key_parse(read, z85));
        assert_string_equal(z85, keys.public_text);
        /* Nothing that a shell or a web address takes for something else. */
        assert_int_equal(strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789"), strlen(word));
        rp_arena_finish(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_those_of_the_reference),
        cmocka_unit_test(a_wrong_character_is_found),
        cmocka_unit_test(what_is_no_key_is_told_apart),
        cmocka_unit_test(yaml_takes_it_without_quotes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
