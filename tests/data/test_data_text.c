/* Windows of a text, for a language model. */
#include "fixture.h"

#include "data/check.h"
#include "data/describe.h"

enum { IDS_MAX = 4096 };

/* All windows of a part: ids and labels, in order. */
static void read_part(const rp_data *data, rp_split split, int32_t *x, int32_t *labels) {
    const uint32_t time = data->sample.dim[0];
    assert_int_equal(data->sample.dims, 1);
    assert_true((size_t)data->count[split] * time <= IDS_MAX);
    for (uint32_t i = 0; i < data->count[split]; i++) {
        expect_ok(
            rp_data_batch(data, split, 0, &i, 1, false, x + i * time, labels + i * time, NULL));
    }
}

static void expect_ids(const int32_t *got, const int32_t *want, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(got[i], want[i]);
    }
}

static void expect_name(const rp_data *data, uint32_t id, const char *name) {
    assert_true(id < data->vocab->count);
    assert_string_equal(data->vocab->name[id], name);
}

static void bytes_of_any_file(void **state) {
    (void)state;
    static uint8_t text[1000];
    int32_t x[IDS_MAX];
    int32_t y[IDS_MAX];
    rp_data data;
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (uint8_t)(i * i + i / 256);
    }
    write_file("input.bin", text, sizeof text);
    expect_ok(
        open_data(&data, "{set: text, path: %/input.bin, tokens: bytes, time: 32}", NULL, true));
    assert_true(data.type == RP_I32 && data.tokens == 256 && data.classes == 256);
    assert_int_equal(data.target_width, 32);
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 28); /* (900 - 1) / 32 */
    assert_int_equal(data.count[RP_SPLIT_TEST], 3);
    assert_null(data.test_path);
    read_part(&data, RP_SPLIT_TRAIN, x, y);
    for (uint32_t i = 0; i < 28 * 32; i++) {
        assert_int_equal(x[i], text[i]);
        assert_int_equal(y[i], text[i + 1]);
    }
    read_part(&data, RP_SPLIT_TEST, x, y);
    for (uint32_t i = 0; i < 3 * 32; i++) {
        assert_int_equal(x[i], text[900 + i]);
        assert_int_equal(y[i], text[900 + i + 1]);
    }
    expect_ok(rp_data_check(&data));
    rp_data_close(&data);
}

/* Characters are in the order of their numbers, not of their bytes or of the text. */
static void characters(void **state) {
    (void)state;
    int32_t x[IDS_MAX];
    int32_t y[IDS_MAX];
    rp_data data;
    /* 20 characters, of which 18 are the training part: b a \n ä 😀 € b a b ... */
    write_text("input.txt", "ba\n\xc3\xa4\xf0\x9f\x98\x80\xe2\x82\xac"
                            "babababababa"
                            "\xc3\xa4"
                            "b");
    const rp_data_input four = {.shape = rp_shape_1(4), .type = RP_I32};
    expect_err(open_for(&data, "{set: text, path: %/input.txt, tokens: chars}", &four, true, 7),
               RP_ERR_FORMAT);
    expect_part("the test part has 2 tokens (chars), expected at least 5, one more than `time`");
    expect_ok(
        open_data(&data, "{set: text, path: %/input.txt, tokens: chars, time: 1}", NULL, true));
    assert_int_equal(data.tokens, 6);
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 17);
    assert_int_equal(data.count[RP_SPLIT_TEST], 1);
    expect_name(&data, 0, "\n");
    expect_name(&data, 1, "a");
    expect_name(&data, 2, "b");
    expect_name(&data, 3, "\xc3\xa4");
    expect_name(&data, 4, "\xe2\x82\xac");
    expect_name(&data, 5, "\xf0\x9f\x98\x80");
    read_part(&data, RP_SPLIT_TRAIN, x, y);
    expect_ids(x, (const int32_t[]){2, 1, 0, 3, 5, 4, 2, 1}, 8);
    expect_ids(y, (const int32_t[]){1, 0, 3, 5, 4, 2, 1, 2}, 8);
    read_part(&data, RP_SPLIT_TEST, x, y);
    assert_true(x[0] == 3 && y[0] == 2);
    rp_data_close(&data);
}

/* `time` is that of the model if it says it. */
static void time_of_the_model(void **state) {
    (void)state;
    const rp_data_input four = {.shape = rp_shape_1(4), .type = RP_I32};
    const rp_data_input image = {.shape = rp_shape_3(1, 2, 3), .type = RP_I32};
    const rp_data_input real = {.shape = rp_shape_1(4)};
    rp_data data;
    write_text("input.txt", "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij");
    static const char keys[] = "{set: text, path: %/input.txt, tokens: bytes}";
    expect_ok(open_for(&data, keys, &four, true, 7));
    assert_int_equal(data.sample.dim[0], 4);
    rp_data_close(&data);
    expect_err(open_for(&data, keys, &real, true, 7), RP_ERR_USAGE);
    expect_part("run.yaml:1: the key 'time' is needed here");
    expect_err(open_for(&data, keys, &image, true, 7), RP_ERR_USAGE);
    expect_part(
        "set: samples are rows of 1 to 65536 token ids, but the model's input is [1, 2, 3]");
    expect_err(
        open_for(&data, "{set: text, path: %/input.txt, tokens: bytes, time: 5}", &four, true, 7),
        RP_ERR_USAGE);
    expect_part("time: expected 4, because the model's input is [4], found 5");
}

static void words(void **state) {
    (void)state;
    int32_t x[IDS_MAX];
    int32_t y[IDS_MAX];
    rp_data data;
    write_text("train.txt", "The cat, the dog.\nthe \xc3\x84hre\xe2\x80\x94the cat's \xc3\xa4hre");
    write_text("test.txt", "A cat\xc2\xa0the!");
    expect_ok(
        open_data(&data, "{set: text, path: %, tokens: words, lower: true, time: 2}", NULL, true));
    /* the 4, cat 2, ähre 2, then once each: ' , . dog s — by bytes */
    static const char *const names[] = {"<padding>", "<unknown>",   "<begin>",     "<end>", "the",
                                        "cat",       "\xc3\xa4hre", "'",           ",",     ".",
                                        "dog",       "s",           "\xe2\x80\x94"};
    assert_int_equal(data.tokens, 13);
    for (uint32_t i = 0; i < 13; i++) {
        expect_name(&data, i, names[i]);
    }
    assert_int_equal(data.text_tokens, 14);
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 6);
    read_part(&data, RP_SPLIT_TRAIN, x, y);
    expect_ids(x, (const int32_t[]){4, 5, 8, 4, 10, 9, 4, 6, 12, 4, 5, 7}, 12);
    expect_ids(y, (const int32_t[]){5, 8, 4, 10, 9, 4, 6, 12, 4, 5, 7, 11}, 12);
    read_part(&data, RP_SPLIT_TEST, x, y); /* a cat the !: two words are unknown */
    expect_ids(x, (const int32_t[]){1, 5}, 2);
    expect_ids(y, (const int32_t[]){5, 4}, 2);
    rp_data_close(&data);
    expect_ok(open_data(&data,
                        "{set: text, path: %, tokens: words, split: space, time: 2, "
                        "vocab: 6}",
                        NULL, true));
    assert_int_equal(data.tokens, 6);
    expect_name(&data, 4, "the"); /* 2 times; then once each, by bytes */
    expect_name(&data, 5, "The");
    read_part(&data, RP_SPLIT_TRAIN, x, y); /* The cat, the dog. the Ähre—the cat's ähre */
    expect_ids(x, (const int32_t[]){5, 1, 4, 1, 4, 1}, 6);
    rp_data_close(&data);
}

static void a_test_file(void **state) {
    (void)state;
    rp_data data;
    write_text("a.txt", "abcabcabcabc");
    write_text("b.txt", "cba\ncbaX");
    expect_err(open_data(&data, "{set: text, path: %/a.txt, test: %/b.txt, tokens: chars, time: 3}",
                         NULL, true),
               RP_ERR_FORMAT);
    expect_part("b.txt:1: the character '\\u000a' (U+000A, byte 3 of the file) does not occur in "
                "the training part, so it has no id: remove it, or use `tokens: bytes`");
    write_text("b.txt", "cba\xe2\x82\xac");
    expect_err(open_data(&data, "{set: text, path: %/a.txt, test: %/b.txt, tokens: chars, time: 3}",
                         NULL, true),
               RP_ERR_FORMAT);
    expect_part("b.txt:1: the character '\xe2\x82\xac' (U+20AC, byte 3 of the file)");
    write_text("b.txt", "cbacb");
    expect_ok(open_data(&data, "{set: text, path: %/a.txt, test: %/b.txt, tokens: chars, time: 3}",
                        NULL, true));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 3);
    assert_int_equal(data.count[RP_SPLIT_TEST], 1);
    rp_data_close(&data);
}

static void held_out_and_shuffled(void **state) {
    (void)state;
    static char text[1001];
    uint32_t order[90];
    int32_t x[2][10];
    int32_t y[2][10];
    rp_data data[2];
    for (size_t i = 0; i < 1000; i++) {
        text[i] = (char)('a' + i * 7 % 26);
    }
    write_text("input.txt", text);
    static const char *const keys[] = {
        "{set: text, path: %/input.txt, tokens: bytes, time: 10, validation: 0.1, workers: 1}",
        "{set: text, path: %/input.txt, tokens: bytes, time: 10, validation: 0.1, workers: 4}"};
    for (int i = 0; i < 2; i++) {
        expect_ok(open_data(&data[i], keys[i], NULL, true));
        assert_int_equal(data[i].count[RP_SPLIT_VALIDATION], 9);
        rp_data_order(&data[i], RP_SPLIT_TRAIN, 3, order);
        expect_ok(rp_data_batch(&data[i], RP_SPLIT_TRAIN, 3, &order[5], 1, true, x[i], y[i], NULL));
    }
    assert_memory_equal(x[0], x[1], sizeof x[0]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    assert_memory_equal(x[0] + 1, y[0], 9 * sizeof(int32_t));
    rp_data_close(&data[0]);
    rp_data_close(&data[1]);
}

static void bad_sets(void **state) {
    (void)state;
    static const struct {
        const char *keys; /* behind `set` and `path` */
        rp_err err;
        const char *part;
    } bad[] = {
        {"time: 2", RP_ERR_USAGE, "tokens"},
        {"tokens: bpe, time: 2", RP_ERR_USAGE, "expected one of: bytes chars words"},
        {"tokens: ids, time: 2", RP_ERR_USAGE, "expected one of: bytes chars words"},
        {"tokens: bytes", RP_ERR_USAGE, "time"},
        {"tokens: bytes, time: 0", RP_ERR_USAGE, "time"},
        {"tokens: bytes, time: 70000", RP_ERR_USAGE, "time"},
        {"tokens: chars, time: 2, vocab: 100", RP_ERR_USAGE,
         "vocab: applies only to `tokens: words`"},
        {"tokens: bytes, time: 2, lower: true", RP_ERR_USAGE,
         "lower: applies only to `tokens: words`"},
        {"tokens: bytes, time: 2, split: space", RP_ERR_USAGE,
         "split: applies only to `tokens: words`"},
        {"tokens: words, time: 2, vocab: 4", RP_ERR_USAGE, "vocab"},
        {"tokens: words, time: 2, split: regex", RP_ERR_USAGE,
         "expected one of: punctuation space"},
        {"tokens: bytes, time: 2, augment: flip", RP_ERR_USAGE,
         "augment: does not apply to token ids, which are neither augmented nor normalised"},
        {"tokens: bytes, time: 2, normalise: measured", RP_ERR_USAGE,
         "normalise: does not apply to token ids"},
        {"tokens: bytes, time: 2, mean: [1]", RP_ERR_USAGE, "mean: does not apply to token ids"},
        {"tokens: bytes, time: 2, std: [1]", RP_ERR_USAGE, "std: does not apply to token ids"},
        {"tokens: bytes, time: 2, size: 3", RP_ERR_USAGE, "size: unknown key"},
        {"tokens: bytes, time: 2, test: %/none.txt", RP_ERR_IO, "none.txt: cannot be opened"},
    };
    char keys[256];
    rp_data data;
    write_text("input.txt", "abc def abc def abc def abc def abc def abc def");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)snprintf(keys, sizeof keys, "{set: text, path: %%/input.txt, %s}", bad[i].keys);
        expect_err(open_data(&data, keys, NULL, true), bad[i].err);
        expect_part(bad[i].part);
    }
    expect_err(
        open_data(&data, "{set: text, path: %/input.txt, tokens: bytes, time: 2}", NULL, false),
        RP_ERR_USAGE);
    expect_part("data set 'text' has classes, so it needs `loss: cross-entropy`");
    expect_err(open_data(&data, "{set: text, path: %/none, tokens: bytes, time: 2}", NULL, true),
               RP_ERR_USAGE);
    expect_part("none");
    expect_err(open_data(&data, "{set: text, path: %, tokens: bytes, time: 2}", NULL, true),
               RP_ERR_IO);
    expect_part("train.txt: cannot be opened");
}

static void bad_texts(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t bytes;
        const char *tokens, *part;
    } bad[] = {
        {"", 0, "bytes", "input.txt: the file is empty"},
        {"abc", 3, "bytes", "the train part has 2 tokens (bytes), expected at least 3"},
        {"ab\ncd\xff\nef", 9, "chars",
         "input.txt:2: byte 5 of the file is 0xff: expected a text in UTF-8"},
        {"ab\ncd\xc3", 6, "words", "input.txt:2: byte 5 of the file is 0xc3"},
        {"ab\0cd", 5, "words",
         "input.txt:1: byte 2 of the file is 0x00: expected a text in UTF-8 without zero bytes"},
        {" \n ", 3, "words", "the train part has 0 tokens (words)"},
    };
    char keys[256];
    rp_data data;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file("input.txt", bad[i].text, bad[i].bytes);
        (void)snprintf(keys, sizeof keys, "{set: text, path: %%/input.txt, time: 2, tokens: %s}",
                       bad[i].tokens);
        expect_err(open_data(&data, keys, NULL, true), RP_ERR_FORMAT);
        expect_part(bad[i].part);
    }
    /* A file of more than 2 GiB is refused by its size; a hole takes no room. */
    write_text("input.txt", "a");
    assert_int_equal(truncate(in_folder("input.txt"), ((off_t)2 << 30) + 1), 0);
    expect_err(
        open_data(&data, "{set: text, path: %/input.txt, time: 2, tokens: bytes}", NULL, true),
        RP_ERR_LIMIT);
    expect_part("input.txt: has 2147483649 bytes, expected at most 2147483648 (2 GiB)");
}

static void ids_that_the_model_lacks(void **state) {
    (void)state;
    int32_t x[2];
    int32_t y[2];
    rp_data data;
    const uint32_t zero = 0;
    write_text("input.txt", "abababababababababababababab");
    expect_ok(
        open_data(&data, "{set: text, path: %/input.txt, tokens: bytes, time: 2}", NULL, true));
    uint32_t limit[2] = {0, 'b' + 1};
    data.id_limit = limit;
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &zero, 1, true, x, y, NULL));
    limit[1] = 'b';
    expect_err(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &zero, 1, true, x, y, NULL), RP_ERR_FORMAT);
    expect_part("train sample 0 has the token 98 at position 1, but the model has only tokens 0 to "
                "97");
    rp_data_close(&data);
}

/* Labels that are `ignore` are not counted: the padding of a text, for example. */
static void counted_labels(void **state) {
    (void)state;
    const uint32_t index[] = {0, 1};
    int32_t x[4];
    int32_t y[6];
    rp_data data;
    write_text("input.txt", "abbabbabbabbabbabbabbabbabbabb");
    expect_ok(
        open_data(&data, "{set: text, path: %/input.txt, tokens: bytes, time: 2}", NULL, true));
    data.ignores = true;
    data.ignore = 'a';
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 2, true, x, y, NULL));
    expect_ids(y, (const int32_t[]){'b', 'b', 3, 'a', 'b', 3}, 6);
    rp_data_close(&data);
}

static void tiny_shakespeare(void **state) {
    (void)state;
    int32_t x[64];
    int32_t y[64];
    char keys[600];
    rp_data data;
    rp_description about;
    const char *path = real_data("tinyshakespeare/input.txt");
    if (!path) {
        skip();
    }
    (void)snprintf(keys, sizeof keys, "{set: text, path: '%s', tokens: chars, time: 64}", path);
    expect_ok(open_data(&data, keys, NULL, true));
    assert_int_equal(data.tokens, 65);
    assert_int_equal(data.text_tokens, 1003854); /* nine tenths of 1,115,394 */
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 15685);
    assert_int_equal(data.count[RP_SPLIT_TEST], 1742);
    const uint32_t zero = 0;
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &zero, 1, true, x, y, NULL));
    expect_ids(x, (const int32_t[]){18, 47, 56, 57, 58, 1, 15, 47}, 8); /* First Ci */
    expect_ids(y, (const int32_t[]){47, 56, 57, 58, 1, 15, 47, 58}, 8);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TEST, 0, &zero, 1, true, x, y, NULL));
    expect_ids(x, (const int32_t[]){12, 0, 0, 19, 30, 17, 25, 21}, 8);
    expect_ok(rp_data_describe(&data, in_folder("data.json")));
    expect_ok(rp_data_read_description(&arena, in_folder("data.json"), &about));
    assert_int_equal(about.tokens, 65);
    rp_data_close(&data);
    (void)snprintf(keys, sizeof keys, "{set: text, path: '%s', tokens: bytes, time: 64}", path);
    expect_ok(open_data(&data, keys, NULL, true));
    assert_int_equal(data.text_tokens, 1003854); /* 1,115,394 bytes: all characters are ASCII */
    rp_data_close(&data);
    (void)snprintf(keys, sizeof keys,
                   "{set: text, path: '%s', tokens: words, lower: true, time: 64, vocab: 1000000}",
                   path);
    expect_ok(open_data(&data, keys, NULL, true));
    assert_int_equal(data.tokens, 10836 + 4); /* as by Python's re.findall() of the lower case */
    assert_int_equal(data.text_tokens, 236634);
    expect_name(&data, 4, ",");
    expect_name(&data, 7, "the");
    rp_data_close(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_of_any_file, setup, teardown),
        cmocka_unit_test_setup_teardown(characters, setup, teardown),
        cmocka_unit_test_setup_teardown(time_of_the_model, setup, teardown),
        cmocka_unit_test_setup_teardown(words, setup, teardown),
        cmocka_unit_test_setup_teardown(a_test_file, setup, teardown),
        cmocka_unit_test_setup_teardown(held_out_and_shuffled, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_sets, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(ids_that_the_model_lacks, setup, teardown),
        cmocka_unit_test_setup_teardown(counted_labels, setup, teardown),
        cmocka_unit_test_setup_teardown(tiny_shakespeare, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
