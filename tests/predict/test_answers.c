/* Answers as text, CSV and JSON, to the letter. */
#include "expect.h"

#include <math.h>

#include "base/arena.h"
#include "predict/answers.h"

static rp_arena arena;
static char text[4096];
static size_t text_bytes;

static const char *const names[] = {"cat", "a \"b\", c"};
static const char *const targets[] = {"price", "x,y"};

typedef struct {
    rp_predict_format format;
    uint32_t classes, outputs, top;
    const char *const *class_name, *const *y_name;
    uint32_t pixels; /* of an image of two columns */
} test_case;

/* Two samples with these outputs; what was written is `text`. */
static rp_err write_two(const test_case *c, const float *y) {
    const rp_description about = {.sample = rp_shape_3(1, c->pixels / 2 + 1, 2),
                                  .classes = c->classes,
                                  .class_name = c->class_name,
                                  .y_name = c->y_name};
    const uint32_t all = c->outputs * (c->pixels > 0 ? c->pixels : 1);
    FILE *file = tmpfile();
    const rp_answers_options options = {.file = file,
                                        .format = c->format,
                                        .about = &about,
                                        .outputs = c->outputs,
                                        .pixels = c->pixels,
                                        .top = c->top,
                                        .weights = "w",
                                        .device = "d"};
    const rp_input_place place[] = {{"p.jpg", RP_INPUT_PICTURE, 0}, {"a,b.csv", RP_INPUT_ROW, 7}};
    rp_answers *answers;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_answers_open(&arena, &options, &answers));
    rp_err err = rp_answers_add(answers, &place[0], y);
    err = err == RP_OK ? rp_answers_add(answers, &place[1], y + all) : err;
    err = err == RP_OK ? rp_answers_finish(answers) : err;
    rp_answers_close(&answers);
    assert_int_equal(fseek(file, 0, SEEK_SET), 0);
    text_bytes = fread(text, 1, sizeof text - 1, file);
    text[text_bytes] = '\0';
    (void)fclose(file);
    rp_arena_finish(&arena);
    return err;
}

static const float y2[] = {0, (float)0, 0, (float)1.0986123 /* log 3 */};

static void classes_as_text_and_csv(void **state) {
    (void)state;
    test_case c = {RP_PREDICT_TEXT, 2, 2, 2, names, NULL, 0};
    expect_ok(write_two(&c, y2));
    assert_string_equal(text, "p.jpg: cat 50.00 %, a \"b\", c 50.00 %\n"
                              "a,b.csv:7: a \"b\", c 75.00 %, cat 25.00 %\n");
    c.format = RP_PREDICT_CSV;
    c.top = 1;
    expect_ok(write_two(&c, y2));
    assert_non_null(strstr(text, "input,sample,class,probability\np.jpg,,cat,0.5\n"
                                 "\"a,b.csv\",7,\"a \"\"b\"\", c\",0.75"));
    c.class_name = NULL;
    c.format = RP_PREDICT_TEXT;
    expect_ok(write_two(&c, y2));
    assert_string_equal(text, "p.jpg: 0 50.00 %\na,b.csv:7: 1 75.00 %\n");
}

/* Two images of 2 x 2 pixels, outputs [class, pixel]. The first of equal outputs is the class. */
static void shares_of_pixels(void **state) {
    (void)state;
    const float y[] = {1, 0, 0, 0, 0, 1, 1, 2, /**/ 3, 3, 3, 3, 3, 3, 3, 3};
    test_case c = {RP_PREDICT_TEXT, 2, 2, 2, names, NULL, 4};
    expect_ok(write_two(&c, y));
    assert_string_equal(text, "p.jpg: a \"b\", c 75.00 %, cat 25.00 %\n"
                              "a,b.csv:7: cat 100.00 %, a \"b\", c 0.00 %\n");
    c.top = 1;
    c.format = RP_PREDICT_CSV;
    expect_ok(write_two(&c, y));
    assert_non_null(strstr(text, "input,sample,class,share\np.jpg,,\"a \"\"b\"\", c\",0.75"));
    c.format = RP_PREDICT_JSON;
    expect_ok(write_two(&c, y));
    assert_non_null(strstr(text, "\"share\":0.75}],\"mask\":[[0,1],[1,1]]}"));
    assert_non_null(strstr(text, "\"mask\":[[0,0],[0,0]]}"));
}

static void values_without_classes(void **state) {
    (void)state;
    const float y[] = {1.5f, -2, 0.1f, 1e10f};
    test_case c = {RP_PREDICT_TEXT, 0, 2, 1, NULL, targets, 0};
    expect_ok(write_two(&c, y));
    assert_string_equal(text, "p.jpg: price 1.5, x,y -2\na,b.csv:7: price 0.1, x,y 1e+10\n");
    c.format = RP_PREDICT_CSV;
    expect_ok(write_two(&c, y));
    assert_string_equal(text, "input,sample,price,\"x,y\"\np.jpg,,1.5,-2\n"
                              "\"a,b.csv\",7,0.100000001,1e+10\n");
    c.y_name = NULL;
    expect_ok(write_two(&c, y));
    assert_non_null(strstr(text, "input,sample,y1,y2\n"));
}

static void json_is_one_object(void **state) {
    (void)state;
    test_case c = {RP_PREDICT_JSON, 2, 2, 1, names, NULL, 0};
    expect_ok(write_two(&c, (const float[]){0, 0, 5, 5}));
    assert_string_equal(
        text,
        "{\"version\": 1, \"device\": \"d\", \"weights\": \"w\", \"predictions\": [\n"
        " {\"input\":\"p.jpg\",\"class\":\"cat\",\"index\":0,\"probability\":0.5,\"top\":[{"
        "\"class\":\"cat\",\"index\":0,\"probability\":0.5}]},\n"
        " {\"input\":\"a,b.csv\",\"line\":7,\"class\":\"cat\",\"index\":0,\"probability\":0.5,"
        "\"top\":[{\"class\":\"cat\",\"index\":0,\"probability\":0.5}]}],\n"
        " \"samples\": 2}\n");
    static const char *const odd[] = {"\xff", "b"};
    c.class_name = odd;
    expect_err(write_two(&c, y2), RP_ERR_FORMAT);
    assert_int_equal(text_bytes, 0); /* nothing of an object that is not whole */
}

static void an_output_that_is_not_finite_is_no_answer(void **state) {
    (void)state;
    const test_case c = {RP_PREDICT_TEXT, 2, 2, 1, names, NULL, 0};
    expect_err(write_two(&c, (const float[]){0, 1, 0, NAN}), RP_ERR_NUMERIC);
    assert_non_null(strstr(rp_err_message(), "a,b.csv"));
    assert_string_equal(text, "p.jpg: a \"b\", c 73.11 %\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_as_text_and_csv),
        cmocka_unit_test(shares_of_pixels),
        cmocka_unit_test(values_without_classes),
        cmocka_unit_test(json_is_one_object),
        cmocka_unit_test(an_output_that_is_not_finite_is_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
