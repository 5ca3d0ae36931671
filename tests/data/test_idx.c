#include "idx_fixture.h"

static const char keys[] = "{set: mnist, path: %}";

static void expect_refused(rp_err wanted, const char *part) {
    rp_data data;
    expect_err(open_data(&data, keys, NULL, true), wanted);
    expect_part(part);
}

static void plain_and_gzipped(void **state) {
    (void)state;
    static float x[784];
    rp_data data;
    int32_t label;
    const uint32_t last = 2;
    write_idx_set(5, 3);
    expect_ok(open_data(&data, keys, NULL, true));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 5);
    assert_int_equal(data.count[RP_SPLIT_TEST], 3);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TEST, 0, &last, 1, false, x, &label, NULL));
    assert_int_equal(label, 7);
    expect_close(x[783], ((3 * 784 - 1) % 251 / 255.0 - 0.1307) / 0.3081, 1e-5, 0);
    rp_data_close(&data);
}

static void missing_files(void **state) {
    (void)state;
    static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                        "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"};
    for (int i = 0; i < 4; i++) {
        write_idx_set(2, 2);
        unlink(in_folder(names[i]));
        expect_refused(RP_ERR_IO, "cannot be opened: No such file or directory; `ringpipe data");
        expect_part(folder);
    }
    write_idx_set(2, 2);
    unlink(in_folder(names[0]));
    mkdir(in_folder(names[0]), 0700);
    expect_refused(RP_ERR_IO, "is not a regular file");
}

static void every_cut_is_refused(void **state) {
    (void)state;
    unsigned char bytes[IDX_BYTES_MAX];
    static unsigned char packed[IDX_BYTES_MAX];
    write_idx_set(2, 2);
    size_t count = make_images(bytes, 2);
    for (size_t cut = 0; cut < count; cut += cut < 20 ? 1 : 97) {
        write_file("train-images-idx3-ubyte", bytes, cut);
        expect_refused(RP_ERR_FORMAT, "train-images-idx3-ubyte: ");
    }
    write_idx_set(2, 2);
    FILE *file = fopen(in_folder("t10k-images-idx3-ubyte.gz"), "rb");
    size_t packed_count = fread(packed, 1, sizeof packed, file);
    fclose(file);
    for (size_t cut = 0; cut < packed_count; cut += cut < 30 ? 1 : 7) {
        write_file("t10k-images-idx3-ubyte.gz", packed, cut);
        expect_refused(RP_ERR_FORMAT, "t10k-images-idx3-ubyte.gz: ");
    }
    /* All pixels are there, gzip's checksum is not, and the last pixels look like gzip's size. */
    count = make_images(bytes, 2);
    for (size_t i = 0; i < 4; i++) {
        bytes[count - 4 + i] = (unsigned char)(count >> 8 * i);
    }
    gzFile gz = gzopen(in_folder("t10k-images-idx3-ubyte.gz"), "wb0");
    assert_int_equal(gzwrite(gz, bytes, (unsigned)count), (int)count);
    assert_int_equal(gzclose(gz), Z_OK);
    file = fopen(in_folder("t10k-images-idx3-ubyte.gz"), "rb");
    packed_count = fread(packed, 1, sizeof packed, file);
    fclose(file);
    write_file("t10k-images-idx3-ubyte.gz", packed, packed_count - 8);
    expect_refused(RP_ERR_FORMAT, "t10k-images-idx3-ubyte.gz: unexpected end of file");
    /* Damage that only the checksum sees, and damage that zlib sees. */
    packed[packed_count - 8] ^= 1;
    write_file("t10k-images-idx3-ubyte.gz", packed, packed_count);
    expect_refused(RP_ERR_FORMAT, "incorrect data check");
}

static void headers_are_not_believed(void **state) {
    (void)state;
    unsigned char bytes[IDX_BYTES_MAX + 1];
    size_t count;
    static const struct {
        size_t at;
        uint32_t value;
        const char *part;
    } bad[] = {
        {0, 0x801, "magic 0x00000801, expected 0x00000803"},
        {4, 0, "the header requires 0 samples"},
        {4, 1, "the header requires 1 samples"},
        {4, 3, "truncated or damaged"},
        {4, 0xffffffff, "the header requires 4294967295 samples"},
        {8, 29, "pictures of 29 x 28 pixels, expected 28 x 28"},
        {12, 0, "pictures of 28 x 0"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_idx_set(2, 2);
        count = make_images(bytes, 2);
        put_big(bytes + bad[i].at, bad[i].value);
        write_file("train-images-idx3-ubyte", bytes, count);
        expect_refused(RP_ERR_FORMAT, bad[i].part);
        unlink(in_folder("train-images-idx3-ubyte"));
        write_gz("train-images-idx3-ubyte.gz", bytes, count);
        expect_refused(RP_ERR_FORMAT, bad[i].part);
        unlink(in_folder("train-images-idx3-ubyte.gz"));
    }
    write_idx_set(2, 2);
    count = make_images(bytes, 2);
    write_file("train-images-idx3-ubyte", bytes, count + 1);
    expect_refused(RP_ERR_FORMAT, "truncated or damaged");
    write_idx_set(2, 2);
    count = make_labels(bytes, 2);
    bytes[9] = 10;
    write_file("train-labels-idx1-ubyte", bytes, count);
    expect_refused(RP_ERR_FORMAT, "invalid label 10 of sample 1; expected 0 to 9");
    write_file("train-labels-idx1-ubyte", bytes, make_labels(bytes, 3));
    expect_refused(RP_ERR_FORMAT, "has 2 pictures, but");
    memset(bytes, 'x', 100);
    write_file("train-labels-idx1-ubyte", bytes, 100);
    expect_refused(RP_ERR_FORMAT, "magic 0x78787878");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plain_and_gzipped, setup, teardown),
        cmocka_unit_test_setup_teardown(missing_files, setup, teardown),
        cmocka_unit_test_setup_teardown(every_cut_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(headers_are_not_believed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
