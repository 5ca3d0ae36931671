/* Texts to ids, by each kind of token; the same ids whatever the user of the module. */
#include "bpe_fixture.h"

#include "data/tokenizer.h"
#include "data/unicode.h"

static rp_vocab learn(const rp_token_rules *rules, const char *text, uint32_t special) {
    rp_vocab_learner learner;
    rp_vocab vocab;
    expect_ok(rp_vocab_begin(&arena, rules, &learner));
    expect_ok(rp_vocab_learn(&learner, text, strlen(text)));
    expect_ok(rp_vocab_finish(&arena, &learner, special, 100, &vocab));
    return vocab;
}

static void expect_ids(const rp_vocab *vocab, const char *text, const uint32_t *want,
                       uint64_t count) {
    rp_grown list = {.size = sizeof(uint32_t)};
    rp_tokenizer *tokenizer;
    const uint32_t *ids;
    uint64_t found;
    expect_ok(rp_tokenizer_open(vocab, &tokenizer));
    for (int again = 0; again < 2; again++) {
        expect_ok(rp_tokenizer_encode(tokenizer, text, strlen(text), &ids, &found));
        assert_int_equal(found, count);
        for (uint64_t i = 0; i < count; i++) {
            assert_int_equal(ids[i], want[i]);
        }
    }
    expect_ok(rp_tokenizer_append(tokenizer, text, strlen(text), 2, &list, &found));
    expect_ok(rp_tokenizer_append(tokenizer, text, strlen(text), 1, &list, &found));
    assert_int_equal(found, count);
    assert_int_equal(list.count, (count < 2 ? count : 2) + (count < 1 ? count : 1));
    for (size_t i = 0; i < list.count; i++) {
        assert_int_equal(((const uint32_t *)list.at)[i], want[i < 2 && i < count ? i : 0]);
    }
    rp_grown_free(&list);
    rp_tokenizer_close(&tokenizer);
    rp_tokenizer_close(&tokenizer);
}

static void kinds(void **state) {
    (void)state;
    const rp_vocab bytes = learn(&(rp_token_rules){.kind = RP_TOKENS_BYTES}, "", 0);
    expect_ids(&bytes, "a\xc3\xa9", (const uint32_t[]){'a', 0xc3, 0xa9}, 3);
    const rp_vocab chars = learn(&(rp_token_rules){.kind = RP_TOKENS_CHARS}, "ab\xc3\xa9", 0);
    expect_ids(&chars, "\xc3\xa9xa", (const uint32_t[]){2, 3 /* count: it has none */, 0}, 3);
    const rp_token_rules lower = {.kind = RP_TOKENS_WORDS, .lower = true};
    const rp_vocab words = learn(&lower, "The the \xc3\x84hre, a", RP_TOKENS_SPECIAL);
    expect_ids(&words, " THE \xc3\xa4hre <end>", (const uint32_t[]){4, 7, 1, 1, 1}, 5);
    expect_ids(&words, " \n", NULL, 0);
    expect_ids(&words, "", NULL, 0);
}

static void parts_of_words(void **state) {
    (void)state;
    char path[256];
    rp_token_rules rules = {.kind = RP_TOKENS_BPE, .file = path};
    rp_vocab vocab;
    (void)snprintf(path, sizeof path, "%s", in_folder("bpe.json"));
    write_bpe("learnt.json", NULL, NULL);
    expect_ok(rp_vocab_read_bpe(&arena, &rules, &vocab));
    assert_false(rules.nfc);
    expect_ids(&vocab, "!<end>\"", (const uint32_t[]){4, 3, 5}, 3);
    expect_ids(&vocab, "", NULL, 0);
    write_bpe("qwen.json", NULL, NULL);
    expect_ok(rp_vocab_read_bpe(&arena, &rules, &vocab));
    assert_true(rules.nfc && vocab.rules.nfc);
}

static void files(void **state) {
    (void)state;
    const rp_token_rules words = {.kind = RP_TOKENS_WORDS};
    const rp_token_rules nfc = {.kind = RP_TOKENS_BPE, .nfc = true};
    rp_text_file file;
    write_text("a.txt", "e\xcc\x81");
    expect_ok(rp_tokenizer_read_file(&arena, &words, false, in_folder("a.txt"), &file));
    assert_int_equal(file.bytes, 3);
    expect_err(rp_tokenizer_read_file(&arena, &nfc, false, in_folder("a.txt"), &file),
               RP_ERR_FORMAT);
    expect_part("expects a text in normal form C");
    write_text("a.txt", "a\n\xff");
    expect_err(rp_tokenizer_read_file(&arena, &words, false, in_folder("a.txt"), &file),
               RP_ERR_FORMAT);
    expect_part("a.txt:2: byte 2 of the file is 0xff");
    expect_ok(rp_tokenizer_read_file(&arena, &words, true, in_folder("a.txt"), &file));
}

/* Skipped, and counted in the places of messages. */
static void byte_order_mark(void **state) {
    (void)state;
    const rp_token_rules rules = {.kind = RP_TOKENS_CHARS};
    rp_text_file file;
    write_text("a.txt", "\xef\xbb\xbf\xef\xbb\xbfq");
    for (int any = 0; any < 2; any++) {
        expect_ok(rp_tokenizer_read_file(&arena, &rules, any, in_folder("a.txt"), &file));
        assert_int_equal(file.bytes, 4); /* only one is skipped */
        assert_int_equal(file.skipped, 3);
    }
    write_text("a.txt", "\xef\xbb\xbf\xff");
    expect_err(rp_tokenizer_read_file(&arena, &rules, false, in_folder("a.txt"), &file),
               RP_ERR_FORMAT);
    expect_part("a.txt:1: byte 3 of the file is 0xff");
    write_text("a.txt", "\xef\xbb\xbf");
    expect_err(rp_tokenizer_read_file(&arena, &rules, true, in_folder("a.txt"), &file),
               RP_ERR_FORMAT);
    expect_part("a.txt: the file is empty after its byte order mark");
}

static void byte_order_mark_of_sets(void **state) {
    (void)state;
    static const char *const keys[] = {
        "{set: text, path: %, tokens: chars, time: 1}",
        "{set: tsv, path: %, text: 0, label: 1, tokens: chars, time: 2}",
        "{set: pairs, path: %, source: a.en, target: a.de, tokens: chars, time: 3}",
    };
    static const char *const first[] = {"a", "<padding>", "<padding>"};
    write_text("train.txt", "\xef\xbb\xbf"
                            "abab");
    write_text("test.txt", "\xef\xbb\xbf"
                           "ab");
    write_text("train.tsv", "\xef\xbb\xbf"
                            "ab\t0\n");
    write_text("test.tsv", "\xef\xbb\xbf"
                           "b\t0\n");
    write_text("a.en", "\xef\xbb\xbf"
                       "a\n");
    write_text("a.de", "\xef\xbb\xbf"
                       "b\n");
    for (size_t i = 0; i < 3; i++) {
        rp_data data;
        expect_ok(open_data(&data, keys[i], NULL, true));
        assert_int_equal(data.vocab->count, data.vocab->special + 2);
        assert_string_equal(data.vocab->name[0], first[i]);
        rp_data_close(&data);
    }
}

static void names_of_files(void **state) {
    (void)state;
    assert_true(rp_tokens_names_file("a.json"));
    assert_true(rp_tokens_names_file("folder/tokenizer.json"));
    assert_false(rp_tokens_names_file(".json"));
    assert_false(rp_tokens_names_file("words"));
    assert_false(rp_tokens_names_file(""));
    assert_false(rp_tokens_names_file("a.json.gz"));
}

/* Texts are divided at tokens before they are written in lower case, see rp_tokens_skip(). */
static void lower_case_keeps_words(void **state) {
    (void)state;
    for (uint32_t code = 0; code < RP_UNICODE_END; code++) {
        const uint32_t lower = rp_unicode_lower(code);
        assert_int_equal(rp_unicode_is_word(lower), rp_unicode_is_word(code));
        assert_int_equal(rp_unicode_is_space(lower), rp_unicode_is_space(code));
    }
}

static void skipping(void **state) {
    (void)state;
    static const char text[] = "one, two  ";
    const rp_token_rules words = {.kind = RP_TOKENS_WORDS};
    const rp_token_rules bytes = {.kind = RP_TOKENS_BYTES};
    const char *end = text + sizeof text - 1;
    const char *at = text;
    assert_int_equal(rp_tokens_skip(&words, &at, end, 2), 2);
    assert_int_equal(at - text, 4);
    assert_int_equal(rp_tokens_skip(&words, &at, end, 9), 1);
    assert_true(at == end);
    at = text;
    assert_int_equal(rp_tokens_skip(&bytes, &at, end, 3), 3);
    assert_int_equal(rp_tokens_skip(&bytes, &at, end, 99), 7);
    assert_true(at == end);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kinds, setup, teardown),
        cmocka_unit_test_setup_teardown(parts_of_words, setup, teardown),
        cmocka_unit_test_setup_teardown(files, setup, teardown),
        cmocka_unit_test_setup_teardown(byte_order_mark, setup, teardown),
        cmocka_unit_test_setup_teardown(byte_order_mark_of_sets, setup, teardown),
        cmocka_unit_test(names_of_files),
        cmocka_unit_test(lower_case_keeps_words),
        cmocka_unit_test(skipping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
