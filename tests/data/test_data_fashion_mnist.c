#include "idx_fixture.h"

static void small_set(void **state) {
    (void)state;
    static float x[784];
    rp_data data;
    int32_t label;
    const uint32_t first = 0;
    write_idx_set(3, 2);
    expect_ok(open_data(&data, "{set: fashion-mnist, path: %}", NULL, true));
    assert_string_equal(data.kind->name, "fashion-mnist");
    assert_true(rp_shape_equal(&data.sample, &(rp_shape){3, {1, 28, 28}}));
    assert_int_equal(data.classes, 10);
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 3);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &first, 1, false, x, &label, NULL));
    assert_int_equal(label, 1);
    expect_close(x[0], (0 - 0.2860) / 0.3530, 1e-5, 0);
    rp_data_close(&data);
}

static void official_files(void **state) {
    (void)state;
    static const int32_t first_labels[] = {9, 0, 0, 3, 0};
    static float x[5 * 784];
    rp_data data;
    int32_t labels[5];
    char keys[600];
    const char *path = real_data("fashion-mnist");
    if (!path) {
        skip();
    }
    (void)snprintf(keys, sizeof keys, "{set: fashion-mnist, path: %s}", path);
    expect_ok(open_data(&data, keys, NULL, true));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 60000);
    assert_int_equal(data.count[RP_SPLIT_TEST], 10000);
    const uint32_t index[] = {0, 1, 2, 3, 4};
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 5, false, x, labels, NULL));
    assert_memory_equal(labels, first_labels, sizeof labels);
    rp_data_close(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(small_set, setup, teardown),
        cmocka_unit_test_setup_teardown(official_files, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
