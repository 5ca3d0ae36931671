/* Vocabularies and stored ids of sizes that small texts do not have. */
#include "expect.h"

#include <string.h>

#include "data/ids.h"
#include "data/unicode.h"
#include "data/vocab.h"

enum { WORDS = 70000, TEXT_BYTES = WORDS * 8 };

/* Ids take 1, 2 or 4 bytes each, and come back as they were. */
static void ids_of_each_width(void **state) {
    (void)state;
    static const struct {
        uint32_t below, bytes;
    } cases[] = {{1, 1}, {256, 1}, {257, 2}, {65536, 2}, {65537, 4}, {RP_TOKENS_MAX, 4}};
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t most = cases[i].below - 1;
        int32_t out[3] = {-1, -1, -1};
        rp_ids ids;
        expect_ok(rp_ids_open(&arena, &ids, cases[i].below, 4));
        assert_int_equal(ids.bytes, cases[i].bytes);
        rp_ids_add(&ids, 0);
        rp_ids_add(&ids, most);
        rp_ids_add(&ids, most / 2);
        rp_ids_add(&ids, most);
        rp_ids_copy(&ids, 1, 2, out);
        assert_int_equal(out[0], most);
        assert_int_equal(out[1], most / 2);
        assert_int_equal(out[2], -1); /* nothing behind is written */
    }
    rp_arena_finish(&arena);
}

/* Word k of a text in which word k stands once more if k is a multiple of 1000. */
static size_t put_word(char *text, uint32_t k) {
    return (size_t)snprintf(text, 9, "w%06u ", k);
}

static void many_words(void **state) {
    (void)state;
    const rp_token_rules rules = {.kind = RP_TOKENS_WORDS};
    char word[9];
    rp_vocab_learner learner;
    rp_vocab vocab;
    rp_arena arena;
    char *text;
    size_t used = 0;
    rp_arena_init(&arena, "test", 0);
    expect_ok(RP_ARENA_NEW(&arena, 2 * TEXT_BYTES, &text));
    for (uint32_t k = WORDS; k-- > 0;) { /* not in the order of the ids */
        used += put_word(text + used, k);
        used += k % 1000 == 0 ? put_word(text + used, k) : 0;
    }
    assert_int_equal(rp_tokens_count(&rules, text, used), WORDS + WORDS / 1000);
    expect_ok(rp_vocab_begin(&arena, &rules, &learner));
    expect_ok(rp_vocab_learn(&learner, text, used));
    expect_ok(rp_vocab_finish(&arena, &learner, RP_TOKENS_SPECIAL, 60000, &vocab));
    assert_int_equal(vocab.count, 60000);
    uint32_t expected[2] = {RP_TOKENS_SPECIAL, RP_TOKENS_SPECIAL + WORDS / 1000};
    for (uint32_t k = 0; k < WORDS; k++) { /* frequent ones first, then by their bytes */
        const uint32_t id = expected[k % 1000 != 0]++;
        (void)put_word(word, k);
        const uint32_t found = rp_vocab_find(&vocab, word, 7);
        assert_int_equal(found, id < 60000 ? id : RP_TOKEN_UNKNOWN);
        assert_true(id >= 60000 || (strncmp(vocab.name[id], word, 7) == 0 && !vocab.name[id][7]));
    }
    assert_int_equal(rp_vocab_find(&vocab, "w00000", 6), RP_TOKEN_UNKNOWN); /* a part of a word */
    assert_int_equal(rp_vocab_find(&vocab, "<unknown>", 9), RP_TOKEN_UNKNOWN);
    assert_int_equal(rp_vocab_find(&vocab, "<end>", 5), RP_TOKEN_UNKNOWN); /* not a word */
    rp_arena_finish(&arena);
}

/* Every character of Unicode. */
static void all_characters(void **state) {
    (void)state;
    const rp_token_rules rules = {.kind = RP_TOKENS_CHARS};
    rp_vocab_learner learner;
    rp_vocab vocab;
    rp_arena arena;
    char *text;
    size_t used = 0;
    uint32_t id = 0;
    rp_arena_init(&arena, "test", 0);
    expect_ok(RP_ARENA_NEW(&arena, RP_UNICODE_END * RP_UNICODE_BYTES_MAX, &text));
    for (uint32_t code = RP_UNICODE_END - 1; code > 0; code--) {
        used += code < 0xd800 || code >= 0xe000 ? rp_unicode_write(code, text + used) : 0;
    }
    expect_ok(rp_vocab_begin(&arena, &rules, &learner));
    expect_ok(rp_vocab_learn(&learner, text, used));
    expect_ok(rp_vocab_finish(&arena, &learner, 0, 10, &vocab)); /* the limit is for words */
    assert_int_equal(vocab.count, RP_UNICODE_END - 0x800 - 1);
    for (uint32_t code = 1; code < RP_UNICODE_END; code++) {
        char one[RP_UNICODE_BYTES_MAX];
        const uint32_t bytes = rp_unicode_write(code, one);
        if (code < 0xd800 || code >= 0xe000) {
            assert_int_equal(rp_vocab_find(&vocab, one, bytes), id++);
        }
    }
    assert_int_equal(rp_vocab_find(&vocab, "\0", 1), vocab.count); /* it has no id for unknown */
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_of_each_width),
        cmocka_unit_test(many_words),
        cmocka_unit_test(all_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
