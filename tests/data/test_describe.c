/* data.json is written and read back as the same set; what is not one is refused. */
#include "npy_fixture.h"

#include "data/describe.h"

static rp_err read_text(const char *text, rp_description *out) {
    write_text("data.json", text);
    return rp_data_read_description(&arena, in_folder("data.json"), out);
}

static void expect_names(const char *const *got, const char *const *want, uint32_t count) {
    assert_int_equal(got != NULL, want != NULL);
    for (uint32_t i = 0; want && i < count; i++) {
        assert_string_equal(got[i], want[i]);
    }
}

static void expect_field(const rp_field *got, const rp_field *want) {
    assert_int_equal(got->column, want->column);
    assert_int_equal(got->name != NULL, want->name != NULL);
    if (want->name) {
        assert_string_equal(got->name, want->name);
    }
    assert_int_equal(got->texts.count, want->texts.count);
    expect_names(got->texts.name, want->texts.name, want->texts.count);
    assert_true(got->mean == want->mean); /* to the bit */
}

static void round_trip(const char *keys, const rp_shape *input, bool class_target) {
    char path[256];
    rp_data data;
    rp_description got;
    expect_ok(open_data(&data, keys, input, class_target));
    (void)snprintf(path, sizeof path, "%s", in_folder("data.json"));
    expect_ok(rp_data_describe(&data, path));
    expect_ok(rp_data_read_description(&arena, path, &got));
    assert_string_equal(got.set, data.kind->name);
    assert_true(rp_shape_equal(&got.sample, &data.sample));
    assert_int_equal(got.images, data.channels == 1 || data.channels == 3);
    assert_int_equal(got.classes, data.classes);
    assert_int_equal(got.target_width, data.target_width);
    expect_names(got.class_name, data.class_name, data.classes);
    expect_names(got.y_name, data.y_name, data.target_width);
    assert_int_equal(got.norm.known, data.norm.known);
    if (data.norm.known) { /* to the bit */
        const size_t bytes = data.norm.groups * sizeof *data.norm.mean;
        assert_int_equal(got.norm.groups, data.norm.groups);
        assert_memory_equal(got.norm.mean, data.norm.mean, bytes);
        assert_memory_equal(got.norm.deviation, data.norm.deviation, bytes);
    }
    assert_int_equal(got.columns, data.columns);
    assert_int_equal(got.delimiter, data.columns ? data.delimiter : ',');
    assert_int_equal(got.fields.count, data.fields ? data.fields->count : 0);
    for (uint32_t i = 0; i < got.fields.count; i++) {
        expect_field(&got.fields.field[i], &data.fields->field[i]);
    }
    expect_names(got.fields.missing.name, data.fields ? data.fields->missing.name : NULL,
                 got.fields.missing.count);
    rp_data_close(&data);
}

static void sets_come_back_as_they_were(void **state) {
    (void)state;
    const rp_shape none = {0};
    const rp_shape two = rp_shape_1(2);
    const char header[] = "id;width;species;height\n1;0.1;a;2\n2;0.7;\"b, c\";3\n";
    const char plain[] = "1,2,0.5\n3,4,0.25\n";
    round_trip("{set: glyphs, train: 20, test: 7, size: 12}", NULL, true);
    write_text("train.csv", header);
    round_trip("{set: table, path: %, delimiter: semicolon, target: species, drop: id, "
               "normalise: measured}",
               &none, true);
    const char texts[] = "n,colour,size,kind\n0.1,red,S,a\nNA,blue,M,b\n0.7,red,NA,a\n";
    write_text("train.csv", texts);
    round_trip("{set: table, path: %, missing: [NA], normalise: measured}", &none, true);
    write_text("train.csv", plain);
    round_trip("{set: table, path: %}", &two, false);
}

static void describe_set(const char *keys, const rp_data_input *input, rp_data *data,
                         rp_description *got) {
    expect_ok(open_for(data, keys, input, true, 7));
    expect_ok(rp_data_describe(data, in_folder("data.json")));
    expect_ok(rp_data_read_description(&arena, in_folder("data.json"), got));
    assert_true(got->type == RP_I32 && got->tokens == data->tokens);
    assert_int_equal(got->target_width, data->target_width);
    assert_int_equal(got->classes, data->classes);
}

static void vocabularies_come_back(void **state) {
    (void)state;
    static const char *const keys[] = {
        "{set: text, path: %, tokens: bytes, time: 2}",
        "{set: text, path: %, tokens: chars, time: 2}",
        "{set: text, path: %, tokens: words, time: 2, lower: true}",
        "{set: text, path: %, tokens: words, time: 2, split: space}",
        "{set: tsv, path: %, text: 0, label: 1, tokens: chars, time: 2}",
        "{set: pairs, path: %, source: a.en, target: a.de, tokens: chars, time: 2}",
        "{set: pairs, path: %, source: a.en, target: a.de, tokens: words, lower: true, time: 2}",
    };
    static const char *const tokens[] = {"Ab", "\"", "b\n", "\xc3\xa4", "zz", ","};
    rp_data data;
    rp_description got;
    write_text("train.txt", "Ab \"b\n, \xc3\xa4 \\ \x01 Ab");
    write_text("test.txt", "b b \xc3\xa4 b");
    write_text("train.tsv", "Ab \"\\\x01\t0\nb\t1\n");
    write_text("a.en", "Ab zz\n\"");
    write_text("a.de", "\xc3\xa4, \\\x01\n<end>");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        describe_set(keys[i], NULL, &data, &got);
        const rp_vocab *now = data.vocab;
        assert_int_equal(got.vocab.rules.kind, now->rules.kind);
        assert_int_equal(got.vocab.rules.lower, now->rules.lower);
        assert_int_equal(got.vocab.rules.by_space, now->rules.by_space);
        assert_int_equal(got.vocab.special, now->special);
        assert_int_equal(got.vocab.count, now->count);
        expect_names(got.vocab.name, now->name, now->count);
        for (size_t k = 0; k < sizeof tokens / sizeof *tokens; k++) {
            assert_int_equal(rp_vocab_find(&got.vocab, tokens[k], strlen(tokens[k])),
                             rp_vocab_find(now, tokens[k], strlen(tokens[k])));
        }
        expect_ok(rp_data_check_vocab(&data, in_folder("data.json")));
        rp_data_close(&data);
    }
    const int32_t ids[] = {1, 2, 3, 4};
    const rp_data_input input = {.shape = rp_shape_1(2), .type = RP_I32};
    put_npy("x_train.npy", "<i4", "(2, 2)", ids, sizeof ids);
    put_npy("y_train.npy", "<i4", "(2, 2)", ids, sizeof ids);
    describe_set("{set: npy, path: %}", &input, &data, &got);
    assert_true(got.vocab.rules.kind == RP_TOKENS_IDS && !got.vocab.name);
    expect_ok(rp_data_check_vocab(&data, in_folder("data.json")));
    rp_data_close(&data);
}

/* Names and sizes of the model's inputs, in their order. */
static void several_inputs_come_back(void **state) {
    (void)state;
    static const rp_data_input input = {
        .shape = {1, {5}}, .type = RP_I32, .parts = 2, .part = {{"source", 3}, {"data", 2}}};
    static const char form[] = "{\"version\": 1, \"set\": \"npy\", \"sample\": [5], %s}";
    static const char nine[] = "\"inputs\": {\"a\": 1, \"b\": 1, \"c\": 1, \"d\": 1, \"e\": 1, "
                               "\"f\": 1, \"g\": 1, \"h\": 1, \"i\": 1}";
    static const char *const bad[] = {"\"inputs\": [3, 2]",
                                      "\"inputs\": {\"a\": 5}",
                                      "\"inputs\": {\"a\": 3, \"b\": 3}",
                                      "\"inputs\": {\"a\": 5, \"b\": 0}",
                                      "\"inputs\": {\"a\": 4294967296, \"b\": 1}",
                                      nine};
    const int32_t ids[10] = {1};
    char text[300];
    rp_data data;
    rp_description got;
    put_npy("x_train.npy", "<i4", "(2, 5)", ids, sizeof ids);
    put_npy("y_train.npy", "<i4", "(2, 5)", ids, sizeof ids);
    describe_set("{set: npy, path: %}", &input, &data, &got);
    assert_int_equal(got.parts, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_string_equal(got.part[i].name, input.part[i].name);
        assert_int_equal(got.part[i].size, input.part[i].size);
    }
    rp_data_close(&data);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)snprintf(text, sizeof text, form, bad[i]);
        expect_err(read_text(text, &got), RP_ERR_FORMAT);
        expect_part("`inputs`: expected 2 to 8 names");
    }
}

/* The same ids would mean other tokens. */
static void another_vocabulary_is_refused(void **state) {
    (void)state;
    static const char first[] = "{set: text, path: %, tokens: words, time: 1}";
    static const struct {
        const char *text, *keys, *part; /* part NULL: accepted */
    } cases[] = {
        {"a a b b c d", first, NULL},
        {"b b b a a c d", first, "token 4 is 'b', but 'a' in "},
        {"a a b b c c", first, "the number of tokens is 7, but 8 in "},
        {"a a b b c d", "{set: text, path: %, tokens: words, time: 1, lower: true}",
         "`lower` is true, but false in "},
        {"a a b b c d", "{set: text, path: %, tokens: words, time: 1, split: space}",
         "`split` is space, but punctuation in "},
        {"a a b b c d", "{set: text, path: %, tokens: chars, time: 1}",
         "`tokens` is chars, but words in "},
    };
    char path[256];
    rp_data data;
    rp_description got;
    write_text("test.txt", "a b");
    write_text("train.txt", "a a b b c d");
    describe_set(first, NULL, &data, &got);
    rp_data_close(&data);
    write_text("run.yaml", "");
    (void)snprintf(path, sizeof path, "%s", in_folder("data.json"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text("train.txt", cases[i].text);
        expect_ok(open_data(&data, cases[i].keys, NULL, true));
        for (int weights = 0; weights < 2; weights++) {
            const rp_err err = weights
                                   ? rp_data_check_weights(&data, in_folder("weights.safetensors"))
                                   : rp_data_check_vocab(&data, path);
            assert_int_equal(err, cases[i].part ? RP_ERR_USAGE : RP_OK);
            if (cases[i].part) {
                expect_part(cases[i].part);
            }
        }
        if (i + 1 < sizeof cases / sizeof *cases) {
            rp_data_close(&data);
        }
    }
    /* Nothing to compare with: no file, no run folder, or a set without ids. */
    expect_ok(rp_data_check_vocab(&data, in_folder("none.json")));
    assert_int_equal(unlink(in_folder("run.yaml")), 0);
    expect_ok(rp_data_check_weights(&data, in_folder("weights.safetensors")));
    write_text("data.json", "{\"set\": \"table\", \"sample\": [2]}");
    expect_ok(rp_data_check_vocab(&data, path));
    write_text("data.json", "{");
    expect_err(rp_data_check_vocab(&data, path), RP_ERR_FORMAT);
    rp_data_close(&data);
}

static void former_versions_are_read(void **state) {
    (void)state;
    rp_description got;
    expect_ok(read_text("{\"version\": 1, \"set\": \"images\", \"sample\": [3, 4, 5], "
                        "\"target_width\": 1, \"classes\": 2}",
                        &got));
    assert_true(got.images && !got.norm.known && !got.class_name && got.fields.count == 0);
    expect_ok(read_text("{\"set\": \"table\", \"sample\": [3, 4, 5]}", &got));
    assert_true(!got.images && got.columns == 0 && got.delimiter == ',');
}

#define PAIRS(more)                                                                                \
    "{\"set\": \"pairs\", \"sample\": [4], \"target_width\": 2, \"classes\": 5, "                  \
    "\"token_count\": 5, \"type\": \"i32\", " more "}"
#define NAMES(first) "\"vocab\": [\"" first "\", \"<unknown>\", \"<begin>\", \"<end>\", \"a\"]"

#define TEXT(more) "{\"set\": \"text\", \"sample\": [2], \"type\": \"i32\", " more "}"

/* Files that are refused, and a part of the message. */
static const struct {
    const char *text, *part;
} bad[] = {
    {"{", "data.json:1:"},
    {"[1]", "`set`"},
    {"{\"set\": \"table\"}", "`sample`"},
    {"{\"set\": \"table\", \"sample\": [0]}", "`sample`"},
    {"{\"set\": \"table\", \"sample\": [70000, 70000]}", "`sample`"},
    {"{\"set\": \"table\", \"sample\": [1, 1, 1, 1, 1, 1, 1]}", "`sample`"},
    {"{\"set\": \"table\", \"sample\": [2], \"classes\": -1}", "`classes`"},
    {"{\"set\": \"table\", \"sample\": [2], \"classes\": 99999999}", "`classes`"},
    {"{\"set\": \"table\", \"sample\": [2], \"classes\": 2, \"class_names\": [\"a\"]}",
     "`class_names`: expected a list of 2 names"},
    {"{\"set\": \"table\", \"sample\": [2], \"x_names\": [\"a\", 1]}", "entry 1 is not a text"},
    {"{\"set\": \"table\", \"sample\": [2], \"mean\": [1, 2, 3], \"std\": [1, 2, 3]}", "`mean`"},
    {"{\"set\": \"table\", \"sample\": [2], \"mean\": [1, 2], \"std\": [1]}",
     "`std`: expected a list of 2"},
    {"{\"set\": \"table\", \"sample\": [2], \"mean\": [1, 2], \"std\": [1, 0]}",
     "`std`: expected numbers above 0"},
    {"{\"set\": \"table\", \"sample\": [2], \"mean\": [1, 1e99], \"std\": [1, 1]}",
     "`mean`: entry 1 is not a finite number"},
    {"{\"set\": \"table\", \"sample\": [2], \"delimiter\": \"x\"}", "`delimiter`"},
    {"{\"set\": \"table\", \"sample\": [2], \"columns\": 3, \"x_columns\": [1]}", "`x_columns`"},
    {"{\"set\": \"table\", \"sample\": [2], \"columns\": 3, \"x_columns\": [1, 4]}", "`x_columns`"},
    {"{\"set\": \"table\", \"sample\": [2], \"columns\": 3, \"x_columns\": [1, 1], "
     "\"x_texts\": [\"a\"]}",
     "`x_columns, x_texts`"},
    {"{\"set\": \"table\", \"sample\": [2], \"columns\": 3, \"x_columns\": [1, 1], "
     "\"x_texts\": [\"a\", 2]}",
     "`x_texts`"},
    {"{\"set\": \"table\", \"sample\": [2], \"columns\": 3, \"x_columns\": [1, 1], "
     "\"x_texts\": [\"a\", \"a\"]}",
     "`x_texts`: expected the texts of a column sorted, and each once"},
    {"{\"set\": \"table\", \"sample\": [2], \"columns\": 3, \"x_columns\": [1, 1], "
     "\"x_texts\": [\"b\", \"a\"]}",
     "`x_texts`: expected the texts of a column sorted, and each once"},
    {"{\"set\": \"table\", \"sample\": [2], \"missing\": \"NA\"}", "`missing`: expected a list"},
    {"{\"set\": \"table\", \"sample\": [2], \"columns\": 3, \"x_columns\": [1, 2], "
     "\"x_fill\": [1, 1e99]}",
     "`x_fill`: entry 1 is not a finite number"},
    {"{\"set\": \"npy\", \"sample\": [2], \"bytes\": 1}", "`bytes`: expected true or false"},
    {"{\"set\": \"npy\", \"sample\": [2], \"type\": \"f64\"}", "`type`: expected f32 or i32"},
    {"{\"set\": \"npy\", \"sample\": [2], \"type\": \"i32\"}", "`tokens`: expected ids, bytes,"},
    {TEXT("\"tokens\": \"ids\""), "`token_count`"},
    {TEXT("\"tokens\": \"bytes\", \"token_count\": 255"), "`token_count`"},
    {TEXT("\"tokens\": \"ids\", \"token_count\": 99999999"), "`token_count`"},
    {TEXT("\"tokens\": \"chars\", \"token_count\": 2"), "`vocab`: expected a list of texts"},
    {TEXT("\"tokens\": \"ids\", \"token_count\": 1, \"vocab\": [\"a\"]"), "`vocab`: expected"},
    {TEXT("\"tokens\": \"chars\", \"token_count\": 2, \"vocab\": [\"a\"]"),
     "`vocab`: expected a list of 2 names"},
    {TEXT("\"tokens\": \"chars\", \"token_count\": 2, \"vocab\": [\"b\", \"a\"]"),
     "`vocab`: entry 1 of the vocabulary: expected one character, after those before"},
    {TEXT("\"tokens\": \"chars\", \"token_count\": 1, \"vocab\": [\"ab\"]"),
     "`vocab`: entry 0 of the vocabulary"},
    {TEXT("\"tokens\": \"chars\", \"token_count\": 1, \"special\": 3, \"vocab\": [\"a\"]"),
     "`special`: expected 0 or 4"},
    {TEXT("\"tokens\": \"words\", \"token_count\": 1, \"vocab\": [\"a\"]"), "`lower`"},
    {TEXT("\"tokens\": \"words\", \"lower\": true, \"token_count\": 1, \"vocab\": [\"a\"]"),
     "`split`"},
    {TEXT("\"tokens\": \"words\", \"lower\": true, \"split\": \"space\", \"token_count\": 2, "
          "\"vocab\": [\"a\", \"a\"]"),
     "`vocab`: entry 1 of the vocabulary: expected a word, and each word once"},
    {"{\"set\": \"pairs\", \"sample\": [2]}", "data.json: `type`: expected i32"},
    {PAIRS("\"tokens\": \"ids\", \"special\": 0"), "data.json: `tokens`: expected chars, words or"},
    {PAIRS("\"tokens\": \"chars\", \"special\": 0, \"vocab\": [\"a\", \"b\", \"c\", \"d\", \"e\"]"),
     "data.json: `special`: expected 4, because `set` is pairs"},
    {PAIRS("\"tokens\": \"chars\", \"special\": 4, " NAMES("x")),
     "data.json: `vocab`: token 0 is 'x', expected '<padding>'"},
    {"{\"set\": \"pairs\", \"sample\": [5], \"target_width\": 2, \"classes\": 5, \"token_count\": "
     "5, "
     "\"type\": \"i32\", \"tokens\": \"chars\", \"special\": 4, " NAMES("<padding>") "}",
     "data.json: `sample`: expected one size, twice `target_width`"},
    {"{\"set\": \"pairs\", \"sample\": [4], \"target_width\": 2, \"classes\": 4, \"token_count\": "
     "5, "
     "\"type\": \"i32\", \"tokens\": \"chars\", \"special\": 4, " NAMES("<padding>") "}",
     "data.json: `classes`: expected the same as `token_count`"},
    {"{\"set\": \"npy\", \"sample\": [2], \"channels_last\": true}", "`channels_last`"},
    {"{\"set\": \"npy\", \"sample\": [2], \"target_width\": 0, \"classes\": 3}",
     "`target_width`: expected at least 1"},
};

static void what_is_no_description_is_refused(void **state) {
    (void)state;
    rp_description got;
    expect_ok(read_text(PAIRS("\"tokens\": \"chars\", \"special\": 4, " NAMES("<padding>")), &got));
    assert_int_equal(got.vocab.special, 4);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_err(read_text(bad[i].text, &got), RP_ERR_FORMAT);
        expect_part(bad[i].part);
    }
    expect_err(rp_data_read_description(&arena, in_folder("none.json"), &got), RP_ERR_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sets_come_back_as_they_were, setup, teardown),
        cmocka_unit_test_setup_teardown(vocabularies_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(several_inputs_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(another_vocabulary_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(former_versions_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_description_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
