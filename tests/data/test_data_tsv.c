/* Texts and their classes in columns between tabs. */
#include "fixture.h"

#include "data/check.h"

static void read_one(const rp_data *data, rp_split split, uint32_t index, int32_t *x,
                     int32_t *label) {
    expect_ok(rp_data_batch(data, split, 0, &index, 1, true, x, label, NULL));
}

static void expect_sample(const rp_data *data, rp_split split, uint32_t index, const int32_t *ids,
                          int32_t class) {
    int32_t x[16];
    int32_t label = -1;
    const uint32_t time = data->sample.dim[0];
    assert_true(data->sample.dims == 1 && time <= 16);
    read_one(data, split, index, x, &label);
    for (uint32_t i = 0; i < time; i++) {
        assert_int_equal(x[i], ids[i]);
    }
    assert_int_equal(label, class);
}

static void names(const rp_data *data, const char *const *want, uint32_t count) {
    assert_int_equal(data->vocab->count, count);
    for (uint32_t i = 4; i < count; i++) {
        assert_string_equal(data->vocab->name[i], want[i - 4]);
    }
}

static void words_and_numbered_classes(void **state) {
    (void)state;
    rp_data data;
    write_text("train.tsv", "a good film\t1\na bad , bad film !\t0\r\n\n\"good\t1\n \t3");
    write_text("test.tsv", "film unseen\t0\n");
    expect_ok(open_data(&data, "{set: tsv, path: %, text: 0, label: 1, tokens: words, time: 4}",
                        NULL, true));
    /* a bad film good 2 each, then ! " , */
    static const char *const want[] = {"a", "bad", "film", "good", "!", "\"", ","};
    names(&data, want, 11);
    assert_true(data.type == RP_I32 && data.tokens == 11 && data.target_width == 1);
    assert_int_equal(data.classes, 4);
    assert_null(data.class_name);
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 4);
    assert_int_equal(data.count[RP_SPLIT_TEST], 1);
    expect_sample(&data, RP_SPLIT_TRAIN, 0, (const int32_t[]){4, 7, 6, 0}, 1);
    expect_sample(&data, RP_SPLIT_TRAIN, 1, (const int32_t[]){4, 5, 10, 5}, 0); /* cut */
    expect_sample(&data, RP_SPLIT_TRAIN, 2, (const int32_t[]){9, 7, 0, 0}, 1);
    expect_sample(&data, RP_SPLIT_TRAIN, 3, (const int32_t[]){0, 0, 0, 0}, 3);
    expect_sample(&data, RP_SPLIT_TEST, 0, (const int32_t[]){6, 1, 0, 0}, 0);
    assert_int_equal(data.text_tokens, 9);
    expect_close(data.padding, 7 / 16.0, 1e-15, 0);
    assert_int_equal(data.notes.count, 3);
    assert_non_null(
        strstr(data.notes.text[0], "1 of 4 texts are longer than 4 tokens and are cut"));
    assert_non_null(strstr(data.notes.text[1], "1 of 4 texts have no token"));
    assert_non_null(strstr(data.notes.text[2], "1 of 4 classes have no training sample: 2"));
    expect_ok(rp_data_check(&data));
    rp_data_close(&data);
}

static void named_columns_and_classes(void **state) {
    (void)state;
    rp_data data;
    write_text("a.tsv", "\xef\xbb\xbfkind\tid\ttext\npos\t1\tA b\nneg\t2\tB b C\n");
    write_text("b.tsv", "text\tkind\tid\nb c\tneg\t7\n");
    expect_ok(open_data(&data,
                        "{set: tsv, path: %/a.tsv, test: %/b.tsv, text: text, label: kind, "
                        "tokens: words, lower: true, time: 3}",
                        NULL, true));
    names(&data, (const char *const[]){"b", "a", "c"}, 7);
    assert_int_equal(data.classes, 2);
    assert_string_equal(data.class_name[0], "neg");
    assert_string_equal(data.class_name[1], "pos");
    expect_sample(&data, RP_SPLIT_TRAIN, 0, (const int32_t[]){5, 4, 0}, 1);
    expect_sample(&data, RP_SPLIT_TRAIN, 1, (const int32_t[]){4, 4, 6}, 0);
    expect_sample(&data, RP_SPLIT_TEST, 0, (const int32_t[]){4, 6, 0}, 0);
    rp_data_close(&data);
    expect_ok(open_data(&data,
                        "{set: tsv, path: %/a.tsv, text: text, label: kind, tokens: words, "
                        "time: 3, classes: [pos, neg, none], vocab: 5}",
                        NULL, true));
    assert_int_equal(data.classes, 3);
    assert_string_equal(data.test_path, "data.test");
    names(&data, (const char *const[]){"b"}, 5);
    expect_sample(&data, RP_SPLIT_TRAIN, 0, (const int32_t[]){1, 4, 0}, 0);
    expect_sample(&data, RP_SPLIT_TRAIN, 1, (const int32_t[]){1, 4, 1}, 1);
    rp_data_close(&data);
}

static void characters_and_bytes(void **state) {
    (void)state;
    rp_data data;
    write_text("train.tsv", "0\tb\xc3\xa4\n1\tab\n");
    write_text("test.tsv", "1\tax\n");
    expect_ok(open_data(&data, "{set: tsv, path: %, text: 1, label: 0, tokens: chars, time: 3}",
                        NULL, true));
    names(&data, (const char *const[]){"a", "b", "\xc3\xa4"}, 7);
    expect_sample(&data, RP_SPLIT_TRAIN, 0, (const int32_t[]){5, 6, 0}, 0);
    expect_sample(&data, RP_SPLIT_TEST, 0, (const int32_t[]){4, 1, 0}, 1); /* x is unknown */
    rp_data_close(&data);
    expect_ok(open_data(&data, "{set: tsv, path: %, text: 1, label: 0, tokens: bytes, time: 4}",
                        NULL, true));
    assert_int_equal(data.tokens, 256);
    expect_sample(&data, RP_SPLIT_TRAIN, 0, (const int32_t[]){'b', 0xc3, 0xa4, 0}, 0);
    expect_sample(&data, RP_SPLIT_TEST, 0, (const int32_t[]){'a', 'x', 0, 0}, 1);
    rp_data_close(&data);
}

static void bad_keys(void **state) {
    (void)state;
    static const struct {
        const char *keys;
        const char *part;
    } bad[] = {
        {"label: 1, tokens: words, time: 2", "text"},
        {"text: 0, tokens: words, time: 2", "label"},
        {"text: 0, label: 1, time: 2", "tokens"},
        {"text: 0, label: 1, tokens: words", "time"},
        {"text: [0], label: 1, tokens: words, time: 2",
         "text: expected a column: its number from 0, or its name in the first line"},
        {"text: 0, label: 0, tokens: words, time: 2", "label: expected another column than `text`"},
        {"text: 0, label: 2, tokens: words, time: 2",
         "label: expected a column from 0 to 1, because the lines of "},
        {"text: words, label: 1, tokens: words, time: 2", "text: the first line of "},
        {"text: 0, label: 1, tokens: words, time: 2, normalise: none",
         "normalise: does not apply to token ids"},
        {"text: 0, label: 1, tokens: words, time: 2, augment: {mixup: 1}",
         "augment: does not apply to token ids"},
        {"text: 0, label: 1, tokens: bytes, time: 2, vocab: 100",
         "vocab: applies only to `tokens: words`"},
        {"text: 0, label: 1, tokens: words, time: 2, header: true", "header: unknown key"},
    };
    char keys[256];
    rp_data data;
    write_text("train.tsv", "a b\t1\nc d\t0\n");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)snprintf(keys, sizeof keys, "{set: tsv, path: %%, %s}", bad[i].keys);
        expect_err(open_data(&data, keys, NULL, true), RP_ERR_USAGE);
        expect_part(bad[i].part);
    }
    expect_err(open_data(&data, "{set: tsv, path: %, text: 0, label: 1, tokens: words, time: 2}",
                         NULL, false),
               RP_ERR_USAGE);
    expect_part("data set 'tsv' has classes, so it needs `loss: cross-entropy`");
}

static void bad_files(void **state) {
    (void)state;
    static const struct {
        const char *train, *test, *part;
    } bad[] = {
        {"a\t1\nb\n", NULL, "train.tsv:2: expected 2 columns between tabs as in the lines before"},
        {"a\t1\nb\tc\t0\n", NULL,
         "train.tsv:2: expected 2 columns between tabs as in the lines "
         "before, found 3"},
        {"a\t1\nb\tx\n", NULL, "train.tsv:2:2: expected a class from 0 to 65535, found 'x'"},
        {"a\t1\nb\t\n", NULL, "train.tsv:2:2: expected a class, with at most 1000 bytes"},
        {"a\t65535\nb\t65536\n", NULL, "train.tsv:2:2: expected a class from 0 to 65535, found "},
        {"a\tx\nb\t1\n", NULL,
         "train.tsv:2:2: expected the name of a class, as in the lines before (if the first line "
         "has names of columns, give these as `text` and `label`), found '1'"},
        {"\n\n", NULL, "train.tsv: has no lines of data"},
        {"a\t1\n\xff\t1\n", NULL, "train.tsv:2: byte 4 of the file is 0xff"},
        {"a\t1\n", "a\t2\n", "test.tsv:1:2: expected a class of the training file, from 0 to 1"},
        {"a\tx\n", "a\ty\n", "test.tsv:1:2: expected a class of the training file, found 'y'"},
        {"a\tx\n", "a\n", "label: expected a column from 0 to 0, because the lines of "},
    };
    rp_data data;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_text("train.tsv", bad[i].train);
        write_text("test.tsv", bad[i].test ? bad[i].test : "a\t1\n");
        const rp_err err = open_data(
            &data, "{set: tsv, path: %, text: 0, label: 1, tokens: words, time: 2}", NULL, true);
        assert_true(err == RP_ERR_FORMAT || err == RP_ERR_USAGE);
        expect_part(bad[i].part);
    }
    write_text("train.tsv", "text\tkind\n");
    expect_err(open_data(&data,
                         "{set: tsv, path: %, text: text, label: kind, tokens: words, time: 2}",
                         NULL, true),
               RP_ERR_FORMAT);
    expect_part("train.tsv: has no lines of data");
    write_text("train.tsv", "text\ttext\tkind\na\tb\t1\n");
    expect_err(open_data(&data,
                         "{set: tsv, path: %, text: text, label: kind, tokens: words, time: 2}",
                         NULL, true),
               RP_ERR_USAGE);
    expect_part("has more than one column 'text'");
    expect_err(open_data(&data,
                         "{set: tsv, path: %, text: 0, label: 2, tokens: words, time: 2, "
                         "classes: [a, b]}",
                         NULL, true),
               RP_ERR_FORMAT);
    expect_part("train.tsv:1:3: expected one of the names in `classes`, found 'kind'");
}

/* SST-2: 6,920 sentences, of which 67 % of the places are padding. */
static void sst2(void **state) {
    (void)state;
    char keys[1200];
    rp_data data;
    const char *path = real_data("sst2");
    if (!path) {
        skip();
    }
    (void)snprintf(keys, sizeof keys,
                   "{set: tsv, path: '%s/train.tsv', test: '%s/dev.tsv', text: 0, label: 1, "
                   "tokens: words, split: space, vocab: 1000000, time: 56}",
                   path, path);
    expect_ok(open_data(&data, keys, NULL, true));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 6920);
    assert_int_equal(data.count[RP_SPLIT_TEST], 872);
    assert_int_equal(data.classes, 2);
    assert_int_equal(data.tokens, 13838 + 4);
    assert_int_equal(data.text_tokens, 128096);
    expect_close(data.padding, 0.6694467382328654, 1e-12, 0);
    assert_int_equal(data.notes.count, 0);
    rp_data_close(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(words_and_numbered_classes, setup, teardown),
        cmocka_unit_test_setup_teardown(named_columns_and_classes, setup, teardown),
        cmocka_unit_test_setup_teardown(characters_and_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_files, setup, teardown),
        cmocka_unit_test_setup_teardown(sst2, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
