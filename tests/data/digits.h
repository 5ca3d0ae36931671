/* MNIST and Fashion-MNIST: one format, other pictures. */
#ifndef RP_TESTS_DATA_DIGITS_H
#define RP_TESTS_DATA_DIGITS_H

#include "idx_fixture.h"

static struct {
    const char *set;
    double mean, deviation;
    int32_t first_labels[5]; /* of the official files */
} digits;

static void small_set(void **state) {
    (void)state;
    static float x[784];
    rp_data data;
    int32_t label;
    char keys[80];
    const uint32_t first = 0;
    write_idx_set(3, 2);
    (void)snprintf(keys, sizeof keys, "{set: %s, path: %%}", digits.set);
    expect_ok(open_data(&data, keys, NULL, true));
    assert_string_equal(data.kind->name, digits.set);
    assert_true(rp_shape_equal(&data.sample, &(rp_shape){3, {1, 28, 28}}));
    assert_int_equal(data.classes, 10);
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 3);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &first, 1, false, x, &label, NULL));
    assert_int_equal(label, 1);
    expect_close(x[0], -digits.mean / digits.deviation, 1e-5, 0);
    rp_data_close(&data);
}

static void official_files(void **state) {
    (void)state;
    static float x[5 * 784];
    rp_data data;
    int32_t labels[5];
    char keys[600];
    const char *path = real_data(digits.set);
    if (!path) {
        skip();
    }
    (void)snprintf(keys, sizeof keys, "{set: %s, path: %s}", digits.set, path);
    expect_ok(open_data(&data, keys, NULL, true));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 60000);
    assert_int_equal(data.count[RP_SPLIT_TEST], 10000);
    const uint32_t index[] = {0, 1, 2, 3, 4};
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 5, false, x, labels, NULL));
    assert_memory_equal(labels, digits.first_labels, sizeof labels);
    rp_data_close(&data);
}

static inline int test_digits(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(small_set, setup, teardown),
        cmocka_unit_test_setup_teardown(official_files, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
