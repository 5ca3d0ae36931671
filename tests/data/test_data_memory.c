/* Every allocation of opening, reading and describing a set may fail: an error comes out, and
 * nothing is left open or unfreed (which the sanitizers' build sees). */
#include "npy_fixture.h"
#include "picture.h"

#include "data/check.h"
#include "data/describe.h"

static rp_err use_set(const char *keys) {
    rp_data data = {0};
    rp_node *node;
    rp_arena own;
    rp_err err;
    rp_arena_init(&own, "torture", 0);
    RP_TRY(rp_config_read_text(&own, keys, strlen(keys), "run.yaml", &node));
    RP_TRY(rp_data_open(&own, &data, node, NULL, true, 7));
    RP_TRY(rp_data_check(&data));
    RP_TRY(rp_data_describe(&data, in_folder("data.json")));
fail:
    if (data.kind) {
        rp_data_close(&data);
    }
    rp_arena_finish(&own);
    return err;
}

/* `rest`: keys behind `set` and `path`. */
static void torture(const char *set, const char *rest) {
    char keys[512];
    long count = 0;
    (void)snprintf(keys, sizeof keys, "{set: %s, path: %s%s}", set, folder, rest);
    expect_ok(use_set(keys));
    for (long n = 1;; n++) {
        rp_arena_fail_at(n);
        const rp_err err = use_set(keys);
        const bool failed = rp_arena_has_failed();
        rp_arena_fail_at(0);
        if (!failed) {
            expect_ok(err);
            break;
        }
        assert_int_equal(err, RP_ERR_MEMORY);
        count++;
    }
    assert_true(count > 20);
}

static void tables(void **state) {
    (void)state;
    static const char rows[] = "a,b,c\n1,red,\"u\"\n3,blue,v\nNA,red,w\n";
    write_file("train.csv", rows, sizeof rows - 1);
    write_file("test.csv", rows, sizeof rows - 1);
    torture("table", ", normalise: measured, validation: 1, missing: NA");
}

static void images(void **state) {
    (void)state;
    static uint8_t pixels[6 * 5 * 3];
    fill_picture(pixels, 6, 5, 3);
    mkdir(in_folder("a"), 0700);
    mkdir(in_folder("b"), 0700);
    write_png("a/x.png", pixels, 6, 5, PNG_COLOR_TYPE_RGB, 8, 15, false);
    write_jpeg("b/y.jpg", pixels, 6, 5);
    torture("images", ", size: 4, workers: 1");
}

static void arrays(void **state) {
    (void)state;
    const float x[12] = {1};
    const int32_t y[] = {0, 1};
    put_npy("x_train.npy", "<f4", "(2, 2, 1, 3)", x, sizeof x);
    put_npy("y_train.npy", "<i4", "(2,)", y, sizeof y);
    torture("npy", ", channels: last, classes: [a, b], validation: 0.5");
}

static void texts(void **state) {
    (void)state;
    write_text("train.txt", "The cat, the dog, the \xc3\x84hre and a word");
    write_text("test.txt", "the cat a");
    write_text("train.tsv", "a cat\tx\nthe Dog a b\ty\n\tx\n");
    torture("text", ", tokens: words, lower: true, time: 2, validation: 1");
    torture("text", ", tokens: chars, time: 2");
    torture("tsv", ", text: 0, label: 1, tokens: words, lower: true, time: 3");
}

static void pairs(void **state) {
    (void)state;
    const char *root = getenv("RP_SOURCE_DIR");
    char keys[300];
    write_text("a.en", "The cat, a cat\n\nthe dog\n");
    write_text("a.de", "die Katze\nx\nder Hund\n");
    torture("pairs", ", source: a.en, target: a.de, tokens: words, lower: true, time: 3");
    torture("pairs", ", source: a.en, target: a.de, test_source: a.de, test_target: a.en, tokens: "
                     "words, time: 3");
    (void)snprintf(keys, sizeof keys,
                   ", source: a.en, target: a.de, time: 3, tokens: "
                   "%s/tests/golden/bpe/learnt.json",
                   root ? root : ".");
    torture("pairs", keys);
}

static void parts_of_words(void **state) {
    (void)state;
    const char *root = getenv("RP_SOURCE_DIR");
    char keys[200];
    write_text("train.txt", "The cat, the dog, the one there");
    write_text("test.txt", "the cat a");
    write_text("train.tsv", "a cat\tx\nthe Dog a b\ty\n\tx\n");
    (void)snprintf(keys, sizeof keys, ", tokens: %s/tests/golden/bpe/learnt.json, time: 2",
                   root ? root : ".");
    torture("text", keys);
    (void)snprintf(keys, sizeof keys,
                   ", tokens: %s/tests/golden/bpe/learnt.json, time: 2, text: 0, label: 1",
                   root ? root : ".");
    torture("tsv", keys);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tables, setup, teardown),
        cmocka_unit_test_setup_teardown(images, setup, teardown),
        cmocka_unit_test_setup_teardown(arrays, setup, teardown),
        cmocka_unit_test_setup_teardown(texts, setup, teardown),
        cmocka_unit_test_setup_teardown(pairs, setup, teardown),
        cmocka_unit_test_setup_teardown(parts_of_words, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
