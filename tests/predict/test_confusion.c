/* The table of answers by hand: counts, shares, loss, text and JSON. */
#include "expect.h"

#include <math.h>

#include <jansson.h>

#include "predict/confusion.h"

static rp_arena arena;
static char text[8192];

static int setup(void **state) {
    (void)state;
    rp_arena_init(&arena, "test", 0);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rp_arena_finish(&arena);
    return 0;
}

/* An answer: output `best` is the largest. */
static void add(rp_confusion *c, uint32_t best, int32_t label) {
    float y[64] = {0};
    y[best] = 1;
    expect_ok(rp_confusion_add(c, y, label, 0));
}

static void print(const rp_confusion *c, const rp_confusion_about *about, bool json) {
    FILE *file = tmpfile();
    assert_non_null(file);
    if (json) {
        expect_ok(rp_confusion_print_json(c, about, file));
    } else {
        rp_confusion_print(c, about, file);
    }
    assert_int_equal(fseek(file, 0, SEEK_SET), 0);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
}

static const char *const names[] = {"cat", "d\xc3\xb6g", "a very long name of a class, cut off"};
static const rp_confusion_about about = {
    .split = "test", .model = "m", .weights = "w", .device = "d", .class_name = names};

/* 3 cats (2 right, 1 dog), 2 dogs (1 right, 1 of the output without a class), no third. */
static void fill(rp_confusion *c) {
    expect_ok(rp_confusion_open(&arena, 3, 4, true, c));
    add(c, 0, 0);
    add(c, 0, 0);
    add(c, 1, 0);
    add(c, 1, 1);
    add(c, 3, 1);
}

static void counts_by_hand(void **state) {
    (void)state;
    static const uint64_t want[] = {2, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0};
    rp_confusion c;
    fill(&c);
    assert_memory_equal(c.count, want, sizeof want);
    assert_true(c.samples == 5 && c.right == 3 && c.among_top == 5);
    assert_int_equal(rp_confusion_samples(&c, 0), 3);
    assert_int_equal(rp_confusion_samples(&c, 2), 0);
    assert_int_equal(rp_confusion_answered(&c, 1), 2);
    const double right = log(3 + exp(1)) - 1; /* -log softmax of the largest, and of another */
    expect_close(c.loss_sum, 3 * right + 2 * (right + 1), 1e-6, 0);
}

static void the_loss_is_smoothed(void **state) {
    (void)state;
    rp_confusion c;
    const float y[] = {0, 1, 3};
    expect_ok(rp_confusion_open(&arena, 3, 3, true, &c));
    expect_ok(rp_confusion_add(&c, y, 1, 0.3f));
    const double sum = log(1 + exp(1) + exp(3));
    const double want = 0.7 * (sum - 1) + 0.3 * (sum - 4.0 / 3);
    expect_close(c.loss_sum, want, 1e-6, 0);
}

static void five_of_many(void **state) {
    (void)state;
    rp_confusion c;
    float y[30];
    for (int i = 0; i < 30; i++) {
        y[i] = (float)-i;
    }
    expect_ok(rp_confusion_open(&arena, 30, 30, true, &c));
    for (int32_t label = 0; label < 10; label++) {
        expect_ok(rp_confusion_add(&c, y, label, 0));
    }
    assert_true(c.right == 1 && c.among_top == 5 && c.samples == 10);
    add(&c, 7, 3);
    add(&c, 7, 3);
    rp_confusion_about unnamed = about;
    unnamed.class_name = NULL;
    unnamed.split = "train";
    print(&c, &unnamed, false);
    assert_non_null(strstr(text, "accuracy 8.33 % of 12, top-5 "));
    assert_non_null(strstr(text, "\n      2 times 7 instead of 3\n      1 times 0 instead of 1\n"));
    assert_null(strstr(text, "0 instead of 0"));
}

static void text_for_people(void **state) {
    (void)state;
    rp_confusion c;
    fill(&c);
    print(&c, &about, false);
    const char want[] =
        "test loss 1.1437, accuracy 60.00 % of 5\n"
        "\n"
        "class                     samples    right    recall  answered  precision\n"
        "cat                             3        2   66.67 %         2   100.00 %\n"
        "d\xc3\xb6g                             2        1   50.00 %         2    50.00 %\n"
        "a very long name of a cl        0        0         -         0          -\n"
        "\n"
        "confusion table: a row for each class, a column for each answer\n"
        "                              cat      d\xc3\xb6g a very l        3\n"
        "cat                             2        1        0        0\n"
        "d\xc3\xb6g                             0        1        0        1\n"
        "a very long name of a cl        0        0        0        0\n";
    assert_string_equal(text, want);
}

/* cat 2 of 3, dog 1 of 3; the third class has neither targets nor answers. */
static void mean_iou_by_hand(void **state) {
    (void)state;
    rp_confusion c;
    fill(&c);
    expect_close(rp_confusion_mean_iou(&c), 0.5, 1e-12, 0);
    rp_confusion_about pixels = about;
    pixels.targets = 4;
    pixels.pixels = pixels.without_table = true;
    print(&c, &pixels, false);
    assert_string_equal(text, "test loss 1.1437, accuracy 60.00 % of 5 pixels, mean IoU 50.00 %\n");
    c.sequences = 2;
    print(&c, &pixels, true);
    assert_non_null(strstr(text, "\"samples\": 2, \"mean_iou\": 0.5, \"pixels\": 5}"));
    assert_null(strstr(text, "confusion"));
}

static void json_for_programs(void **state) {
    (void)state;
    rp_confusion c;
    double accuracy;
    double recall;
    json_int_t cells[4];
    const char *class;
    json_t *none;
    fill(&c);
    print(&c, &about, true);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    assert_int_equal(json_unpack(root, "{s:{s:F}, s:[{}, {s:s, s:F}, {s:o}], s:[[IIII]]}", "eval",
                                 "accuracy", &accuracy, "classes", "class", &class, "recall",
                                 &recall, "recall", &none, "confusion", &cells[0], &cells[1],
                                 &cells[2], &cells[3]),
                     0);
    assert_true(accuracy == 0.6 && recall == 0.5 && json_is_null(none));
    assert_string_equal(class, names[1]);
    assert_true(cells[0] == 2 && cells[1] == 1 && cells[2] == 0 && cells[3] == 0);
    assert_null(json_object_get(json_object_get(root, "eval"), "top5"));
    json_decref(root);
}

/* Without the table; of values there is none, nor an accuracy. */
static void only_a_score(void **state) {
    (void)state;
    rp_confusion c;
    fill(&c);
    c.count = NULL;
    print(&c, &about, false);
    assert_string_equal(text, "test loss 1.1437, accuracy 60.00 % of 5\n");
    print(&c, &about, true);
    assert_null(strstr(text, "confusion"));
    assert_null(strstr(text, "classes"));
    const float target[2][2] = {{0, 0}, {1, 2}};
    const float y[2] = {1, 2};
    const float endless[2] = {INFINITY, 0};
    expect_ok(rp_confusion_open(&arena, 0, 2, true, &c));
    expect_ok(rp_confusion_add_values(&c, y, target[0])); /* (1 + 4) / 2 */
    expect_ok(rp_confusion_add_values(&c, y, target[1]));
    expect_err(rp_confusion_add_values(&c, endless, target[0]), RP_ERR_NUMERIC);
    print(&c, &about, false);
    assert_string_equal(text, "test loss 1.25 of 2\n");
    print(&c, &about, true);
    assert_non_null(strstr(text, "\"eval\": {\"loss\": 1.25, \"samples\": 2}"));
    assert_null(strstr(text, "confusion"));
}

static void what_is_no_answer_is_refused(void **state) {
    (void)state;
    rp_confusion c;
    const float bad[] = {0, NAN};
    const float good[] = {0, 1};
    expect_ok(rp_confusion_open(&arena, 2, 2, true, &c));
    expect_err(rp_confusion_add(&c, bad, 0, 0), RP_ERR_NUMERIC);
    expect_err(rp_confusion_add(&c, good, 2, 0), RP_ERR_FORMAT);
    expect_err(rp_confusion_add(&c, good, -1, 0), RP_ERR_FORMAT);
    assert_true(c.samples == 0 && c.right == 0);
    expect_err(rp_confusion_open(&arena, 65536, 65536, true, &c), RP_ERR_LIMIT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counts_by_hand, setup, teardown),
        cmocka_unit_test_setup_teardown(the_loss_is_smoothed, setup, teardown),
        cmocka_unit_test_setup_teardown(five_of_many, setup, teardown),
        cmocka_unit_test_setup_teardown(text_for_people, setup, teardown),
        cmocka_unit_test_setup_teardown(mean_iou_by_hand, setup, teardown),
        cmocka_unit_test_setup_teardown(json_for_programs, setup, teardown),
        cmocka_unit_test_setup_teardown(only_a_score, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_answer_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
