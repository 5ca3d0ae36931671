/* A file that belongs to no set gives the floats that a set would have given, to the bit. */
#include "npy_fixture.h"
#include "picture.h"

#include "data/inputs.h"

#include <math.h>

enum { FLOATS = 256, SAMPLES = 16 };

typedef struct {
    float x[FLOATS];
    size_t width;
    uint32_t number[SAMPLES];
    uint32_t count;
    char path[300];
} seen;

static rp_err note_sample(void *context, const rp_input_place *place, const float *x) {
    seen *s = context;
    assert_true(s->count < SAMPLES && (s->count + 1) * s->width <= FLOATS);
    memcpy(s->x + s->count * s->width, x, s->width * sizeof *x);
    s->number[s->count++] = place->number;
    (void)snprintf(s->path, sizeof s->path, "%s", place->path);
    return RP_OK;
}

static rp_err read_input(const rp_description *about, const char *name, seen *out) {
    char path[256];
    *out = (seen){.width = rp_shape_count(&about->sample)};
    (void)snprintf(path, sizeof path, "%s", in_folder(name));
    return rp_inputs_read(about, path, note_sample, out);
}

/* Opens the set; what it is comes by way of data.json. */
static void open_described(const char *keys, const rp_shape *input, bool class_target,
                           rp_data *data, rp_description *about) {
    char path[256];
    expect_ok(open_data(data, keys, input, class_target));
    (void)snprintf(path, sizeof path, "%s", in_folder("data.json"));
    expect_ok(rp_data_describe(data, path));
    expect_ok(rp_data_read_description(&arena, path, about));
}

/* All samples of the part, as a run gets them. */
static void expect_part_of(const rp_data *data, rp_split split, const seen *got) {
    static const uint32_t index[SAMPLES] = {0, 1, 2, 3, 4, 5, 6, 7};
    float x[FLOATS];
    assert_int_equal(got->count, data->count[split]);
    expect_ok(rp_data_batch(data, split, 0, index, got->count, false, x, NULL, NULL));
    assert_memory_equal(got->x, x, got->count * got->width * sizeof *x);
}

static void rows_by_the_names_of_columns(void **state) {
    (void)state;
    const rp_shape none = {0};
    rp_data data;
    rp_description about;
    seen got;
    write_text("train.csv", "id;w;species;h\n1;0.1;a;2\n2;0.7;b;3\n3;-1e2;a;7\n");
    write_text("test.csv", "id;w;species;h\n7;0.25;a;-2\n# a remark\n8;1.75;b;9\n");
    open_described("{set: table, path: %, delimiter: semicolon, target: species, drop: id, "
                   "normalise: measured}",
                   &none, true, &data, &about);
    expect_ok(read_input(&about, "test.csv", &got));
    expect_part_of(&data, RP_SPLIT_TEST, &got);
    assert_int_equal(got.number[0], 2); /* lines of the file */
    assert_int_equal(got.number[1], 4);
    write_text("other.csv", "note;h;w\nxyz;-2;0.25\nabc;9;1.75\n"); /* another order, no target */
    expect_ok(read_input(&about, "other.csv", &got));
    expect_part_of(&data, RP_SPLIT_TEST, &got);
    write_text("plain.csv", "0.25;-2\n1.75;9\n"); /* the inputs alone, without a header */
    expect_ok(read_input(&about, "plain.csv", &got));
    expect_part_of(&data, RP_SPLIT_TEST, &got);
    write_text("whole.csv",
               "7;0.25;a;-2\n8;1.75;b;9\n"); /* as the training file, without its header */
    expect_ok(read_input(&about, "whole.csv", &got));
    expect_part_of(&data, RP_SPLIT_TEST, &got);
    rp_data_close(&data);
}

static void bad_rows_are_named(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"w,h\n1,2\n3\n", "in.csv:3:1: expected 2 fields in a row, found 1"},
        {"w,h\n1,2,3\n", "in.csv:2:3: expected 2 fields in a row, found 3"},
        {"w,h\n1,x\n", "in.csv:2:2: column 'h': expected a finite number, found 'x'"},
        {"1,nan\n",
         "in.csv:1:2: column 'h': expected a finite number (if it marks a missing value"},
        {"w,width\n1,2\n", "in.csv:1: expected a column 'h' as in the training file"},
        {"1,2,3,4\n",
         "in.csv:1: expected 2 columns (the net's input [2]), or 3 as in the training file, found"},
        {"w;h\n1;2\n",
         "expected a column 'w' as in the training file; the file has one column, 'w;h': check"},
        {"w,h,w\n1,2,3\n", "in.csv:1: the header has two columns named 'w'"},
        {"w,H\n1,2\n", "expected a column 'h' as in the training file"},
        {"", "in.csv: the file is empty"},
        {"# nothing\n", "in.csv: has no rows"},
    };
    const rp_shape none = {0};
    rp_data data;
    rp_description about;
    seen got;
    write_text("train.csv", "w,h,species\n0.1,2,a\n0.7,3,b\n");
    open_described("{set: table, path: %}", &none, true, &data, &about);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_text("in.csv", bad[i].text);
        expect_err(read_input(&about, "in.csv", &got), RP_ERR_FORMAT);
        expect_part(bad[i].part);
    }
    expect_err(read_input(&about, "none.csv", &got), RP_ERR_IO);
    expect_part("none.csv: cannot be opened");
    rp_data_close(&data);
}

/* Texts and missing values as in training; a header is known by the names that it has. */
static void rows_with_texts(void **state) {
    (void)state;
    rp_data data;
    rp_description about;
    seen got;
    write_text("train.csv", "n,colour,kind\n1,red,a\nNA,blue,b\n3,NA,b\n");
    write_text("test.csv", "kind,colour,n\nb,NA,2\na,blue,NA\n");
    open_described("{set: table, path: %, target: kind, missing: NA, normalise: measured}", NULL,
                   true, &data, &about);
    expect_ok(read_input(&about, "test.csv", &got));
    expect_part_of(&data, RP_SPLIT_TEST, &got);
    write_text("plain.csv", "2,NA\nNA,blue\n"); /* without a header */
    expect_ok(read_input(&about, "plain.csv", &got));
    expect_part_of(&data, RP_SPLIT_TEST, &got);
    write_text("in.csv", "n,colour\n1,green\n");
    expect_err(read_input(&about, "in.csv", &got), RP_ERR_FORMAT);
    expect_part("in.csv:2:2: column 'colour': expected one of the 2 texts of the training file, "
                "found 'green'");
    rp_data_close(&data);
    write_text("train.csv", "S,red,u\nM,blue,v\n");
    write_text("test.csv", "M,red,v\nS,red,u\n");
    open_described("{set: table, path: %, header: false}", NULL, true, &data, &about);
    expect_ok(read_input(&about, "test.csv", &got));
    expect_part_of(&data, RP_SPLIT_TEST, &got);
    write_text("in.csv", "size,colour\nM,red\nS,red\n");
    expect_ok(read_input(&about, "in.csv", &got));
    expect_part_of(&data, RP_SPLIT_TEST, &got);
    rp_data_close(&data);
    write_text("train.csv", "0,1,2\n5,6,a\n7,8,b\n");
    write_text("test.csv", "0,1,2\n9,10,b\n");
    open_described("{set: table, path: %, header: true}", NULL, true, &data, &about);
    expect_ok(read_input(&about, "test.csv", &got));
    expect_part_of(&data, RP_SPLIT_TEST, &got);
    rp_data_close(&data);
}

static void write_pictures(void) {
    uint8_t pixels[9 * 7 * 3];
    fill_picture(pixels, 9, 7, 3);
    (void)mkdir(in_folder("a"), 0700);
    (void)mkdir(in_folder("b"), 0700);
    write_png("a/one.png", pixels, 9, 7, PNG_COLOR_TYPE_RGB, 8, 7 * 3, false);
    write_jpeg("b/two.jpg", pixels, 9, 7);
}

static void pictures_are_resized_and_normalised(void **state) {
    (void)state;
    static const char *const keys[] = {"{set: images, path: %, size: [5, 6]}",
                                       "{set: images, path: %, size: [5, 6], grey: true}"};
    for (int grey = 0; grey < 2; grey++) {
        const rp_shape none = {0};
        rp_data data;
        rp_description about;
        seen got[2];
        write_pictures();
        open_described(keys[grey], &none, true, &data, &about);
        expect_ok(read_input(&about, "a/one.png", &got[0]));
        expect_ok(read_input(&about, "b/two.jpg", &got[1]));
        memcpy(got[0].x + got[0].width, got[1].x, got[1].width * sizeof(float));
        got[0].count = 2;
        expect_part_of(&data, RP_SPLIT_TRAIN, &got[0]);
        write_text("a.csv", "1,2,3\n");
        expect_err(read_input(&about, "a.csv", &got[0]), RP_ERR_FORMAT);
        expect_part(grey ? "the net takes images of shape [1, 5, 6]" : "images of shape [3, 5, 6]");
        write_text("cut.png", "\x89PNG\r\n\x1a\n");
        expect_err(read_input(&about, "cut.png", &got[0]), RP_ERR_FORMAT);
        expect_part("cut.png");
        rp_data_close(&data);
    }
}

static void a_picture_for_a_net_of_rows_is_refused(void **state) {
    (void)state;
    const rp_shape none = {0};
    rp_data data;
    rp_description about;
    seen got;
    write_pictures();
    write_text("train.csv", "1,2,0\n3,4,1\n");
    open_described("{set: table, path: %}", &none, true, &data, &about);
    expect_err(read_input(&about, "a/one.png", &got), RP_ERR_FORMAT);
    expect_part(
        "one.png: is a picture, but the net takes samples of shape [2]: expected a CSV file");
    rp_data_close(&data);
}

static void arrays_of_the_same_shape(void **state) {
    (void)state;
    const rp_shape none = {0};
    static const uint8_t y[] = {0, 1, 1};
    uint8_t x[3 * 4 * 5];
    rp_data data;
    rp_description about;
    seen got;
    fill_picture(x, 3, 20, 1);
    put_npy("x_train.npy", "|u1", "(3, 4, 5)", x, sizeof x);
    put_npy("y_train.npy", "|u1", "(3,)", y, sizeof y);
    open_described("{set: npy, path: %, normalise: measured}", &none, true, &data, &about);
    expect_ok(read_input(&about, "x_train.npy", &got));
    expect_part_of(&data, RP_SPLIT_TRAIN, &got);
    assert_int_equal(got.number[2], 2);
    put_npy("flat.npy", "|u1", "(3, 20)", x, sizeof x);
    expect_ok(read_input(&about, "flat.npy", &got));
    expect_part_of(&data, RP_SPLIT_TRAIN, &got);
    put_npy("turned.npy", "|u1", "(3, 5, 4)", x, sizeof x);
    expect_err(read_input(&about, "turned.npy", &got), RP_ERR_FORMAT);
    expect_part("turned.npy: expected samples of shape [1, 4, 5], found [5, 4]");
    rp_data_close(&data);
}

static void arrays_with_channels_last(void **state) {
    (void)state;
    static const uint8_t y[] = {0, 1};
    uint8_t x[2 * 4 * 5 * 3];
    rp_data data;
    rp_description about;
    seen got;
    fill_picture(x, 2, 20, 3);
    put_npy("x_train.npy", "|u1", "(2, 4, 5, 3)", x, sizeof x);
    put_npy("y_train.npy", "|u1", "(2,)", y, sizeof y);
    open_described("{set: npy, path: %, channels: last}", NULL, true, &data, &about);
    expect_ok(read_input(&about, "x_train.npy", &got));
    expect_part_of(&data, RP_SPLIT_TRAIN, &got);
    put_npy("first.npy", "|u1", "(2, 3, 4, 5)", x, sizeof x);
    expect_err(read_input(&about, "first.npy", &got), RP_ERR_FORMAT);
    expect_part("first.npy: expected samples of shape [4, 5, 3], found [3, 4, 5]");
    put_npy("flat.npy", "|u1", "(2, 60)", x, sizeof x); /* in which order? */
    expect_err(read_input(&about, "flat.npy", &got), RP_ERR_FORMAT);
    rp_data_close(&data);
}

/* What the net was trained on is scaled, or not, as what it gets now. */
static void arrays_of_another_type(void **state) {
    (void)state;
    static const uint8_t y[] = {0, 1};
    static const uint8_t u1[] = {0, 51, 102, 255};
    static const float unit[] = {0, 0.2f, 0.4f, 1};
    static const float f4[] = {0, 51, 102, 255};
    static const double f8[] = {0, 51, 102, 255};
    rp_data data;
    rp_description about;
    seen got;
    put_npy("y_train.npy", "|u1", "(2,)", y, sizeof y);
    put_npy("bytes.npy", "|u1", "(2, 2)", u1, sizeof u1);
    put_npy("unit.npy", "<f4", "(2, 2)", unit, sizeof unit);
    put_npy("f4.npy", "<f4", "(2, 2)", f4, sizeof f4);
    put_npy("f8.npy", "<f8", "(2, 2)", f8, sizeof f8);
    open_described("{set: npy, path: %, train_x: bytes.npy, normalise: measured}", NULL, true,
                   &data, &about);
    expect_ok(read_input(&about, "unit.npy", &got));
    expect_part_of(&data, RP_SPLIT_TRAIN, &got);
    expect_err(read_input(&about, "f4.npy", &got), RP_ERR_FORMAT);
    expect_part(
        "f4.npy: value 1 of sample 0 is 51, but the net was trained on bytes divided by 255");
    rp_data_close(&data);
    open_described("{set: npy, path: %, train_x: f4.npy, normalise: measured}", NULL, true, &data,
                   &about);
    expect_ok(read_input(&about, "f8.npy", &got));
    expect_part_of(&data, RP_SPLIT_TRAIN, &got);
    expect_err(read_input(&about, "bytes.npy", &got), RP_ERR_FORMAT);
    expect_part("bytes.npy: has bytes (u1), which are divided by 255, but the net was trained on");
    rp_data_close(&data);
}

/* A column far from zero, as a time in seconds is. */
static void rows_far_from_zero(void **state) {
    (void)state;
    rp_data data;
    rp_description about;
    seen got;
    write_text("train.csv", "t,h,y\n1000000000,1,a\n1000000003,2,b\n1000000009,1.5,a\n");
    open_described("{set: table, path: %, normalise: measured}", NULL, true, &data, &about);
    expect_ok(read_input(&about, "train.csv", &got));
    expect_part_of(&data, RP_SPLIT_TRAIN, &got);
    expect_close(about.norm.mean[0], 1000000004.0, 1e-15, 0);
    expect_close(about.norm.deviation[0], sqrt(14), 1e-12, 0);
    expect_close(got.x[2], -1 / sqrt(14), 1e-6, 0);
    rp_data_close(&data);
    expect_ok(
        open_data(&data, "{set: table, path: %, mean: [1000000000, 0], std: [2, 1]}", NULL, true));
    expect_ok(
        rp_data_batch(&data, RP_SPLIT_TRAIN, 0, (const uint32_t[]){1}, 1, true, got.x, NULL, NULL));
    expect_close(got.x[0], 1.5, 0, 0);
    rp_data_close(&data);
}

static rp_err refuse_sample(void *context, const rp_input_place *place, const float *x) {
    (void)context;
    (void)x;
    return place->number == 3 ? RP_ERR_INTERRUPTED : RP_OK;
}

static void an_error_ends_the_reading(void **state) {
    (void)state;
    const rp_description about = {.set = "table", .sample = rp_shape_1(1), .delimiter = ','};
    char path[256];
    write_text("in.csv", "1\n2\n3\nx\n");
    (void)snprintf(path, sizeof path, "%s", in_folder("in.csv"));
    expect_err(rp_inputs_read(&about, path, refuse_sample, NULL), RP_ERR_INTERRUPTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_by_the_names_of_columns, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_rows_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_with_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(pictures_are_resized_and_normalised, setup, teardown),
        cmocka_unit_test_setup_teardown(a_picture_for_a_net_of_rows_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(arrays_of_the_same_shape, setup, teardown),
        cmocka_unit_test_setup_teardown(arrays_with_channels_last, setup, teardown),
        cmocka_unit_test_setup_teardown(arrays_of_another_type, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_far_from_zero, setup, teardown),
        cmocka_unit_test_setup_teardown(an_error_ends_the_reading, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
