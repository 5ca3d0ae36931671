/* Arrays in files: headers of .npy and idx, every type, and what is refused. */
#include "fixture.h"

#include <math.h>

#include "data/array.h"

/* A .npy file: `version`, a header padded as NumPy does, and numbers. */
static void write_npy(const char *name, int version, const char *header, const void *numbers,
                      size_t count) {
    static uint8_t bytes[1 << 16];
    const size_t lead = version > 1 ? 12 : 10;
    const size_t length = (lead + strlen(header) + 64) / 64 * 64 - lead;
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (uint8_t)version;
    bytes[7] = 0;
    bytes[8] = (uint8_t)length;
    bytes[9] = (uint8_t)(length >> 8);
    bytes[10] = bytes[11] = 0;
    memset(bytes + lead, ' ', length);
    memcpy(bytes + lead, header, strlen(header));
    bytes[lead + length - 1] = '\n';
    memcpy(bytes + lead + length, numbers, count);
    write_file(name, bytes, lead + length + count);
}

static rp_err open_array(const char *name, rp_array *out) {
    char *path;
    expect_ok(rp_arena_string(&arena, in_folder(name), &path));
    return rp_array_open(&arena, path, out);
}

static void expect_values(const char *name, bool pixels, const float *want, uint32_t count,
                          uint32_t width) {
    rp_array a;
    double value[64];
    float row[64];
    expect_ok(open_array(name, &a));
    assert_int_equal(a.count, count);
    assert_int_equal(rp_shape_count(&a.sample), width);
    for (uint32_t i = 0; i < count; i++) {
        expect_ok(rp_array_read(&a, i, pixels, value));
        expect_ok(rp_array_read_row(&a, i, row));
        for (uint32_t k = 0; k < width; k++) {
            assert_true((float)value[k] == want[(size_t)i * width + k]);
            assert_true(row[k] == want[(size_t)i * width + k] || pixels);
        }
    }
    rp_array_close(&a);
    rp_array_close(&a);
}

static void types_of_npy(void **state) {
    (void)state;
    const float f4[] = {1.5f, -2, 3e30f, 0};
    const double f8[] = {1.5, -2, 0.1, 1e-300};
    const uint8_t u1[] = {0, 255, 51, 1};
    const int8_t i1[] = {-128, 127, 0, -1};
    const int16_t i2[] = {-32768, 32767, 0, -1};
    const int32_t i4[] = {-2147483647 - 1, 7, 0, -1};
    const int64_t i8[] = {-1, 1 << 24, 65536, -(INT64_C(1) << 40)};
    const uint8_t big[] = {0, 0, 1, 0, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 3, 0x80, 0, 0, 0};
    write_npy("f4.npy", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", f4, 16);
    expect_values("f4.npy", true, f4, 2, 2);
    write_npy("f8.npy", 2, "{'descr': '<f8', 'fortran_order': False, 'shape': (4,), }", f8, 32);
    expect_values("f8.npy", true, (const float[]){1.5f, -2, 0.1f, 0}, 4, 1);
    write_npy("u1.npy", 3, "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 2), }", u1, 4);
    expect_values("u1.npy", true, (const float[]){0, 1, 51 / 255.0f, 1 / 255.0f}, 1, 4);
    expect_values("u1.npy", false, (const float[]){0, 255, 51, 1}, 1, 4);
    write_npy("i1.npy", 1, "{\"shape\":(2,2),\"descr\":\"|i1\",\"fortran_order\":False}", i1, 4);
    expect_values("i1.npy", true, (const float[]){-128, 127, 0, -1}, 2, 2);
    write_npy("i2.npy", 1, "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2)}", i2, 8);
    expect_values("i2.npy", true, (const float[]){-32768, 32767, 0, -1}, 2, 2);
    write_npy("i4.npy", 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 2), }", i4, 16);
    expect_values("i4.npy", true, (const float[]){-2147483648.0f, 7, 0, -1}, 2, 2);
    write_npy("i8.npy", 1, "{'descr': '<i8', 'fortran_order': False, 'shape': (4, 1), }", i8, 32);
    expect_values("i8.npy", true, (const float[]){-1, 1 << 24, 65536, -1099511627776.0f}, 4, 1);
    write_npy("u2.npy", 1, "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 2), }", i2, 8);
    expect_values("u2.npy", true, (const float[]){32768, 32767, 0, 65535}, 2, 2);
    write_npy("u4.npy", 1, "{'descr': '<u4', 'fortran_order': False, 'shape': (2, 2), }", i4, 16);
    expect_values("u4.npy", true, (const float[]){2147483648.0f, 7, 0, 4294967295.0f}, 2, 2);
    write_npy("u8.npy", 1, "{'descr': '<u8', 'fortran_order': False, 'shape': (4, 1), }", i8, 32);
    expect_values("u8.npy", true,
                  (const float[]){18446744073709551615.0f, 1 << 24, 65536, 18446742974197923840.0f},
                  4, 1);
    write_npy("b4.npy", 1, "{'descr': '>i4', 'fortran_order': False, 'shape': (4,), }", big, 16);
    expect_values("b4.npy", true, (const float[]){256, -2, 3, -2147483648.0f}, 4, 1);
}

static void classes(void **state) {
    (void)state;
    const int64_t i8[] = {0, 65535, 65536, -1};
    rp_array a;
    int32_t label;
    write_npy("y.npy", 1, "{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }", i8, 32);
    expect_ok(open_array("y.npy", &a));
    expect_ok(rp_array_read_class(&a, 1, &label));
    assert_int_equal(label, 65535);
    for (uint32_t i = 2; i < 4; i++) {
        expect_err(rp_array_read_class(&a, i, &label), RP_ERR_FORMAT);
        expect_part(i == 2 ? "y.npy: invalid class 65536 of sample 2; expected 0 to 65535"
                           : "y.npy: invalid class -1 of sample 3");
    }
    rp_array_close(&a);
    write_npy("y.npy", 1, "{'descr': '<u8', 'fortran_order': False, 'shape': (4,), }", i8, 32);
    expect_ok(open_array("y.npy", &a));
    expect_err(rp_array_read_class(&a, 3, &label), RP_ERR_FORMAT); /* 2^64 - 1 */
    rp_array_close(&a);
}

static void expect_refused(const char *name, rp_err wanted, const char *part) {
    rp_array a;
    expect_err(open_array(name, &a), wanted);
    expect_part(name);
    expect_part(part);
    assert_null(a.path);
}

static void bad_npy(void **state) {
    (void)state;
    static const struct {
        const char *header, *part;
    } bad[] = {
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", "is in Fortran order"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (2, 2), }",
         "type of numbers '<c8'; expected f4"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2, 2), }",
         "unsupported type of numbers '|O'"},
        {"{'descr': '=f4', 'fortran_order': False, 'shape': (2, 2), }",
         "unsupported type of numbers '=f4'"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "a type of numbers"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 2), }", "True or False"},
        {"{'descr': '<f4', 'shape': (2, 2), }", "descr, fortran_order and shape"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (4,)}", "once"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), 'x': 1}", "once"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), } more", "exactly the keys"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "a single number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 2)}", "',' or ')'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 4)}", "up to 7 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,4)}", "7 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4)}", "0 samples; expected 1"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 0)}", "expected 1 to"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 1)}",
         "up to 7 dimensions"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000000)}",
         "truncated or damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", "truncated or damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "truncated or damaged"},
        {"{'descr': '<f4", "a type of numbers"},
        {"", "expected '{'"},
    };
    const float f4[4] = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_npy("x.npy", 1 + (int)(i % 3), bad[i].header, f4, sizeof f4);
        expect_refused("x.npy", RP_ERR_FORMAT, bad[i].part);
    }
    write_npy("x.npy", 4, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}", f4, 16);
    expect_refused("x.npy", RP_ERR_FORMAT, "version 1, 2 or 3");
    write_file("x.npy", "\x93NUMPY\x02\x00\xff\xff\xff\xff{", 13);
    expect_refused("x.npy", RP_ERR_FORMAT, "invalid header of 4294967295 bytes");
    write_file("x.npy", "", 0);
    expect_refused("x.npy", RP_ERR_FORMAT, "this is not a .npy file");
    expect_refused("none.npy", RP_ERR_IO, "cannot be opened");
    const float infinite[] = {0, 1, INFINITY, NAN};
    rp_array a;
    double x[2];
    write_npy("x.npy", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}", infinite,
              16);
    expect_ok(open_array("x.npy", &a));
    expect_ok(rp_array_read(&a, 0, true, x));
    expect_err(rp_array_read(&a, 1, true, x), RP_ERR_FORMAT);
    expect_part("x.npy: value 0 of sample 1 is not finite");
    /* The file becomes shorter while it is open. */
    assert_int_equal(truncate(in_folder("x.npy"), 100), 0);
    expect_err(rp_array_read(&a, 0, true, x), RP_ERR_IO);
    rp_array_close(&a);
}

/* Every cut, and every byte of the header changed: an error or a sound array, never more. */
static void damaged_npy(void **state) {
    (void)state;
    static uint8_t bytes[256];
    const float f4[8] = {1};
    write_npy("x.npy", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }", f4, 32);
    FILE *file = fopen(in_folder("x.npy"), "rb");
    const size_t count = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    rp_array a;
    double x[8];
    for (size_t cut = 0; cut < count; cut++) {
        write_file("x.npy", bytes, cut);
        expect_err(open_array("x.npy", &a), RP_ERR_FORMAT);
    }
    for (size_t at = 0; at < count - 32; at++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[at] ^= (uint8_t)(1 << bit);
            write_file("x.npy", bytes, count);
            if (open_array("x.npy", &a) == RP_OK) {
                assert_int_equal((size_t)a.count * rp_shape_count(&a.sample) * a.bytes, 32);
                for (uint32_t i = 0; i < a.count && rp_shape_count(&a.sample) <= 8; i++) {
                    (void)!rp_array_read(&a, i, true, x);
                }
                rp_array_close(&a);
            }
            bytes[at] ^= (uint8_t)(1 << bit);
        }
    }
}

static void idx_files(void **state) {
    (void)state;
    static const uint8_t bytes[] = {0, 0, 8, 3, 0, 0, 0, 2,  0,   0,
                                    0, 1, 0, 0, 0, 2, 0, 51, 102, 255};
    static const uint8_t floats[] = {0, 0, 13, 1, 0, 0, 0, 2, 0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0};
    static const uint8_t shorts[] = {0, 0, 11, 1, 0, 0, 0, 2, 0xff, 0xfe, 1, 0};
    const float want[] = {0, 51 / 255.0f, 102 / 255.0f, 1};
    write_file("u", bytes, sizeof bytes);
    expect_values("u", true, want, 2, 2);
    write_gz("u.gz", bytes, sizeof bytes);
    expect_values("u.gz", true, want, 2, 2);
    write_file("f", floats, sizeof floats);
    expect_values("f", true, (const float[]){1, -2}, 2, 1);
    write_file("s", shorts, sizeof shorts);
    expect_values("s", true, (const float[]){-2, 256}, 2, 1);
    for (size_t cut = 0; cut < sizeof bytes; cut++) {
        write_file("u", bytes, cut);
        expect_refused("u", RP_ERR_FORMAT, "");
        write_gz("u.gz", bytes, cut);
        expect_refused("u.gz", RP_ERR_FORMAT, "");
    }
    uint8_t more[sizeof bytes + 1] = {0};
    memcpy(more, bytes, sizeof bytes);
    write_file("u", more, sizeof more);
    expect_refused("u", RP_ERR_FORMAT, "truncated or damaged");
    write_gz("u.gz", more, sizeof more);
    expect_refused("u.gz", RP_ERR_FORMAT, "truncated or damaged");
    more[2] = 10;
    write_file("u", more, sizeof more);
    expect_refused("u", RP_ERR_FORMAT, "this is not an idx file");
    memcpy(more, bytes, sizeof bytes);
    more[4] = 0x3b; /* 990 million samples of a few bytes, packed: no memory is taken */
    write_gz("u.gz", more, sizeof bytes);
    expect_refused("u.gz", RP_ERR_FORMAT, "truncated or damaged");
    /* A packed file whose end is lost. */
    write_gz("u.gz", bytes, sizeof bytes);
    assert_int_equal(truncate(in_folder("u.gz"), 30), 0);
    expect_refused("u.gz", RP_ERR_FORMAT, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(types_of_npy, setup, teardown),
        cmocka_unit_test_setup_teardown(classes, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_npy, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged_npy, setup, teardown),
        cmocka_unit_test_setup_teardown(idx_files, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
