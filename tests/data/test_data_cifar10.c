#include "fixture.h"

enum { RECORD = 3073 };

static const char keys[] = "{set: cifar10, path: %}";
static const char *const names[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                    "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};

/* Batch b has b + 1 records; record i has label b and first red byte 10 * b + i. */
static void write_set(const char *inside) {
    static unsigned char bytes[6 * RECORD];
    for (unsigned b = 0; b < 6; b++) {
        char name[64];
        for (unsigned i = 0; i <= b; i++) {
            bytes[i * RECORD] = (unsigned char)b;
            bytes[i * RECORD + 1] = (unsigned char)(10 * b + i);
        }
        (void)snprintf(name, sizeof name, "%s%s", inside, names[b]);
        write_file(name, bytes, (size_t)(b + 1) * RECORD);
    }
}

static void expect_whole(void) {
    static float x[3072];
    rp_data data;
    int32_t label;
    expect_ok(open_data(&data, keys, NULL, true));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 15);
    assert_int_equal(data.count[RP_SPLIT_TEST], 6);
    assert_true(rp_shape_equal(&data.sample, &(rp_shape){3, {3, 32, 32}}));
    const uint32_t index[] = {0, 1, 2, 5, 14};
    const int32_t batch[] = {0, 1, 1, 2, 4};
    const int32_t record[] = {0, 0, 1, 2, 4};
    for (int i = 0; i < 5; i++) {
        expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &index[i], 1, false, x, &label, NULL));
        assert_int_equal(label, batch[i]);
        expect_close(x[0], ((10 * batch[i] + record[i]) / 255.0 - 0.4914) / 0.2470, 1e-5, 1e-7);
    }
    expect_ok(rp_data_batch(&data, RP_SPLIT_TEST, 0, &index[3], 1, false, x, &label, NULL));
    assert_int_equal(label, 5);
    rp_data_close(&data);
}

static void batches_in_the_folder(void **state) {
    (void)state;
    write_set("");
    expect_whole();
}

static void batches_as_the_archive_unpacks(void **state) {
    (void)state;
    assert_int_equal(mkdir(in_folder("cifar-10-batches-bin"), 0700), 0);
    write_set("cifar-10-batches-bin/");
    expect_whole();
}

static void damaged_files(void **state) {
    (void)state;
    static unsigned char bytes[2 * RECORD];
    rp_data data;
    for (int b = 0; b < 6; b++) {
        write_set("");
        unlink(in_folder(names[b]));
        expect_err(open_data(&data, keys, NULL, true), RP_ERR_IO);
        expect_part(names[b]);
    }
    static const size_t cuts[] = {0, 1, RECORD - 1, RECORD + 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        write_set("");
        write_file(names[3], bytes, cuts[i]);
        expect_err(open_data(&data, keys, NULL, true), RP_ERR_FORMAT);
        expect_part("data_batch_4.bin: ");
        expect_part("bytes are not a multiple of the record");
    }
    write_set("");
    bytes[RECORD] = 10;
    write_file(names[5], bytes, sizeof bytes);
    expect_err(open_data(&data, keys, NULL, true), RP_ERR_FORMAT);
    expect_part("test_batch.bin: invalid label 10 of record 1; expected 0 to 9");
    write_set("");
    unlink(in_folder(names[0]));
    mkdir(in_folder(names[0]), 0700);
    expect_err(open_data(&data, keys, NULL, true), RP_ERR_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(batches_in_the_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(batches_as_the_archive_unpacks, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged_files, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
