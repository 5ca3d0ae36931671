/* Sentences and their translations in two files. */
#include "bpe_fixture.h"

#include "data/check.h"

static const char set[] = "{set: pairs, path: %, source: a.en, target: a.de, test_source: b.en, "
                          "test_target: b.de, tokens: words, time: 4}";

enum { TIME_MAX = 16 };

static void expect_sample(const rp_data *data, rp_split split, uint32_t index, const int32_t *want,
                          const int32_t *labels) {
    int32_t x[2 * TIME_MAX];
    int32_t label[TIME_MAX];
    assert_in_range(data->target_width, 1, TIME_MAX);
    expect_ok(rp_data_batch(data, split, 0, &index, 1, true, x, label, NULL));
    for (size_t i = 0; i < 2 * (size_t)data->target_width; i++) {
        assert_int_equal(x[i], want[i]);
    }
    for (size_t i = 0; i < data->target_width; i++) {
        assert_int_equal(label[i], labels[i]);
    }
}

static void expect_note(const rp_data *data, uint32_t index, const char *part) {
    assert_true(index < data->notes.count);
    if (!strstr(data->notes.text[index], part)) {
        fail_msg("'%s' is not in '%s'", part, data->notes.text[index]);
    }
}

static void samples(void **state) {
    (void)state;
    const char *source;
    const char *target;
    rp_data data;
    write_text("a.en", "a dog\r\na cat runs far away\n\na\n");
    write_text("a.de", "ein Hund\nein Kater rennt weg\nnichts\nein");
    write_text("b.en", "a bird\n");
    write_text("b.de", "ein Vogel\n");
    expect_ok(open_data(&data, set, NULL, true));
    /* 4 a, 5 ein (three each), then by their bytes Hund Kater away cat dog far rennt runs weg */
    assert_int_equal(data.vocab->count, 15);
    assert_string_equal(data.vocab->name[5], "ein");
    assert_true(data.type == RP_I32 && data.sample.dims == 1 && data.pads_labels);
    assert_int_equal(data.sample.dim[0], 8);
    assert_int_equal(data.target_width, 4);
    assert_int_equal(data.classes, 15);
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 3); /* without the pair with an empty line */
    assert_int_equal(data.count[RP_SPLIT_TEST], 1);
    expect_sample(&data, RP_SPLIT_TRAIN, 0, (const int32_t[]){4, 10, 0, 0, 2, 5, 6, 0},
                  (const int32_t[]){5, 6, 3, 0});
    expect_sample(&data, RP_SPLIT_TRAIN, 1, (const int32_t[]){4, 9, 13, 11, 2, 5, 7, 12},
                  (const int32_t[]){5, 7, 12, 3}); /* both are cut */
    expect_sample(&data, RP_SPLIT_TRAIN, 2, (const int32_t[]){4, 0, 0, 0, 2, 5, 0, 0},
                  (const int32_t[]){5, 3, 0, 0});
    expect_sample(&data, RP_SPLIT_TEST, 0, (const int32_t[]){4, 1, 0, 0, 2, 5, 1, 0},
                  (const int32_t[]){5, 1, 3, 0}); /* unknown words */
    assert_int_equal(data.text_tokens, 2 + 2 + 4 + 3 + 1 + 1);
    rp_data_texts(&data, RP_SPLIT_TRAIN, 0, &source, &target);
    assert_string_equal(source, "a dog");
    assert_string_equal(target, "ein Hund");
    rp_data_texts(&data, RP_SPLIT_TRAIN, 2, &source, &target);
    assert_string_equal(target, "ein");
    assert_int_equal(data.notes.count, 2);
    expect_note(&data, 0,
                "a.en: 1 of 3 pairs have a source of more than 4 tokens or a target of more than 3 "
                "and are cut");
    expect_note(&data, 1, "a.en: 1 of 4 pairs are left out");
    expect_ok(rp_data_check(&data));
    rp_data_close(&data);
}

static void lower_case(void **state) {
    (void)state;
    rp_data data;
    write_text("a.en", "The THE \xc3\x84\n");
    write_text("a.de", "Die\n");
    expect_ok(open_data(&data,
                        "{set: pairs, path: %, source: a.en, target: a.de, tokens: words, "
                        "lower: true, time: 4}",
                        NULL, true));
    assert_int_equal(data.vocab->count, RP_TOKENS_SPECIAL + 3);
    assert_string_equal(data.vocab->name[4], "the");
    assert_string_equal(data.vocab->name[6], "\xc3\xa4");
    expect_sample(&data, RP_SPLIT_TRAIN, 0, (const int32_t[]){4, 4, 6, 0, 2, 5, 0, 0},
                  (const int32_t[]){5, 3, 0, 0});
    rp_data_close(&data);
}

/* A literal <end> is five characters; a character that training lacks is unknown. */
static void characters(void **state) {
    (void)state;
    rp_data data;
    write_text("a.en", "a b\n");
    write_text("a.de", "\xc3\xa9\n");
    write_text("b.en", "<b\n");
    write_text("b.de", "<end>\n");
    expect_ok(open_data(&data,
                        "{set: pairs, path: %, source: a.en, target: a.de, test_source: b.en, "
                        "test_target: b.de, tokens: chars, time: 6}",
                        NULL, true));
    assert_int_equal(data.vocab->count, RP_TOKENS_SPECIAL + 4); /* blank a b e-acute */
    assert_true(data.pads_labels);
    expect_sample(&data, RP_SPLIT_TRAIN, 0, (const int32_t[]){5, 4, 6, 0, 0, 0, 2, 7, 0, 0, 0, 0},
                  (const int32_t[]){7, 3, 0, 0, 0, 0});
    expect_sample(&data, RP_SPLIT_TEST, 0, (const int32_t[]){1, 6, 0, 0, 0, 0, 2, 1, 1, 1, 1, 1},
                  (const int32_t[]){1, 1, 1, 1, 1, 3});
    rp_data_close(&data);
}

/* A sentence of blanks has no word; the words of its translation are not learnt. */
static void sentences_without_tokens(void **state) {
    (void)state;
    rp_data data;
    write_text("a.en", " \t\na\n\n");
    write_text("a.de", "nichts\nein\n\n");
    write_text("b.en", "a a a a a\na\na\n");
    write_text("b.de", "ein\n \nein\n");
    expect_ok(open_data(&data, set, NULL, true));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 1);
    assert_int_equal(data.count[RP_SPLIT_TEST], 2);
    assert_int_equal(data.vocab->count, RP_TOKENS_SPECIAL + 2);
    assert_int_equal(data.notes.count, 3);
    expect_note(&data, 0, "a.en: 2 of 3 pairs are left out, because one of their lines has no");
    expect_note(&data, 1, "b.en: 1 of 2 pairs have a source of more than 4 tokens");
    expect_note(&data, 2, "b.en: 1 of 3 pairs are left out");
    rp_data_close(&data);
    write_text("a.en", "a\n \n");
    expect_err(
        open_data(&data,
                  "{set: pairs, path: %, source: a.en, target: c.de, tokens: words, time: 4}", NULL,
                  true),
        RP_ERR_IO);
    write_text("c.de", " \n\n");
    expect_err(
        open_data(&data,
                  "{set: pairs, path: %, source: a.en, target: c.de, tokens: words, time: 4}", NULL,
                  true),
        RP_ERR_FORMAT);
    expect_part("c.de: has no sentences");
    write_text("c.de", " \nein\n");
    expect_err(
        open_data(&data,
                  "{set: pairs, path: %, source: a.en, target: c.de, tokens: words, time: 4}", NULL,
                  true),
        RP_ERR_FORMAT);
    expect_part("a.en: no sentence has a translation in ");
}

/* A blank is added before each piece of a text, and the token '#' is between the pieces. */
static void more_ids_than_bytes(void **state) {
    (void)state;
    enum { BLANK = 224, MARK = 4, HASH = 6 };
    static const int32_t x[16] = {BLANK, MARK, HASH,  BLANK, MARK, HASH,  BLANK, MARK,
                                  2,     HASH, BLANK, MARK,  HASH, BLANK, MARK,  0};
    static const int32_t labels[8] = {HASH, BLANK, MARK, HASH, BLANK, MARK, 3, 0};
    char path[256];
    rp_data data;
    write_bpe("learnt.json", "\"add_prefix_space\":false", "\"add_prefix_space\":true");
    (void)snprintf(path, sizeof path, "%s", in_folder("bpe.json"));
    copy_with(path, "bpe.json", "\"special\":true}],",
              "\"special\":true},{\"id\":6,\"content\":\"#\",\"special\":true}],");
    write_text("a.en", "!#!#!\n");
    write_text("a.de", "#!#!\n");
    expect_ok(open_data(&data,
                        "{set: pairs, path: %, source: a.en, target: a.de, tokens: %/bpe.json, "
                        "time: 8}",
                        NULL, true));
    expect_sample(&data, RP_SPLIT_TRAIN, 0, x, labels);
    rp_data_close(&data);
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *set, *says;
    } cases[] = {
        {"{set: pairs, path: %, source: a.en, target: b.de, tokens: words, time: 4}",
         "b.de: has 1 lines, expected 2 as in"},
        {"{set: pairs, path: %, source: a.en, tokens: words, time: 4}",
         "the key 'target' is needed"},
        {"{set: pairs, path: %, source: a.en, target: a.de, test_source: b.en, tokens: words, "
         "time: "
         "4}",
         "both `test_source` and `test_target`"},
        {"{set: pairs, path: %, source: a.en, target: a.de, tokens: bytes, time: 4}",
         "tokens: expected chars, words or a tokenizer.json"},
        {"{set: pairs, path: %, source: a.en, target: a.de, tokens: words, time: 1}",
         "`time`: expected at least 2"},
        {"{set: pairs, path: %, source: empty, target: empty, tokens: words, time: 4}",
         "empty: has no sentences"},
        {"{set: pairs, path: %, source: none, target: a.de, tokens: words, time: 4}", "none"},
    };
    write_text("a.en", "a\nb\n");
    write_text("a.de", "a\nb\n");
    write_text("b.en", "a\n");
    write_text("b.de", "a\n");
    write_text("empty", "\n\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_data data;
        assert_int_not_equal(open_data(&data, cases[i].set, NULL, true), RP_OK);
        expect_part(cases[i].says);
        rp_data_close(&data);
    }
    rp_data data;
    const rp_data_input odd = {.shape = rp_shape_1(7), .type = RP_I32};
    assert_int_not_equal(
        open_for(&data, "{set: pairs, path: %, source: a.en, target: a.de, tokens: words}", &odd,
                 true, 1),
        RP_OK);
    expect_part("a source and a target of the same length, but the model's input has 7 ids");
    rp_data_close(&data);
    const rp_data_input uneven = {
        .shape = rp_shape_1(8), .type = RP_I32, .parts = 2, .part = {{"a", 3}, {"b", 5}}};
    assert_int_not_equal(
        open_for(&data, "{set: pairs, path: %, source: a.en, target: a.de, tokens: words}", &uneven,
                 true, 1),
        RP_OK);
    expect_part("of the same length, but the model's inputs have 3 and 5 ids");
    rp_data_close(&data);
    const rp_data_input eight = {.shape = rp_shape_1(8), .type = RP_I32};
    expect_err(open_for(&data, cases[4].set, &eight, true, 1), RP_ERR_USAGE);
    expect_part("time: expected 4, because the model's input is [8], so source and target have 4 "
                "ids each, found 1");
    rp_data_close(&data);
    expect_ok(open_for(&data, "{set: pairs, path: %, source: a.en, target: a.de, tokens: words}",
                       &eight, true, 1));
    assert_int_equal(data.target_width, 4);
    rp_data_close(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(samples, setup, teardown),
        cmocka_unit_test_setup_teardown(lower_case, setup, teardown),
        cmocka_unit_test_setup_teardown(characters, setup, teardown),
        cmocka_unit_test_setup_teardown(sentences_without_tokens, setup, teardown),
        cmocka_unit_test_setup_teardown(more_ids_than_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(refusals, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
