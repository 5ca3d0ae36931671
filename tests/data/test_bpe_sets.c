/* The sets `text` and `tsv` with a byte-level BPE, and its description. */
#include "bpe_fixture.h"

#include <math.h>

#include "data/check.h"
#include "data/describe.h"

static const char text_keys[] = "{set: text, path: %, tokens: %/bpe.json, time: 2}";
static const char tsv_keys[] =
    "{set: tsv, path: %, text: 0, label: 1, tokens: %/bpe.json, time: 4}";

static const char pairs_keys[] =
    "{set: pairs, path: %, source: a.en, target: a.de, tokens: %/bpe.json, time: 4}";

static void expect_row(const rp_data *data, rp_split split, uint32_t index, const int32_t *want,
                       const int32_t *labels, uint32_t count) {
    int32_t id[64];
    int32_t label[64];
    assert_int_equal(data->sample.dim[0], count);
    expect_ok(rp_data_batch(data, split, 0, &index, 1, false, id, label, NULL));
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(id[i], want[i]);
    }
    for (uint32_t i = 0; i < data->target_width; i++) {
        assert_int_equal(label[i], labels[i]);
    }
}

/* "board board": Ġboard is one token, its first one has no blank before it. */
static void windows_of_a_text(void **state) {
    (void)state;
    enum { WORDS = 40 };
    char text[WORDS * 6 + 1] = "";
    rp_data data;
    write_bpe("learnt.json", NULL, NULL);
    for (uint32_t i = 0; i < WORDS; i++) {
        memcpy(text + 6 * i, "!!!!!!", 6); /* one word of many tokens `!` */
    }
    write_text("train.txt", text);
    expect_ok(open_data(&data, text_keys, NULL, true));
    assert_true(data.type == RP_I32 && data.tokens == 420 && data.classes == 420);
    assert_int_equal(data.bits, RP_BITS_OF_BYTE);
    assert_int_equal(data.text_tokens, WORDS * 6 * 9 / 10);
    assert_int_equal(data.count[RP_SPLIT_TRAIN], (WORDS * 6 * 9 / 10 - 1) / 2);
    assert_int_equal(data.count[RP_SPLIT_TEST], (WORDS * 6 / 10 - 1) / 2);
    const int32_t marks[] = {4, 4}; /* the first character after the special tokens */
    expect_row(&data, RP_SPLIT_TEST, 1, marks, marks, 2);
    expect_ok(rp_data_check(&data));
    rp_data_close(&data);
    write_text("test.txt", "\"!\"");
    expect_ok(open_data(&data, text_keys, NULL, true));
    assert_int_equal(data.text_tokens, WORDS * 6);
    assert_int_equal(data.count[RP_SPLIT_TEST], 1);
    expect_row(&data, RP_SPLIT_TEST, 0, (const int32_t[]){5, 4}, (const int32_t[]){4, 5}, 2);
    rp_data_close(&data);
    write_text("test.txt", "!!");
    expect_err(open_data(&data, text_keys, NULL, true), RP_ERR_FORMAT);
    expect_part("test.txt: the test part has 2 tokens (bpe), expected at least 3");
    write_text("test.txt", "ok\n!\xc3(");
    expect_err(open_data(&data, text_keys, NULL, true), RP_ERR_FORMAT);
    expect_part("test.txt:2: byte 4 of the file is 0xc3: expected a text in UTF-8");
}

/* The loss of a byte: "board board" is "board" without its blank as letters, and one token with it.
 */
static void bits_of_a_byte(void **state) {
    (void)state;
    double bits;
    uint64_t bytes = 0;
    int32_t id[2];
    int32_t label[3];
    rp_data data;
    write_bpe("learnt.json", NULL, NULL);
    write_text("train.txt", "!!!! the board of the boards !!!!! and the board?");
    write_text("test.txt", "! board! board board board");
    expect_ok(open_data(&data, text_keys, NULL, true));
    for (uint32_t i = 0; i < data.count[RP_SPLIT_TEST]; i++) {
        expect_ok(rp_data_batch(&data, RP_SPLIT_TEST, 0, &i, 1, false, id, label, NULL));
        for (uint32_t k = 0; k < 2; k++) {
            bytes += label[k] == 4 ? strlen("!") : strlen(" board"); /* no other token is there */
        }
    }
    /* "!" begins the first window; its targets and those of the second are 4 tokens. */
    assert_int_equal(data.count[RP_SPLIT_TEST], 2);
    assert_int_equal(bytes, strlen(" board! board board"));
    expect_ok(rp_data_bits(&data, RP_SPLIT_TEST, &bits));
    expect_close(bits, 4 / (19 * log(2)), 1e-12, 0);
    data.ignores = true; /* the two targets " board" of the second window and one of the first */
    data.ignore = 4;
    expect_ok(rp_data_bits(&data, RP_SPLIT_TEST, &bits));
    expect_close(bits, 3 / (18 * log(2)), 1e-12, 0);
    expect_ok(rp_data_bits(&data, RP_SPLIT_VALIDATION, &bits));
    assert_true(bits == 0);
    rp_data_close(&data);
    expect_ok(open_data(&data, "{set: text, path: %, tokens: chars, time: 2}", NULL, true));
    expect_ok(rp_data_bits(&data, RP_SPLIT_TEST, &bits));
    expect_close(bits, 1 / log(2), 1e-12, 0);
    rp_data_close(&data);
    expect_ok(open_data(&data, "{set: text, path: %, tokens: words, time: 2}", NULL, true));
    expect_ok(rp_data_bits(&data, RP_SPLIT_TEST, &bits));
    assert_true(bits == 0 && !rp_data_has_bits(&data));
    rp_data_close(&data);
}

static void wrong_keys(void **state) {
    (void)state;
    rp_data data;
    write_text("train.txt", "abc");
    write_bpe("learnt.json", NULL, NULL);
    expect_err(open_data(&data, "{set: text, path: %, tokens: bpe, time: 2}", NULL, true),
               RP_ERR_USAGE);
    expect_part("FILE.json");
    expect_err(open_data(&data, "{set: text, path: %, tokens: %/none.json, time: 2}", NULL, true),
               RP_ERR_IO);
    expect_part("none.json: cannot be opened");
    expect_err(
        open_data(&data, "{set: text, path: %, tokens: %/bpe.json, vocab: 9, time: 2}", NULL, true),
        RP_ERR_USAGE);
    expect_part("vocab: applies only to `tokens: words`");
    write_text("bpe.json", "");
    expect_err(open_data(&data, text_keys, NULL, true), RP_ERR_FORMAT);
    expect_part("bpe.json: the file is empty, expected tokenizer.json of Hugging Face's "
                "tokenizers");
    write_text("bpe.json", "{\"version\": \"1.0\",\n\"added_tokens\": [");
    expect_err(open_data(&data, text_keys, NULL, true), RP_ERR_FORMAT);
    expect_part("bpe.json:2: the file ends too early, expected a whole tokenizer.json of Hugging "
                "Face's tokenizers");
    write_text("bpe.json", "{]");
    expect_err(open_data(&data, text_keys, NULL, true), RP_ERR_FORMAT);
    expect_part("bpe.json:1:2: expected tokenizer.json of Hugging Face's tokenizers: ");
    write_bpe("qwen.json", NULL, NULL);
    write_text("train.txt", "abc\nde\xcc\x81 and so on");
    expect_err(open_data(&data, text_keys, NULL, true), RP_ERR_FORMAT);
    expect_part("train.txt:2: byte 6 of the file: the tokeniser expects a text in normal form C");
}

/* Texts are cut, or filled with id 0. */
static void classes_of_texts(void **state) {
    (void)state;
    rp_data data;
    write_bpe("learnt.json", NULL, NULL);
    write_text("train.tsv", "!\"!\t0\n\t1\n!!!!!!!!\t1\n<end>!\t0\n");
    write_text("test.tsv", "!\t1\n");
    expect_ok(open_data(&data, tsv_keys, NULL, true));
    assert_true(data.tokens == 420 && data.classes == 2);
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 4);
    assert_int_equal(data.text_tokens, 3 + 0 + 4 + 2);
    expect_close(data.padding, 7.0 / 16, 1e-12, 0);
    const int32_t label[] = {0, 1};
    expect_row(&data, RP_SPLIT_TRAIN, 0, (const int32_t[]){4, 5, 4, 0}, &label[0], 4);
    expect_row(&data, RP_SPLIT_TRAIN, 1, (const int32_t[]){0, 0, 0, 0}, &label[1], 4);
    expect_row(&data, RP_SPLIT_TRAIN, 2, (const int32_t[]){4, 4, 4, 4}, &label[1], 4);
    expect_row(&data, RP_SPLIT_TRAIN, 3, (const int32_t[]){3, 4, 0, 0}, &label[0], 4);
    expect_row(&data, RP_SPLIT_TEST, 0, (const int32_t[]){4, 0, 0, 0}, &label[1], 4);
    expect_ok(rp_data_check(&data));
    rp_data_close(&data);
}

/* A literal <end> is the special token. */
static void pairs_of_sentences(void **state) {
    (void)state;
    rp_data data;
    write_bpe("learnt.json", NULL, NULL);
    write_text("a.en", "!\"\n!\"!\"!\n");
    write_text("a.de", "\"<end>!\n!!!!!\n");
    expect_ok(open_data(&data, pairs_keys, NULL, true));
    assert_true(data.tokens == 420 && data.classes == 420 && data.count[RP_SPLIT_TRAIN] == 2);
    assert_int_equal(data.text_tokens, 2 + 3 + 4 + 3);
    expect_row(&data, RP_SPLIT_TRAIN, 0, (const int32_t[]){4, 5, 0, 0, 2, 5, 3, 4},
               (const int32_t[]){5, 3, 4, 3}, 8);
    expect_row(&data, RP_SPLIT_TRAIN, 1, (const int32_t[]){4, 5, 4, 5, 2, 4, 4, 4},
               (const int32_t[]){4, 4, 4, 3}, 8);
    assert_int_equal(data.notes.count, 1);
    expect_ok(rp_data_check(&data));
    rp_data_close(&data);
    write_bpe("gpt2.json", "\"<end>\":3", "\"<stop>\":3");
    expect_err(open_data(&data, pairs_keys, NULL, true), RP_ERR_FORMAT);
    expect_part("bpe.json: token 3 is '<stop>', expected '<end>', because `set: pairs` marks the "
                "begin and the end");
    rp_data_close(&data);
}

static void classes_need_padding(void **state) {
    (void)state;
    rp_data data;
    write_text("train.tsv", "!\t0\n");
    write_bpe("learnt.json", "\"<padding>\":0", "\"<start>\":0");
    expect_err(open_data(&data, tsv_keys, NULL, true), RP_ERR_FORMAT); /* the added token is new */
    write_bpe("qwen.json", "\"<padding>\":0", "\"<start>\":0");
    expect_err(open_data(&data, tsv_keys, NULL, true), RP_ERR_FORMAT);
    expect_part("token 0 is '<start>': expected <padding>, <pad>, [PAD] or <|padding|>");
    write_bpe("learnt.json", NULL, NULL);
    expect_ok(open_data(&data, tsv_keys, NULL, true));
    rp_data_close(&data);
}

/* ---- data.json ------------------------------------------------------------------------------- */

static void description(void **state) {
    (void)state;
    static const char *const names[] = {"learnt.json", "gpt2.json", "roberta.json",
                                        "llama3.json", "qwen.json", "o200k.json"};
    rp_data data;
    rp_description got;
    write_text("train.txt", "the boards of the ring pass what they have computed to the next "
                            "board of the ring, and wait for it");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_bpe(names[i], NULL, NULL);
        expect_ok(open_data(&data, text_keys, NULL, true));
        expect_ok(rp_data_describe(&data, in_folder("data.json")));
        expect_ok(rp_data_read_description(&arena, in_folder("data.json"), &got));
        assert_true(got.vocab.rules.kind == RP_TOKENS_BPE && got.vocab.bpe);
        assert_int_equal(got.tokens, data.tokens);
        assert_int_equal(got.vocab.count, data.tokens);
        expect_ok(rp_data_check_vocab(&data, in_folder("data.json")));
        rp_data_close(&data);
    }
    write_text("a.en", "the boards\n");
    write_text("a.de", "die Platinen\n");
    write_bpe("learnt.json", NULL, NULL);
    expect_ok(open_data(&data, pairs_keys, NULL, true));
    expect_ok(rp_data_describe(&data, in_folder("data.json")));
    expect_ok(rp_data_read_description(&arena, in_folder("data.json"), &got));
    assert_string_equal(got.set, "pairs");
    assert_true(got.tokens == 420 && got.classes == 420 && got.target_width == 4);
    expect_ok(rp_data_check_vocab(&data, in_folder("data.json")));
    rp_data_close(&data);
}

/* The same names with other ids for a text, or other names. */
static void another_tokeniser_is_refused(void **state) {
    (void)state;
    static const char *const cases[][4] = {
        {"gpt2.json", "\"h e\",\"\xc4\xa0 t\"", "\"\xc4\xa0 t\",\"h e\"", "list of merges"},
        {"gpt2.json", "\"lstrip\":false", "\"lstrip\":true", "list of added tokens"},
        {"gpt2.json", "\"add_prefix_space\":false", "\"add_prefix_space\":true",
         "`add_prefix_space`"},
        {"gpt2.json", "\"ignore_merges\":false", "\"ignore_merges\":true", "`ignore_merges`"},
        {"gpt2.json", "\"normalizer\":null", "\"normalizer\":{\"type\":\"NFC\"}", "`normalizer`"},
        {"gpt2.json", "<|end|>", "<|END|>", "token 420 is '<|END|>', but '<|end|>' in "},
        {"learnt.json", NULL, NULL, "the number of tokens is 420, but 421 in "},
    };
    static const char chars[] = "{set: text, path: %, tokens: chars, time: 2}";
    rp_data data;
    write_text("train.txt", "the boards of the ring pass what they have computed to the next "
                            "board of the ring, and wait for it");
    write_bpe("gpt2.json", NULL, NULL);
    expect_ok(open_data(&data, text_keys, NULL, true));
    expect_ok(rp_data_describe(&data, in_folder("data.json")));
    rp_data_close(&data);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_bpe(cases[i][0], cases[i][1], cases[i][2]);
        expect_ok(open_data(&data, text_keys, NULL, true));
        expect_err(rp_data_check_vocab(&data, in_folder("data.json")), RP_ERR_USAGE);
        expect_part(cases[i][3]);
        rp_data_close(&data);
    }
    expect_ok(open_data(&data, chars, NULL, true));
    expect_err(rp_data_check_vocab(&data, in_folder("data.json")), RP_ERR_USAGE);
    expect_part("`tokens` is chars, but bpe in ");
    rp_data_close(&data);
}

static void damaged_descriptions(void **state) {
    (void)state;
    static const char start[] =
        "{\"set\": \"text\", \"sample\": [2], \"type\": \"i32\", \"tokens\": "
        "\"bpe\", \"token_count\": 420";
    char text[256];
    rp_description got;
    (void)snprintf(text, sizeof text, "%s}", start);
    write_text("data.json", text);
    expect_err(rp_data_read_description(&arena, in_folder("data.json"), &got), RP_ERR_FORMAT);
    expect_part("data.json: `model.type`: expected BPE");
    (void)snprintf(text, sizeof text, "%s, \"tokenizer\": []}", start);
    write_text("data.json", text);
    expect_err(rp_data_read_description(&arena, in_folder("data.json"), &got), RP_ERR_FORMAT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(windows_of_a_text, setup, teardown),
        cmocka_unit_test_setup_teardown(bits_of_a_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(classes_of_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(pairs_of_sentences, setup, teardown),
        cmocka_unit_test_setup_teardown(classes_need_padding, setup, teardown),
        cmocka_unit_test_setup_teardown(description, setup, teardown),
        cmocka_unit_test_setup_teardown(another_tokeniser_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged_descriptions, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
