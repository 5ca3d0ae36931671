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
    expect_refused(keys, NULL, true, RP_ERR_IO, "x_train.npy: can not be opened");
    put_npy("x_train.npy", "<f4", "(2, 3)", f4, 24);
    expect_refused(keys, NULL, true, RP_ERR_IO, "y_train.npy: can not be opened");
    put_npy("y_train.npy", "<f4", "(2,)", f4, 8);
    expect_refused(keys, NULL, true, RP_ERR_FORMAT, "y_train.npy: expected one whole number");
    put_npy("y_train.npy", "<i4", "(2, 2)", f4, 16);
    expect_refused(keys, NULL, true, RP_ERR_FORMAT, "y_train.npy: expected one whole number");
    put_npy("y_train.npy", "<i4", "(3,)", f4, 12);
    expect_refused(keys, NULL, true, RP_ERR_FORMAT, "x_train.npy: 2 samples, but 3 targets in");
    put_npy("y_train.npy", "<i4", "(2,)", y, 8);
    expect_refused(keys, NULL, true, RP_ERR_FORMAT, "y_train.npy: class -1 of sample 1");
    put_npy("y_train.npy", "<i4", "(2,)", f4, 8);
    expect_refused(keys, &five, true, RP_ERR_FORMAT,
                   "x_train.npy: 3 numbers a sample, expected 5 (the model's input)");
    expect_refused("{set: npy, path: %, channels: last}", NULL, true, RP_ERR_FORMAT,
                   "`channels: last` needs samples of [height, width, channels]");
    expect_refused("{set: npy, path: %, test_x: t.npy}", NULL, true, RP_ERR_IO,
                   "t.npy: can not be");
    put_npy("y_test.npy", "<i4", "(2,)", f4, 8);
    expect_refused(keys, NULL, true, RP_ERR_IO, "x_test.npy: can not be opened");
    put_npy("x_test.npy", "<f4", "(2, 4)", f4, 32);
    expect_refused(keys, NULL, true, RP_ERR_FORMAT, "x_test.npy: other shapes of samples than in");
    put_npy("x_test.npy", "<f4", "(2, 3)", f4, 24);
    put_npy("y_train.npy", "<i4", "(2,)", (const int32_t[]){0, 4}, 8);
    expect_refused("{set: npy, path: %, classes: [a, b]}", NULL, true, RP_ERR_USAGE,
                   "classes: 2 names, but there are 5 classes");
    expect_refused("{set: npy, path: %, augment: flip}", NULL, true, RP_ERR_USAGE,
                   "augment: is for images");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(images_and_classes, setup, teardown),
        cmocka_unit_test_setup_teardown(channels_last, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_for_mse, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_sets, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
