#include <ctype.h>

#include "expect.h"
#include "transport/token.h"

/* Seed 0, 1, .. 15 and the host key 0, 1, .. 31. The word by BIP 350's reference code in Python,
 * the pair by hashlib.blake2b and RFC 7748's X25519 written out in Python. */
static const char golden_word[] = "rpt1qqqsyqcyq5rqwzqfpg9scrgwpuqqzqsrqszsvpc"
                                  "gpy9qkrqdpc83qygjzv2p29shrqv35xcur50p7wnyesd";
static const char golden_public[] =
    "rpk1lgt5tackpx6lklpw4pxytdu9fv9cu35l9mn5h6tr2ay4pjf6tuus0zq08t";
static const char golden_host[] = "009c61o!#m2NH?C3>iWS5d]J*6CRx17-skh9337x";

static rp_token golden_token(void) {
    rp_token token;
    for (uint8_t i = 0; i < RP_TOKEN_SEED; i++) {
        token.seed[i] = i;
    }
    memcpy(token.host, golden_host, sizeof token.host);
    return token;
}

static void the_word_is_that_of_the_reference(void **state) {
    (void)state;
    const rp_token token = golden_token();
    rp_token back;
    char word[RP_TOKEN_WORD];
    rp_token_write(&token, word);
    assert_string_equal(word, golden_word);
    assert_null(rp_token_parse(word, &back));
    assert_memory_equal(back.seed, token.seed, sizeof token.seed);
    assert_string_equal(back.host, token.host);
    for (char *at = word; *at; at++) {
        *at = (char)toupper((unsigned char)*at);
    }
    assert_null(rp_token_parse(word, &back));
    assert_string_equal(back.host, token.host);
}

static void the_pair_follows_from_the_seed(void **state) {
    (void)state;
    rp_token token = golden_token();
    rp_keypair pair;
    char word[RP_KEY_WORD];
    rp_token_keys(&token, &pair);
    rp_key_write(pair.public_text, word);
    assert_string_equal(word, golden_public);
    token.seed[15] ^= 1;
    rp_token_keys(&token, &pair);
    rp_key_write(pair.public_text, word);
    assert_string_not_equal(word, golden_public);
}

static void two_tokens_are_never_the_same(void **state) {
    (void)state;
    rp_token one;
    rp_token other;
    rp_token_new(golden_host, &one);
    rp_token_new(golden_host, &other);
    assert_memory_not_equal(one.seed, other.seed, sizeof one.seed);
}

static void what_was_copied_wrongly_is_found(void **state) {
    (void)state;
    rp_token out;
    char text[RP_TOKEN_WORD + 1];
    for (size_t at = 4; at < RP_TOKEN_WORD - 1; at++) {
        memcpy(text, golden_word, RP_TOKEN_WORD);
        text[at] = text[at] == 'q' ? 'p' : 'q';
        assert_non_null(rp_token_parse(text, &out));
    }
    memcpy(text, golden_word, RP_TOKEN_WORD);
    text[RP_TOKEN_WORD - 2] = '\0';
    assert_non_null(strstr(rp_token_parse(text, &out), "too short"));
    (void)snprintf(text, sizeof text, "%sq", golden_word);
    assert_non_null(strstr(rp_token_parse(text, &out), "too long"));
    assert_non_null(strstr(rp_token_parse("rpk1", &out), "not a token"));
    assert_non_null(strstr(rp_token_parse("", &out), "not a token"));
    memcpy(text, golden_word, RP_TOKEN_WORD);
    text[10] = 'b';
    assert_non_null(strstr(rp_token_parse(text, &out), "such texts never have"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_word_is_that_of_the_reference),
        cmocka_unit_test(the_pair_follows_from_the_seed),
        cmocka_unit_test(two_tokens_are_never_the_same),
        cmocka_unit_test(what_was_copied_wrongly_is_found),
    };
    return cmocka_run_group_tests_name("token", tests, NULL, NULL);
}
