/* Texts to ids and back, by the three kinds of vocabularies. */
#include "expect.h"

#include <string.h>

#include "data/encode.h"

static rp_arena arena;
static rp_vocab vocab;

static void open_vocab(const rp_token_rules *rules, const char *text, uint32_t special) {
    rp_vocab_learner learner;
    rp_arena_init(&arena, "test", 0);
    vocab = (rp_vocab){.rules = *rules, .count = 256};
    if (rules->kind != RP_TOKENS_BYTES && rules->kind != RP_TOKENS_IDS) {
        expect_ok(rp_vocab_begin(&arena, rules, &learner));
        expect_ok(rp_vocab_learn(&learner, text, strlen(text)));
        expect_ok(rp_vocab_finish(&arena, &learner, special, 100, &vocab));
    }
}

/* Encodes a text, writes its tokens again, and compares both. */
static void expect_text(const char *text, const int32_t *want, uint32_t count, const char *back) {
    char written[64] = "";
    int32_t *ids;
    uint32_t found;
    expect_ok(rp_text_encode(&arena, &vocab, text, &ids, &found));
    assert_int_equal(found, count);
    FILE *file = fmemopen(written, sizeof written, "w");
    assert_non_null(file);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(ids[i], want[i]);
        expect_ok(rp_text_write_token(&vocab, (uint32_t)ids[i], file));
    }
    assert_int_equal(fclose(file), 0);
    assert_string_equal(written, back);
}

static void expect_refused(const char *text, const char *message) {
    int32_t *ids;
    uint32_t count;
    expect_err(rp_text_encode(&arena, &vocab, text, &ids, &count), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), message));
}

static void bytes(void **state) {
    (void)state;
    open_vocab(&(rp_token_rules){.kind = RP_TOKENS_BYTES}, "", 0);
    expect_text("a\xc3\xa9", (const int32_t[]){'a', 0xc3, 0xa9}, 3, "a\xc3\xa9");
    expect_text("", NULL, 0, "");
    expect_refused("\xff", "not UTF-8");
    rp_arena_finish(&arena);
}

static void characters(void **state) {
    (void)state;
    open_vocab(&(rp_token_rules){.kind = RP_TOKENS_CHARS},
               "b\xc3\xa9"
               "a",
               0);
    expect_text("ab\xc3\xa9", (const int32_t[]){0, 1, 2}, 3, "ab\xc3\xa9");
    expect_refused("ac", "'c' does not occur in the training text");
    rp_arena_finish(&arena);
}

/* Unknown words have an id; words are written with a blank between them. */
static void words(void **state) {
    (void)state;
    open_vocab(&(rp_token_rules){.kind = RP_TOKENS_WORDS, .lower = true}, "so so good", 4);
    expect_text("Good so bad", (const int32_t[]){5, 4, RP_TOKEN_UNKNOWN}, 3, " good so <unknown>");
    rp_arena_finish(&arena);
}

/* A zero is a byte of a text as others are. */
static void zeros_are_kept(void **state) {
    (void)state;
    rp_text text;
    open_vocab(&(rp_token_rules){.kind = RP_TOKENS_BYTES}, "", 0);
    expect_ok(rp_text_decode(&arena, &vocab, (const int32_t[]){'a', 0, 'b', 0}, 4, &text));
    assert_int_equal(text.bytes, 4);
    assert_memory_equal(text.at, "a\0b\0", 5);
    expect_ok(rp_text_decode(&arena, &vocab, NULL, 0, &text));
    assert_true(text.bytes == 0 && text.at[0] == '\0');
    rp_arena_finish(&arena);
}

static void numbers_have_no_text(void **state) {
    (void)state;
    open_vocab(&(rp_token_rules){.kind = RP_TOKENS_IDS}, "", 0);
    expect_refused("1", "trained on ids from arrays");
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes),
        cmocka_unit_test(characters),
        cmocka_unit_test(words),
        cmocka_unit_test(zeros_are_kept),
        cmocka_unit_test(numbers_have_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
