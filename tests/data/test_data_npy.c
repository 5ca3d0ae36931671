#include "npy_fixture.h"

static const char keys[] = "{set: npy, path: %, shuffle: false}";

static void images_and_classes(void **state) {
    (void)state;
    uint8_t pixels[3 * 4 * 5];
    const int64_t y[] = {2, 0, 1};
    float x[20];
    int32_t label;
    rp_data data;
    const uint32_t one = 1;
    for (size_t i = 0; i < sizeof pixels; i++) {
        pixels[i] = (uint8_t)(4 * i);
    }
    put_npy("x_train.npy", "|u1", "(3, 4, 5)", pixels, sizeof pixels);
    put_npy("y_train.npy", "<i8", "(3,)", y, sizeof y);
    expect_ok(open_data(&data, keys, NULL, true));
    assert_true(rp_shape_equal(&data.sample, &(rp_shape){3, {1, 4, 5}}));
    assert_int_equal(data.channels, 1);
    assert_true(data.bytes);
    assert_int_equal(data.classes, 3);
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 3);
    assert_int_equal(data.count[RP_SPLIT_TEST], 0);
    assert_non_null(strstr(data.test_path, "/x_test.npy"));
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &one, 1, false, x, &label, NULL));
    assert_int_equal(label, 0);
    expect_close(x[3], 4 * 23 / 255.0, 1e-6, 0);
    rp_data_close(&data);
    put_npy("x_test.npy", "|u1", "(2, 4, 5)", pixels, 40);
    put_npy("y_test.npy", "<i8", "(2,)", y, 16);
    expect_ok(
        open_data(&data, "{set: npy, path: %, normalise: measured, augment: crop}", NULL, true));
    assert_int_equal(data.count[RP_SPLIT_TEST], 2);
    assert_null(data.test_path);
    expect_close(data.norm.mean[0], 4 * 29.5 / 255, 1e-5, 0);
    rp_data_close(&data);
    const rp_shape flat = rp_shape_1(20);
    expect_ok(open_data(&data, "{set: npy, path: %, classes: [a, b, c, d]}", &flat, true));
    assert_true(rp_shape_equal(&data.sample, &flat));
    assert_int_equal(data.classes, 4);
    assert_string_equal(data.class_name[2], "c");
    rp_data_close(&data);
}

/* [height, width, channels] in the file, planes in a batch. */
static void channels_last(void **state) {
    (void)state;
    float pixels[2 * 3];
    const int32_t y[] = {0};
    float x[6];
    rp_data data;
    const uint32_t zero = 0;
    for (int i = 0; i < 6; i++) {
        pixels[i] = (float)i;
    }
    put_npy("a.npy", "<f4", "(1, 1, 2, 3)", pixels, sizeof pixels);
    put_npy("b.npy", "<i4", "(1,)", y, sizeof y);
    expect_ok(open_data(
        &data, "{set: npy, path: %, train_x: a.npy, train_y: b.npy, channels: last}", NULL, true));
    assert_true(rp_shape_equal(&data.sample, &(rp_shape){3, {3, 1, 2}}));
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &zero, 1, false, x, NULL, NULL));
    expect_close_all(x, ((const float[]){0, 3, 1, 4, 2, 5}), 6, 0, 0);
    rp_data_close(&data);
}

static bool has_note(const rp_data *data, const char *part) {
    for (uint32_t i = 0; i < data->notes.count; i++) {
        if (strstr(data->notes.text[i], part)) {
            return true;
        }
    }
    return false;
}

/* An array is taken as another shape only where that can mean one thing: a row. */
static void shapes_of_samples_and_of_the_model(void **state) {
    (void)state;
    static const float x[2 * 24] = {0};
    static const int32_t y[2] = {0, 1};
    static const struct {
        const char *shape, *rest;
        rp_shape input;
        const char *part; /* NULL: taken */
    } cases[] = {
        {"(2, 3, 4, 2)", "", {3, {3, 4, 2}}, NULL},
        {"(2, 24)", "", {3, {3, 4, 2}}, NULL},
        {"(2, 3, 4, 2)", "", {1, {24}}, NULL},
        {"(2, 6, 4)", "", {3, {1, 6, 4}}, NULL},
        {"(2, 4, 2, 3)",
         "",
         {3, {3, 4, 2}},
         "samples have shape [4, 2, 3], expected [3, 4, 2] (the model's input); they fit with "
         "`channels: last`"},
        {"(2, 4, 2, 3)", ", channels: last", {3, {3, 4, 2}}, NULL},
        {"(2, 2, 4, 3)",
         ", channels: last",
         {3, {3, 4, 2}},
         "samples have shape [2, 4, 3], expected [3, 4, 2] (the model's input)"},
        {"(2, 3, 4, 2)", ", channels: last", {3, {3, 4, 2}}, "they fit without `channels: last`"},
        {"(2, 3, 2, 4)", "", {3, {3, 4, 2}}, "samples have shape [3, 2, 4], expected [3, 4, 2]"},
        {"(2, 4, 6)", "", {3, {1, 6, 4}}, "samples have shape [4, 6], expected [1, 6, 4]"},
        {"(2, 12, 2)", "", {3, {3, 4, 2}}, "samples have shape [12, 2], expected [3, 4, 2]"},
    };
    rp_data data;
    char text[128];
    put_npy("y_train.npy", "<i4", "(2,)", y, sizeof y);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_npy("x_train.npy", "<f4", cases[i].shape, x, sizeof x);
        (void)snprintf(text, sizeof text, "{set: npy, path: %%%s}", cases[i].rest);
        const rp_err err = open_data(&data, text, &cases[i].input, true);
        assert_int_equal(err, cases[i].part ? RP_ERR_FORMAT : RP_OK);
        if (cases[i].part) {
            expect_part(cases[i].part);
        } else {
            rp_data_close(&data);
        }
    }
    /* Nothing says what the model takes. */
    put_npy("x_train.npy", "<f4", "(2, 8, 1, 3)", x, sizeof x);
    expect_ok(open_data(&data, keys, NULL, true));
    assert_true(has_note(&data, "samples of shape [8, 1, 3] are taken as 8 channels of 1 x 3"));
    rp_data_close(&data);
    expect_ok(open_data(&data, "{set: npy, path: %, channels: last}", NULL, true));
    assert_int_equal(data.notes.count, 0);
    rp_data_close(&data);
    put_npy("y_train.npy", "<i4", "(2,)", (const int32_t[]){0, 3}, 8);
    expect_ok(open_data(&data, "{set: npy, path: %, channels: last}", NULL, true));
    assert_true(has_note(&data, "2 of 4 classes have no training sample: 1, 2"));
    rp_data_close(&data);
}

/* Bytes are divided by 255 and other numbers are not: parts of both kinds are no set. */
static void types_of_the_parts(void **state) {
    (void)state;
    static const float f4[4] = {0, 1, 2, 255};
    static const double f8[4] = {0, 1, 2, 255};
    static const uint8_t u1[4] = {0, 1, 2, 255};
    static const int32_t y[2] = {0, 1};
    rp_data data;
    put_npy("y_train.npy", "<i4", "(2,)", y, sizeof y);
    put_npy("y_test.npy", "<i4", "(2,)", y, sizeof y);
    for (int bytes = 0; bytes < 2; bytes++) {
        put_npy(bytes ? "x_train.npy" : "x_test.npy", "|u1", "(2, 2)", u1, sizeof u1);
        put_npy(bytes ? "x_test.npy" : "x_train.npy", "<f4", "(2, 2)", f4, sizeof f4);
        expect_err(open_data(&data, keys, NULL, true), RP_ERR_FORMAT);
        expect_part(bytes ? "x_train.npy has bytes, which are divided by 255 (u1), but"
                          : "x_train.npy has numbers, which are not scaled (f4), but");
        expect_part(bytes ? "x_test.npy has numbers, which are not scaled (f4)"
                          : "x_test.npy has bytes, which are divided by 255 (u1)");
    }
    put_npy("x_train.npy", "<f4", "(2, 2)", f4, sizeof f4);
    put_npy("x_test.npy", "<f8", "(2, 2)", f8, sizeof f8);
    expect_ok(open_data(&data, keys, NULL, true));
    rp_data_close(&data);
}

/* Numbers of one type and spread, `far` from zero; as far as that type goes. */
static void put_far(const char *type, double far, double spread) {
    double f8[8];
    int64_t i8[8];
    uint32_t u4[8];
    const bool is_real = strcmp(type, "<f8") == 0;
    const bool is_long = strcmp(type, "<i8") == 0;
    for (int i = 0; i < 8; i++) {
        f8[i] = far + spread * (i * i % 5);
        i8[i] = (int64_t)f8[i];
        u4[i] = is_real || is_long ? 0 : (uint32_t)f8[i];
    }
    const void *numbers = is_real ? (void *)f8 : is_long ? (void *)i8 : (void *)u4;
    put_npy("x_train.npy", type, "(4, 2)", numbers, is_real || is_long ? 64 : 32);
}

/* Mean and deviation are taken off before a number is rounded to a float, however far it is. */
static void normalised_before_rounding(void **state) {
    (void)state;
    static const int32_t y[4] = {0, 1, 0, 1};
    static const struct {
        const char *type;
        double far, spread;
    } cases[] = {{"<f8", 1e9, 1}, {"<f8", -1e10, 0.25}, {"<i8", 1e15, 3}, {"<u4", 4e9, 1}};
    rp_data data;
    float near[8];
    float far[8];
    put_npy("y_train.npy", "<i4", "(4,)", y, sizeof y);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int away = 0; away < 2; away++) {
            put_far(cases[i].type, away ? cases[i].far : 0, cases[i].spread);
            expect_ok(open_data(&data, "{set: npy, path: %, normalise: measured}", NULL, true));
            expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, (const uint32_t[]){0, 1, 2, 3}, 4,
                                    true, away ? far : near, NULL, NULL));
            rp_data_close(&data);
        }
        expect_close_all(far, near, 8, 1e-6, 1e-6);
        assert_true(near[0] != near[2]);
    }
}

static void rows_for_mse(void **state) {
    (void)state;
    const double values[] = {1, 2, 3, 4};
    const uint8_t targets[] = {10, 20, 30, 40};
    float x[2];
    float y[2];
    rp_data data;
    const uint32_t one = 1;
    put_npy("x_train.npy", "<f8", "(2, 2)", values, sizeof values);
    put_npy("y_train.npy", "|u1", "(2, 2)", targets, sizeof targets);
    expect_ok(open_data(&data, keys, NULL, false));
    assert_true(data.target_width == 2 && data.classes == 0 && data.channels == 0);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &one, 1, false, x, NULL, y));
    expect_close(x[1], 4, 0, 0);
    expect_close(y[0], 30, 0, 0); /* targets are no pixels */
    rp_data_close(&data);
}

static void expect_refused(const char *text, const rp_shape *input, bool classes, rp_err wanted,
                           const char *part) {
    rp_data data;
    expect_err(open_data(&data, text, input, classes), wanted);
    expect_part(part);
}

static void bad_sets(void **state) {
    (void)state;
    const float f4[12] = {0};
    const int32_t y[] = {0, -1};
    const rp_shape five = rp_shape_1(5);
    expect_refused(keys, NULL, true, RP_ERR_IO, "x_train.npy: cannot be opened");
    put_npy("x_train.npy", "<f4", "(2, 3)", f4, 24);
    expect_refused(keys, NULL, true, RP_ERR_IO, "y_train.npy: cannot be opened");
    put_npy("y_train.npy", "<f4", "(2,)", f4, 8);
    expect_refused(keys, NULL, true, RP_ERR_FORMAT, "y_train.npy: expected one whole number");
    put_npy("y_train.npy", "<i4", "(2, 2)", f4, 16);
    expect_refused(keys, NULL, true, RP_ERR_FORMAT, "y_train.npy: expected one whole number");
    put_npy("y_train.npy", "<i4", "(3,)", f4, 12);
    expect_refused(keys, NULL, true, RP_ERR_FORMAT, "x_train.npy: has 2 samples, but ");
    put_npy("y_train.npy", "<i4", "(2,)", y, 8);
    expect_refused(keys, NULL, true, RP_ERR_FORMAT, "y_train.npy: invalid class -1 of sample 1");
    put_npy("y_train.npy", "<i4", "(2,)", f4, 8);
    expect_refused(keys, &five, true, RP_ERR_FORMAT,
                   "x_train.npy: samples have shape [3], expected [5] (the model's input)");
    expect_refused("{set: npy, path: %, channels: last}", NULL, true, RP_ERR_FORMAT,
                   "`channels: last` needs samples of [height, width, channels]");
    expect_refused("{set: npy, path: %, test_x: t.npy}", NULL, true, RP_ERR_IO, "t.npy: cannot be");
    put_npy("y_test.npy", "<i4", "(2,)", f4, 8);
    expect_refused(keys, NULL, true, RP_ERR_IO, "x_test.npy: cannot be opened");
    put_npy("x_test.npy", "<f4", "(2, 4)", f4, 32);
    expect_refused(keys, NULL, true, RP_ERR_FORMAT,
                   "x_test.npy: samples have shape [4], expected [3] as in");
    put_npy("x_test.npy", "<f4", "(2, 3)", f4, 24);
    put_npy("y_train.npy", "<i4", "(2, 2)", f4, 16); /* the test part is right */
    expect_refused(keys, NULL, true, RP_ERR_FORMAT, "y_train.npy: expected one whole number");
    put_npy("y_train.npy", "<i4", "(2,)", f4, 8);
    put_npy("y_test.npy", "<i4", "(2, 2)", f4, 16);
    for (int classes = 0; classes < 2; classes++) {
        expect_refused(keys, NULL, classes, RP_ERR_FORMAT,
                       "y_test.npy: targets have shape [2], expected [] as in ");
    }
    put_npy("y_train.npy", "<i4", "(2,)", (const int32_t[]){0, 4}, 8);
    put_npy("y_test.npy", "<i4", "(2,)", (const int32_t[]){0, 5}, 8);
    expect_refused(
        keys, NULL, true, RP_ERR_FORMAT,
        "y_test.npy: class 5 of sample 1 does not occur in training; expected at most 4 as in");
    put_npy("y_test.npy", "<i4", "(2,)", (const int32_t[]){0, 1}, 8);
    expect_refused("{set: npy, path: %, classes: [a, b]}", NULL, true, RP_ERR_USAGE,
                   "classes: the list has 2 names, but the data have 5 classes");
    expect_refused("{set: npy, path: %, augment: flip}", NULL, true, RP_ERR_USAGE,
                   "augment: needs images");
}

static const rp_data_input three = {.shape = {1, {3}}, .type = RP_I32};

static void expect_values(const int32_t *got, const int32_t *want, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(got[i], want[i]);
    }
}

/* A class for each pixel of images of 2 x 3; 255 does not count, and is no class. */
static void masks_of_images(void **state) {
    (void)state;
    static const int32_t ignore = 255;
    static const rp_data_input pixels = {.masks = true, .ignore = &ignore};
    static const rp_data_input strict = {.masks = true};
    static const uint8_t x[24] = {7};
    static const uint8_t y[] = {0, 1, 255, 2, 2, 0, 0, 0, 0, 255, 255, 1};
    static const char want[] = "{set: npy, path: %}";
    const uint32_t index[] = {1, 0};
    float got[24];
    int32_t labels[14];
    rp_data data;
    put_npy("x_train.npy", "|u1", "(2, 2, 2, 3)", x, sizeof x);
    put_npy("y_train.npy", "|u1", "(2, 2, 3)", y, sizeof y);
    (void)unlink(in_folder("x_test.npy"));
    (void)unlink(in_folder("y_test.npy"));
    expect_ok(open_for(&data, want, &pixels, true, 7));
    assert_true(data.masks && data.classes == 3 && data.target_width == 6);
    assert_int_equal(data.notes.count, 0);
    data.ignores = true;
    data.ignore = ignore;
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 2, true, got, labels, NULL));
    expect_values(labels, (const int32_t[]){0, 0, 0, 255, 255, 1, 9, 0, 1, 255, 2, 2, 0, 9}, 14);
    data.ignores = false;
    expect_err(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 2, true, got, labels, NULL),
               RP_ERR_FORMAT);
    expect_part("y_train.npy: label 3 of sample 1 is 255, expected 0 to 2, or the value of");
    rp_data_close(&data);
    expect_ok(open_for(&data, want, &strict, true, 7));
    assert_int_equal(data.classes, 256); /* without `ignore` 255 is a class */
    assert_true(has_note(&data, "252 of 256 classes have no training pixel: 3, 4, 5, 6, 7, ...; if "
                                "255 marks pixels that should not count, set `ignore: 255`"));
    rp_data_close(&data);
    expect_ok(open_for(&data, "{set: npy, path: %, augment: {erasing: 0.5}}", &pixels, true, 7));
    rp_data_close(&data);
    expect_err(open_for(&data, "{set: npy, path: %, augment: crop}", &pixels, true, 7),
               RP_ERR_USAGE);
    expect_part("augment: crop, flip, rotation and mixup do not apply to a class for each pixel");
    expect_err(open_for(&data, want, NULL, true, 7), RP_ERR_FORMAT);
    expect_part("a class for each pixel needs `loss: {classes_at: first}`");
    put_npy("y_train.npy", "|u1", "(2, 3, 2)", y, sizeof y);
    expect_err(open_for(&data, want, &pixels, true, 7), RP_ERR_FORMAT);
    expect_part("y_train.npy: targets have shape [3, 2], expected [2, 3], a class for each pixel");
    put_npy("x_test.npy", "|u1", "(2, 2, 2, 3)", x, sizeof x);
    put_npy("y_test.npy", "|u1", "(2, 2, 3)", y, sizeof y); /* which is right */
    expect_err(open_for(&data, want, &pixels, true, 7), RP_ERR_FORMAT);
    expect_part("y_train.npy: targets have shape [3, 2], expected [2, 3], a class for each pixel");
    (void)unlink(in_folder("x_test.npy"));
    (void)unlink(in_folder("y_test.npy"));
    put_npy("x_train.npy", "|u1", "(2, 12)", x, sizeof x);
    expect_err(open_for(&data, want, &pixels, true, 7), RP_ERR_FORMAT);
    expect_part("x_train.npy: samples have shape [12], but loss.classes_at: first needs images");
}

/* Whole numbers of any type are token ids if the model's input says so. */
static void ids_of_any_type(void **state) {
    (void)state;
    static const int32_t i4[] = {0, 300, 2, 65535, 1, 7};
    static const uint16_t u2[] = {0, 300, 2, 65535, 1, 7};
    static const uint16_t turned[] = {0, 0x2c01, 0x0200, 0xffff, 0x0100, 0x0700};
    static const int64_t i8[] = {0, 300, 2, 65535, 1, 7};
    static const uint64_t u8[] = {0, 300, 2, 65535, 1, 7};
    static const struct {
        const char *type;
        const void *numbers;
        size_t bytes;
    } cases[] = {{"<i4", i4, sizeof i4},
                 {"<u2", u2, sizeof u2},
                 {">u2", turned, sizeof turned},
                 {"<i8", i8, sizeof i8},
                 {"<u8", u8, sizeof u8}};
    static const int32_t y[] = {1, 0};
    const uint32_t index[] = {1, 0};
    const rp_data_input follows = {.type = RP_I32};
    int32_t x[6];
    int32_t labels[2];
    rp_data data;
    put_npy("y_train.npy", "<i4", "(2,)", y, sizeof y);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_npy("x_train.npy", cases[i].type, "(2, 3)", cases[i].numbers, cases[i].bytes);
        expect_ok(open_for(&data, keys, i % 2 ? &follows : &three, true, 7));
        assert_true(data.type == RP_I32 && !data.bytes && !data.norm.known);
        assert_int_equal(data.tokens, 65536);
        assert_true(data.classes == 2 && data.target_width == 1);
        assert_true(rp_shape_equal(&data.sample, &three.shape));
        expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 2, true, x, labels, NULL));
        expect_values(x, (const int32_t[]){65535, 1, 7, 0, 300, 2}, 6);
        expect_values(labels, (const int32_t[]){0, 1}, 2);
        rp_data_close(&data);
    }
}

/* Bytes are ids, too, and may differ in type from the test part. */
static void a_label_for_each_token(void **state) {
    (void)state;
    static const uint8_t x[] = {5, 1, 0, 2, 2, 3};
    static const int64_t x_test[] = {9, 0, 0};
    static const int16_t y[] = {4, 0, -100, 1, 2, -100};
    static const int16_t y_test[] = {6, -100, -100};
    const uint32_t index[] = {0, 1};
    int32_t got[6];
    int32_t labels[8];
    rp_data data;
    put_npy("x_train.npy", "|u1", "(2, 3)", x, sizeof x);
    put_npy("y_train.npy", "<i2", "(2, 3)", y, sizeof y);
    put_npy("x_test.npy", "<i8", "(1, 3)", x_test, sizeof x_test);
    put_npy("y_test.npy", "<i2", "(1, 3)", y_test, sizeof y_test);
    expect_ok(open_for(&data, keys, &three, true, 7));
    assert_int_equal(data.tokens, 10); /* of both parts, and so are classes */
    assert_int_equal(data.classes, 7);
    assert_int_equal(data.target_width, 3);
    expect_err(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 2, true, got, labels, NULL),
               RP_ERR_FORMAT);
    expect_part("y_train.npy: label 2 of sample 0 is -100, expected 0 to 6, or the value of "
                "`ignore` of the loss");
    data.ignores = true;
    data.ignore = -100;
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 2, true, got, labels, NULL));
    expect_values(got, (const int32_t[]){5, 1, 0, 2, 2, 3}, 6);
    expect_values(labels, (const int32_t[]){4, 0, -100, 4, 1, 2, -100, 4}, 8);
    data.ignore = -1;
    expect_err(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 2, true, got, labels, NULL),
               RP_ERR_FORMAT);
    rp_data_close(&data);
    expect_ok(
        open_for(&data, "{set: npy, path: %, classes: [a, b, c, d, e, f, g, h]}", &three, true, 7));
    assert_int_equal(data.classes, 8);
    rp_data_close(&data);
}

static void rows_of_numbers_for_ids(void **state) {
    (void)state;
    static const int32_t x[] = {1, 2, 3};
    static const float y[] = {0.5f, -2};
    const uint32_t zero = 0;
    int32_t got[3];
    float row[2];
    rp_data data;
    put_npy("x_train.npy", "<i4", "(1, 3)", x, sizeof x);
    put_npy("y_train.npy", "<f4", "(1, 2)", y, sizeof y);
    expect_ok(open_for(&data, keys, &three, false, 7));
    assert_int_equal(data.target_width, 2);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &zero, 1, true, got, NULL, row));
    expect_values(got, x, 3);
    expect_close_all(row, y, 2, 0, 0);
    rp_data_close(&data);
}

static void bad_ids(void **state) {
    (void)state;
    static const struct {
        const char *type, *shape;
        int64_t value;
        size_t bytes;
        const char *rest, *part;
    } bad[] = {
        {"<f4", "(2, 3)", 0, 24, "", "x_train.npy: has numbers of type f4, expected whole numbers"},
        {"<i8", "(2, 3)", -1, 48, "",
         "x_train.npy: value 1 of sample 1 is -1, expected a whole number from 0 to 1048575"},
        {"<i8", "(2, 3)", 1 << 24, 48, "", "value 1 of sample 1 is 16777216, expected"},
        {"<u8", "(2, 3)", -1, 48, "", "value 1 of sample 1 is 9223372036854775807, expected"},
        {"<i8", "(2, 3)", INT64_MIN, 48, "", "value 1 of sample 1 is -9223372036854775808, exp"},
        {"<i4", "(2, 4)", 0, 32, "", "samples have shape [4], expected [3] (the model's input)"},
        {"<i4", "(2, 3)", 0, 24, ", channels: last", "channels: does not apply to token ids"},
        {"<i4", "(2, 3)", 0, 24, ", normalise: none", "normalise: does not apply to token ids"},
    };
    static const int32_t y[2] = {0, 1};
    int64_t x[8];
    char text[128];
    rp_data data;
    put_npy("y_train.npy", "<i4", "(2,)", y, sizeof y);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        memset(x, 0, sizeof x);
        x[4] = bad[i].value;
        put_npy("x_train.npy", bad[i].type, bad[i].shape, x, bad[i].bytes);
        (void)snprintf(text, sizeof text, "{set: npy, path: %%%s}", bad[i].rest);
        assert_int_not_equal(open_for(&data, text, &three, true, 7), RP_OK);
        expect_part(bad[i].part);
    }
    put_npy("x_train.npy", "<i4", "(2, 3)", (const int32_t[6]){0}, 24);
    put_npy("y_train.npy", "<i4", "(2, 3)", (const int32_t[]){-1, -1, -1, -1, -1, -1}, 24);
    expect_err(open_for(&data, keys, &three, true, 7), RP_ERR_FORMAT);
    expect_part("y_train.npy: all labels are negative");
    put_npy("y_train.npy", "<f4", "(2, 3)", (const float[6]){0}, 24);
    expect_err(open_for(&data, keys, &three, true, 7), RP_ERR_FORMAT);
    expect_part("y_train.npy: has numbers of type f4, expected whole numbers");
}

static const rp_data_input translation = {
    .shape = {1, {5}}, .type = RP_I32, .parts = 2, .part = {{"source", 3}, {"target", 2}}};

#define FILES(x, y) "{set: npy, path: %, shuffle: false, " x "train_y: y.npy" y "}"
#define TRAIN_X "train_x: {source: s.npy, target: t.npy}, "

/* A file of ids for each input of the model; a sample has them in the order of the model. */
static void ids_from_several_files(void **state) {
    (void)state;
    static const uint16_t s[] = {1, 2, 3, 4, 500, 6};
    static const int32_t t[] = {7, 8, 9, 10};
    static const uint8_t t_test[] = {200, 1};
    static const int32_t y[] = {1, 0};
    static const char want[] = FILES("train_x: {target: t.npy, source: s.npy}, ",
                                     ", test_x: {source: s2.npy, target: t2.npy}, test_y: y2.npy");
    const uint32_t index[] = {1, 0};
    int32_t x[10];
    int32_t labels[2];
    rp_data data;
    put_npy("s.npy", "<u2", "(2, 3)", s, sizeof s);
    put_npy("t.npy", "<i4", "(2, 2)", t, sizeof t);
    put_npy("y.npy", "<i4", "(2,)", y, sizeof y);
    expect_ok(open_for(&data, FILES(TRAIN_X, ""), &translation, true, 7));
    assert_true(data.type == RP_I32 && data.tokens == 501 && data.classes == 2);
    assert_true(rp_shape_equal(&data.sample, &translation.shape));
    assert_int_equal(data.count[RP_SPLIT_TEST], 0);
    assert_string_equal(data.test_path, "data.test_x");
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 2, true, x, labels, NULL));
    expect_values(x, (const int32_t[]){4, 500, 6, 9, 10, 1, 2, 3, 7, 8}, 10);
    rp_data_close(&data);
    put_npy("s2.npy", "<u2", "(1, 3)", s, 6);
    put_npy("t2.npy", "|u1", "(1, 2)", t_test, sizeof t_test);
    put_npy("y2.npy", "<i4", "(1,)", y, 4);
    expect_ok(open_for(&data, want, &translation, true, 7));
    assert_int_equal(data.count[RP_SPLIT_TEST], 1);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TEST, 0, index + 1, 1, false, x, labels, NULL));
    expect_values(x, (const int32_t[]){1, 2, 3, 200, 1}, 5);
    rp_data_close(&data);
}

/* Bytes of one input are divided by 255, numbers of the other one stay. */
static void numbers_from_several_files(void **state) {
    (void)state;
    static const rp_data_input images = {
        .shape = {3, {3, 1, 2}}, .parts = 2, .part = {{"photo", 2}, {"depth", 1}}};
    static const uint8_t photo[] = {51, 102, 153, 204, 0, 255, 51, 0};
    static const float depth[] = {5, 6, 7, 8};
    static const uint8_t gray[] = {255, 0, 0, 255};
    static const int32_t y[] = {1, 0};
    static const char want[] = FILES("train_x: {photo: p.npy, depth: d.npy}, ", "");
    static const char last[] = FILES("train_x: {photo: q.npy, depth: e.npy}, ", ", channels: last");
    const uint32_t index[] = {0, 1};
    float x[12];
    rp_data data;
    put_npy("y.npy", "<i4", "(2,)", y, sizeof y);
    put_npy("p.npy", "|u1", "(2, 2, 1, 2)", photo, sizeof photo);
    put_npy("d.npy", "<f4", "(2, 1, 2)", depth, sizeof depth);
    expect_ok(open_for(&data, want, &images, true, 7));
    assert_false(data.bytes);
    assert_int_equal(data.channels, 3);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 2, false, x, NULL, NULL));
    expect_close_all(x, ((const float[]){0.2f, 0.4f, 0.6f, 0.8f, 5, 6, 0, 1, 0.2f, 0, 7, 8}), 12,
                     1e-6, 0);
    rp_data_close(&data);
    put_npy("q.npy", "|u1", "(2, 1, 2, 2)", photo, sizeof photo);
    put_npy("e.npy", "|u1", "(2, 1, 2, 1)", gray, sizeof gray);
    expect_ok(open_for(&data, last, &images, true, 7));
    assert_true(data.bytes && data.channels_last);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 1, false, x, NULL, NULL));
    expect_close_all(x, ((const float[]){0.2f, 0.6f, 0.4f, 0.8f, 1, 0}), 6, 1e-6, 0);
    rp_data_close(&data);
}

static void bad_files_of_inputs(void **state) {
    (void)state;
    static const struct {
        const char *keys;
        const rp_data_input *input;
        const char *part;
    } bad[] = {
        {FILES(TRAIN_X, ""), &three, "train_x: expected a file name; a file for each input needs"},
        {FILES(TRAIN_X, ""), NULL, "train_x: expected a file name; a file for each input needs"},
        {FILES("train_x: {source: s.npy}, ", ""), &translation, "the key 'target' is needed here"},
        {FILES("train_x: {source: s.npy, target: t.npy, third: t.npy}, ", ""), &translation,
         "train_x.third: unknown key"},
        {FILES("train_x: {source: s.npy, target: [t.npy]}, ", ""), &translation,
         "train_x.target: expected a text"},
        {FILES("train_x: {source: s.npy, target: three.npy}, ", ""), &translation,
         "three.npy: has 3 samples, expected 2 as in"},
        {FILES("train_x: {source: t.npy, target: t.npy}, ", ""), &translation,
         "t.npy: samples have shape [2], expected [3] (the model's input source)"},
        {FILES("train_x: {source: s.npy, target: real.npy}, ", ""), &translation,
         "real.npy: has numbers of type f4, expected whole numbers"},
        {FILES("train_x: {source: s.npy, target: none.npy}, ", ""), &translation, "none.npy"},
        {FILES(TRAIN_X, ", test_x: t.npy"), &translation,
         "test_x: expected a file for each input as in train_x"},
        {FILES("train_x: joint.npy, ", ", test_x: {source: s.npy, target: t.npy}"), &translation,
         "test_x: expected one file as in train_x"},
        {FILES(TRAIN_X, ", test_y: y.npy"), &translation,
         "y.npy exists, so `test_x` with a file for each input is needed"},
        {FILES(TRAIN_X, ", test_x: {source: s.npy, target: three.npy}, test_y: y.npy"),
         &translation, "three.npy: has 3 samples, expected 2 as in"},
    };
    static const int32_t x[6] = {0};
    static const int32_t y[] = {1, 0};
    rp_data data;
    put_npy("s.npy", "<i4", "(2, 3)", x, 24);
    put_npy("t.npy", "<i4", "(2, 2)", x, 16);
    put_npy("three.npy", "<i4", "(3, 2)", x, 24);
    put_npy("real.npy", "<f4", "(2, 2)", x, 16);
    put_npy("joint.npy", "<i4", "(1, 5)", x, 20);
    put_npy("y.npy", "<i4", "(2,)", y, sizeof y);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_not_equal(open_for(&data, bad[i].keys, bad[i].input, true, 7), RP_OK);
        expect_part(bad[i].part);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(images_and_classes, setup, teardown),
        cmocka_unit_test_setup_teardown(channels_last, setup, teardown),
        cmocka_unit_test_setup_teardown(shapes_of_samples_and_of_the_model, setup, teardown),
        cmocka_unit_test_setup_teardown(types_of_the_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(masks_of_images, setup, teardown),
        cmocka_unit_test_setup_teardown(normalised_before_rounding, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_for_mse, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_sets, setup, teardown),
        cmocka_unit_test_setup_teardown(ids_of_any_type, setup, teardown),
        cmocka_unit_test_setup_teardown(a_label_for_each_token, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_of_numbers_for_ids, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_ids, setup, teardown),
        cmocka_unit_test_setup_teardown(ids_from_several_files, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers_from_several_files, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_files_of_inputs, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
