#include "idx_fixture.h"

/* The files of MNIST are also a set of this kind: the same pictures and classes. */
static void as_mnist(void **state) {
    (void)state;
    static float a[784];
    static float b[784];
    rp_data mnist;
    rp_data idx;
    int32_t label_a;
    int32_t label_b;
    write_idx_set(5, 3);
    expect_ok(open_data(&mnist, "{set: mnist, path: %, normalise: none}", NULL, true));
    expect_ok(open_data(&idx, "{set: idx, path: %}", NULL, true));
    assert_true(rp_shape_equal(&mnist.sample, &idx.sample));
    assert_int_equal(idx.channels, 1);
    for (int split = RP_SPLIT_TRAIN; split <= RP_SPLIT_TEST; split++) {
        assert_int_equal(idx.count[split], mnist.count[split]);
        for (uint32_t i = 0; i < idx.count[split]; i++) {
            expect_ok(rp_data_batch(&mnist, (rp_split)split, 0, &i, 1, false, a, &label_a, NULL));
            expect_ok(rp_data_batch(&idx, (rp_split)split, 0, &i, 1, false, b, &label_b, NULL));
            assert_memory_equal(a, b, sizeof a);
            assert_int_equal(label_a, label_b);
        }
    }
    rp_data_close(&mnist);
    rp_data_close(&idx);
}

/* Other names, shapes and types: EMNIST's letters, say, or colours. */
static void of_any_shape(void **state) {
    (void)state;
    static const uint8_t x[] = {0, 0, 8, 4, 0, 0, 0, 1, 0, 0,  0,   2,
                                0, 0, 0, 1, 0, 0, 0, 2, 0, 51, 102, 255};
    static const uint8_t y[] = {0, 0, 12, 1, 0, 0, 0, 1, 0, 0, 0, 25};
    rp_data data;
    float out[4];
    int32_t label;
    const uint32_t zero = 0;
    write_file("letters", x, sizeof x);
    write_gz("names.gz", y, sizeof y);
    expect_ok(
        open_data(&data, "{set: idx, path: %, train_x: letters, train_y: names.gz}", NULL, true));
    assert_true(rp_shape_equal(&data.sample, &(rp_shape){3, {2, 1, 2}}));
    assert_int_equal(data.classes, 26);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &zero, 1, false, out, &label, NULL));
    assert_int_equal(label, 25);
    expect_close(out[2], 0.4, 1e-6, 0);
    rp_data_close(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(as_mnist, setup, teardown),
        cmocka_unit_test_setup_teardown(of_any_shape, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
