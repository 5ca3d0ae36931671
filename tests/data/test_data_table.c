#include "fixture.h"

static const char keys[] = "{set: table, path: %, shuffle: false}";

static void write_text(const char *name, const char *text) {
    write_file(name, text, strlen(text));
}

static void rows_for_mse(void **state) {
    (void)state;
    float x[3 * 2];
    float y[3 * 2];
    rp_data data;
    const rp_shape input = rp_shape_1(2);
    const uint32_t index[] = {0, 2, 1};
    write_text("train.csv",
               "# x0,x1,y0,y1\r\n1,2,3,4\r\n\n  # more\n -1.5e-1 ,\t2.0, .5,+7\n5,6,7,8");
    expect_ok(open_data(&data, keys, &input, false));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 3);
    assert_int_equal(data.count[RP_SPLIT_TEST], 0);
    assert_int_equal(data.classes, 0);
    assert_int_equal(data.target_width, 2);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 3, true, x, NULL, y));
    const float want_x[] = {1, 2, 5, 6, -0.15f, 2};
    const float want_y[] = {3, 4, 7, 8, 0.5f, 7};
    expect_close_all(x, want_x, 6, 0, 0);
    expect_close_all(y, want_y, 6, 0, 0);
    rp_data_close(&data);
}

static void rows_with_classes(void **state) {
    (void)state;
    float x[4];
    int32_t label;
    rp_data data;
    const rp_shape input = rp_shape_3(1, 2, 2);
    const uint32_t one = 1;
    write_text("train.csv", "1,2,3,4,0\n5,6,7,8,2\n");
    write_text("test.csv", "1,2,3,4,1\n0,0,0,0,3\n");
    expect_ok(open_data(&data, keys, &input, true));
    assert_int_equal(data.classes, 4);
    assert_int_equal(data.target_width, 1);
    assert_int_equal(data.count[RP_SPLIT_TEST], 2);
    assert_true(rp_shape_equal(&data.sample, &input));
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &one, 1, true, x, &label, NULL));
    assert_int_equal(label, 2);
    expect_close(x[3], 8, 0, 0);
    rp_data_close(&data);
}

static void bad_rows(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool classes;
        const char *part;
    } bad[] = {
        {"", false, "train.csv: has no rows"},
        {"# only a comment\n\n", false, "train.csv: has no rows"},
        {"1,2\n", false,
         "expected 2 x columns (the model's input) and at least one y column, found 2"},
        {"1,2,3,4\n", true, "and one class, found 4 columns"},
        {"1,2,3\n4,5\n", false, "train.csv:2:2: expected 3 fields in a row, found 2"},
        {"1,2,3\n4,5,6,7\n", false, "train.csv:2:4: expected 3 fields in a row"},
        {"1,2,3\n\n4,x,6\n", false, "train.csv:3:2: expected a finite number, found 'x'"},
        {"1,2,\n", false, "train.csv:1:3: expected a finite number, found ''"},
        {"1,nan,3\n", false, "train.csv:1:2: expected a finite number, found 'nan'"},
        {"1,inf,3\n", false, "found 'inf'"},
        {"1,0x10,3\n", false, "found '0x10'"},
        {"1,1e99,3\n", false, "found '1e99'"},
        {"1,1 2,3\n", false, "found '1 2'"},
        {"1,1-2,3\n", false, "found '1-2'"},
        {"1;2;3\n", false, "expected 2 x columns"},
        {"1,2,1.0\n", true, "train.csv:1:3: expected a class from 0 to 65535, found '1.0'"},
        {"1,2,-1\n", true, "expected a class from 0 to 65535, found '-1'"},
        {"1,2,65536\n", true, "expected a class from 0 to 65535, found '65536'"},
        {"1,2,4294967296\n", true, "expected a class"},
        {"1,2,0000000000000000000000000000000000000000000000000000000000000000000000000000003\n",
         false, "train.csv:1:3: expected a number"},
    };
    rp_data data;
    const rp_shape input = rp_shape_1(2);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_text("train.csv", bad[i].text);
        expect_err(open_data(&data, keys, &input, bad[i].classes), RP_ERR_FORMAT);
        expect_part(bad[i].part);
    }
    write_file("train.csv", "1,2\0,3\n", 7);
    expect_err(open_data(&data, keys, &input, false), RP_ERR_FORMAT);
}

static void bad_sets(void **state) {
    (void)state;
    rp_data data;
    const rp_shape input = rp_shape_1(2);
    const rp_shape unknown = {0};
    expect_err(open_data(&data, keys, &input, false), RP_ERR_IO);
    expect_part("train.csv: can not be opened");
    mkdir(path_in_folder("train.csv"), 0700);
    expect_err(open_data(&data, keys, &input, false), RP_ERR_IO);
    rmdir(path_in_folder("train.csv"));
    write_text("train.csv", "1,2,3\n");
    write_text("test.csv", "1,2,3,4\n");
    expect_err(open_data(&data, keys, &input, false), RP_ERR_FORMAT);
    expect_part("test.csv: 2 y columns, expected 1");
    unlink(path_in_folder("test.csv"));
    expect_err(open_data(&data, keys, &unknown, false), RP_ERR_USAGE);
    expect_err(open_data(&data, keys, NULL, false), RP_ERR_USAGE);
    expect_part("a table needs a model whose `input` is a list of sizes");
    expect_err(open_data(&data, "{set: table, path: %, augment: flip}", &input, false),
               RP_ERR_USAGE);
    expect_part("augment: is for images; data set 'table' has none");
    expect_err(open_data(&data, "{set: table, path: %, mean: [1]}", &input, false), RP_ERR_USAGE);
    expect_ok(open_data(&data, keys, &input, false));
    rp_data_close(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_for_mse, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_with_classes, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_sets, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
