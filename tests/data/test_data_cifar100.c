#include "fixture.h"

enum { RECORD = 3074, RECORDS = 3 };

/* Record i of a file: labels (base + i) % 20 and base + 10 i, then bytes. */
static void write_part(const char *name, unsigned base, size_t bytes) {
    static unsigned char file[RECORDS * RECORD];
    for (unsigned i = 0; i < RECORDS; i++) {
        for (unsigned j = 2; j < RECORD; j++) {
            file[i * RECORD + j] = (unsigned char)(base + i * 7 + j * 3);
        }
        file[i * RECORD] = (unsigned char)((base + i) % 20);
        file[i * RECORD + 1] = (unsigned char)(base + 10 * i);
    }
    write_file(name, file, bytes);
}

static void samples(void **state) {
    (void)state;
    static float x[3072];
    rp_data data;
    int32_t label;
    const uint32_t two = 2;
    char names[100 * 8];
    size_t used = 0;
    for (int i = 0; i < 100; i++) {
        used += (size_t)snprintf(names + used, sizeof names - used, "fine%d\n", i);
    }
    write_part("train.bin", 30, RECORDS * RECORD);
    write_part("test.bin", 70, RECORDS * RECORD);
    write_file("fine_label_names.txt", names, used);
    write_file("coarse_label_names.txt", "too few\n", 8);
    expect_ok(open_data(&data, "{set: cifar100, path: %}", NULL, true));
    assert_int_equal(data.classes, 100);
    assert_string_equal(data.class_name[99], "fine99");
    assert_int_equal(data.count[RP_SPLIT_TRAIN], RECORDS);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TEST, 0, &two, 1, false, x, &label, NULL));
    assert_int_equal(label, 90);
    expect_close(x[0], ((70 + 14 + 6) / 255.0 - 0.5071) / 0.2675, 1e-5, 0);
    expect_close(x[1024], ((70 + 14 + 1026 * 3) % 256 / 255.0 - 0.4867) / 0.2565, 1e-5, 0);
    rp_data_close(&data);
    expect_ok(open_data(&data, "{set: cifar100, path: %, labels: coarse}", NULL, true));
    assert_int_equal(data.classes, 20);
    assert_null(data.class_name);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TEST, 0, &two, 1, false, x, &label, NULL));
    assert_int_equal(label, 12);
    rp_data_close(&data);
}

static void bad_files(void **state) {
    (void)state;
    static const char keys[] = "{set: cifar100, path: %}";
    rp_data data;
    expect_err(open_data(&data, keys, NULL, true), RP_ERR_IO);
    expect_part("train.bin: cannot be opened: No such file or directory; `ringpipe data fetch`");
    write_part("train.bin", 30, RECORDS * RECORD - 1);
    expect_err(open_data(&data, keys, NULL, true), RP_ERR_FORMAT);
    expect_part("train.bin: 9221 bytes are not a multiple of the record's 3074");
    write_part("train.bin", 30, 0);
    expect_err(open_data(&data, keys, NULL, true), RP_ERR_FORMAT);
    write_part("train.bin", 85, RECORDS * RECORD);
    expect_err(open_data(&data, keys, NULL, true), RP_ERR_FORMAT);
    expect_part("train.bin: invalid label 105 of record 2; expected 0 to 99");
    write_part("train.bin", 30, RECORDS * RECORD);
    expect_err(open_data(&data, keys, NULL, true), RP_ERR_IO);
    expect_part("test.bin: cannot be opened");
    mkdir(in_folder("cifar-100-binary"), 0700); /* as the archive unpacks */
    write_part("cifar-100-binary/test.bin", 30, RECORDS * RECORD);
    expect_ok(open_data(&data, keys, NULL, true));
    assert_null(data.class_name);
    rp_data_close(&data);
    expect_err(open_data(&data, "{set: cifar100, path: %, labels: both}", NULL, true),
               RP_ERR_USAGE);
    expect_part("expected one of: fine coarse");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(samples, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_files, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
