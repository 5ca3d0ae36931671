#include "expect.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/safetensors.h"

static rp_arena arena;
static char folder[64];
static char path[96];

static int setup(void **state) {
    (void)state;
    rp_arena_init(&arena, "test", 0);
    (void)snprintf(folder, sizeof folder, "/tmp/rp-st-XXXXXX");
    (void)snprintf(path, sizeof path, "%s/w.safetensors", mkdtemp(folder));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rp_arena_finish(&arena);
    unlink(path);
    return rmdir(folder);
}

/* What the `safetensors` package 0.4 makes of {"fc.weight": float32 [[1, 2, 3], [4, 5, 6]],
 * "n": int64 [7]} with metadata {"step": "12"}: save() puts wide types first. */
static const char official[] =
    "\x98\0\0\0\0\0\0\0"
    "{\"__metadata__\":{\"step\":\"12\"},"
    "\"n\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
    "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]}}     "
    "\x07\0\0\0\0\0\0\0"
    "\0\0\x80?\0\0\0@\0\0@@\0\0\x80@\0\0\xa0@\0\0\xc0@";
static const size_t official_bytes = sizeof official - 1;

/* Length, header text, `data` zero bytes. */
static size_t compose_file(char *out, const char *header, size_t data) {
    size_t length = strlen(header);
    memset(out, 0, 8 + length + data);
    for (int i = 0; i < 8; i++) {
        out[i] = (char)(length >> 8 * i);
    }
    memcpy(out + 8, header, length);
    return 8 + length + data;
}

static void expect_refused(const char *bytes, size_t count, const char *part) {
    rp_st_reader *reader = NULL;
    /* In memory of exactly this size, so that a byte too many is seen by the sanitizer. */
    char *exact = test_malloc(count + 1);
    memcpy(exact + 1, bytes, count);
    expect_err(rp_st_open_bytes(&arena, exact + 1, count, "w.st", &reader), RP_ERR_FORMAT);
    assert_null(reader);
    if (!strstr(rp_err_message(), part) || !strstr(rp_err_message(), "w.st")) {
        fail_msg("'%s' is not in '%s'", part, rp_err_message());
    }
    test_free(exact);
}

static void expect_header_refused(const char *header, size_t data, const char *part) {
    char bytes[8192];
    expect_refused(bytes, compose_file(bytes, header, data), part);
}

static void official_file_is_read(void **state) {
    (void)state;
    rp_st_reader *reader = NULL;
    const float *values = NULL;
    expect_ok(rp_st_open_bytes(&arena, official, official_bytes, "w.st", &reader));
    assert_int_equal(rp_st_count(reader), 2);
    assert_string_equal(rp_st_entry_at(reader, 0)->name, "n");
    assert_string_equal(rp_st_meta(reader, "step"), "12");
    assert_null(rp_st_meta(reader, "none"));
    assert_null(rp_st_find(reader, "fc"));
    const rp_st_entry *n = rp_st_find(reader, "n");
    assert_int_equal(n->type, RP_ST_I64);
    int64_t seven;
    memcpy(&seven, rp_st_data(reader, n), sizeof seven);
    assert_int_equal(seven, 7);
    const uint64_t dim[] = {2, 3};
    expect_ok(rp_st_need_f32(reader, "fc.weight", 2, dim, &values));
    for (int i = 0; i < 6; i++) {
        expect_close(values[i], i + 1, 0, 0);
    }
    const uint64_t turned[] = {3, 2};
    expect_err(rp_st_need_f32(reader, "fc.weight", 2, turned, &values), RP_ERR_FORMAT);
    assert_string_equal(rp_err_message(),
                        "w.st: tensor 'fc.weight': expected shape [3, 2], found [2, 3]");
    expect_err(rp_st_need_f32(reader, "fc.weight", 1, dim, &values), RP_ERR_FORMAT);
    expect_ok(rp_st_need_f32(reader, "fc.weight", 4, (const uint64_t[]){1, 1, 2, 3}, &values));
    expect_err(rp_st_need_f32(reader, "fc.weight", 3, (const uint64_t[]){2, 1, 3}, &values),
               RP_ERR_FORMAT);
    expect_err(rp_st_need_f32(reader, "n", 1, dim, &values), RP_ERR_FORMAT);
    assert_string_equal(rp_err_message(),
                        "w.st: tensor 'n': expected F32, F16, BF16 or F64, found I64");
    expect_err(rp_st_need_f32(reader, "bias", 1, dim, &values), RP_ERR_FORMAT);
    rp_st_close(&reader);
    assert_null(reader);
}

static void every_cut_is_refused(void **state) {
    (void)state;
    for (size_t count = 0; count < official_bytes; count++) {
        expect_refused(official, count, "");
    }
    char longer[sizeof official + 1] = {0};
    memcpy(longer, official, official_bytes);
    expect_refused(longer, official_bytes + 1, "has 1 bytes after the last tensor");
}

static void headers_are_not_believed(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        const char *part;
    } bad[] = {
        {"[1,2,3,4]", 0, "does not begin with '{'"},
        {" {}", 0, "does not begin with '{'"},
        {"{\"a\":", 0, "header, byte"},
        {"{} x", 0, "header, byte"},
        {"{\"a\":1}", 0, "expected dtype, shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "expected dtype, shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4, "expected"},
        {"{\"a\":{\"dtype\":\"F8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, "dtype 'F8'"},
        {"{\"a\":{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype ''"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}", 4, "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, "dimension"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "dimension"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
         "more than 6"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "do not fit"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
         "do not fit"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "a gap"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, "after the end"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
         8, "overlaps"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
         12, "a gap"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
         8, "duplicate"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[9223372036854775807],"
         "\"data_offsets\":[0,9223372036854775807]}}",
         8, "after the end"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,99999999999999999999]}}", 8,
         "header, byte"},
        {"{\"\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "expected a name"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "is not a string"},
        {"{\"__metadata__\":[]}", 0, "is not a map"},
        {"{\"a\\u0000b\":1}", 0, "header, byte"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_header_refused(bad[i].header, bad[i].data, bad[i].part);
    }
    char name[512] = "{\"";
    memset(name + 2, 'x', 201);
    memcpy(name + 203, "\":1}", 5);
    expect_header_refused(name, 0, "expected a name");
    char deep[4096];
    memset(deep, '[', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    memcpy(deep, "{\"a\":", 5);
    expect_header_refused(deep, 0, "depth");
    expect_refused("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, "a header of 18446744073709551615");
    expect_refused("\x01\0\0\x01\0\0\0\0{}", 10, "a header of 16777217 bytes");
    expect_refused("\0\0\0\0\0\0\0\0{}", 10, "begin with");
}

/* Floats of other types become F32; what F32 can not hold is refused. */
static void floats_are_cast(void **state) {
    (void)state;
    static const uint8_t half[] = {0x00, 0x3e, 0x01, 0x00}; /* 1.5, the least above 0 */
    static const uint8_t brain[] = {0xc0, 0xbf, 0x20, 0x41};
    static const double wide[] = {0.1, -1e300};
    const struct {
        const char *type;
        const void *data;
        size_t bytes;
        float want[2];
    } kinds[] = {{"F16", half, sizeof half, {1.5f, 0x1p-24f}},
                 {"BF16", brain, sizeof brain, {-1.5f, 10}},
                 {"F64", wide, sizeof wide, {0.1f, 0}}};
    const uint64_t two = 2;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        char header[128];
        char bytes[256];
        rp_st_reader *reader = NULL;
        const float *values = NULL;
        (void)snprintf(header, sizeof header,
                       "{\"t\":{\"dtype\":\"%s\",\"shape\":[2],\"data_offsets\":[0,%zu]}}",
                       kinds[k].type, kinds[k].bytes);
        const size_t count = compose_file(bytes, header, kinds[k].bytes);
        memcpy(bytes + count - kinds[k].bytes, kinds[k].data, kinds[k].bytes);
        expect_ok(rp_st_open_bytes(&arena, bytes, count, "w.st", &reader));
        const rp_err err = rp_st_need_f32(reader, "t", 1, &two, &values);
        expect_close(values[0], (double)kinds[k].want[0], 0, 0);
        if (kinds[k].want[1] != 0) {
            expect_ok(err);
            expect_close(values[1], (double)kinds[k].want[1], 0, 0);
        } else {
            expect_err(err, RP_ERR_FORMAT);
            assert_string_equal(rp_err_message(), "w.st: tensor 't': value 1 is too large for F32");
        }
    }
}

static void odd_but_legal(void **state) {
    (void)state;
    char bytes[1024];
    rp_st_reader *reader = NULL;
    size_t count = compose_file(bytes, "{}", 0);
    expect_ok(rp_st_open_bytes(&arena, bytes, count, "w.st", &reader));
    assert_int_equal(rp_st_count(reader), 0);
    /* A scalar, an empty tensor, out of order, and floats at an odd address. */
    count = compose_file(bytes,
                         "{\"v\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[1,5]},"
                         "\"e\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[5,5]},"
                         "\"u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}} \n",
                         5);
    const float half = 0.5f;
    memcpy(bytes + count - 4, &half, 4);
    expect_ok(rp_st_open_bytes(&arena, bytes, count, "w.st", &reader));
    const float *values = NULL;
    expect_ok(rp_st_need_f32(reader, "v", 0, NULL, &values));
    expect_close(values[0], 0.5, 0, 0);
    expect_ok(rp_st_need_f32(reader, "e", 2, (const uint64_t[]){0, 3}, &values));
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        memcpy(bytes + count - 4, &bad[i], 4);
        expect_err(rp_st_need_f32(reader, "v", 0, NULL, &values), RP_ERR_FORMAT);
    }
    assert_string_equal(rp_err_message(), "w.st: tensor 'v': value 0 is infinite");
}

static const rp_st_entry two[] = {
    {.name = "n", .type = RP_ST_I64, .dims = 1, .dim = {1}},
    {.name = "fc.weight", .type = RP_ST_F32, .dims = 2, .dim = {2, 3}}};
static const char *const step_12[] = {"step", "12", NULL};

static size_t slurp(char *out, size_t room) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t count = fread(out, 1, room, file);
    fclose(file);
    return count;
}

static void written_bytes_are_the_official_ones(void **state) {
    (void)state;
    rp_st_writer *writer = NULL;
    char back[1024];
    const char *data = official + official_bytes - 32;
    expect_ok(rp_st_create(&arena, path, two, 2, step_12, false, &writer));
    assert_int_equal(access(path, F_OK), -1);
    /* Any order, in pieces, some twice. */
    expect_ok(rp_st_write(writer, 1, 20, data + 28, 4));
    expect_ok(rp_st_write(writer, 1, 0, data + 8, 4));
    expect_ok(rp_st_write(writer, 1, 8, data + 16, 4));
    expect_ok(rp_st_write(writer, 0, 0, data, 8));
    expect_ok(rp_st_write(writer, 1, 2, data + 10, 18));
    expect_ok(rp_st_write(writer, 1, 24, data, 0));
    expect_err(rp_st_write(writer, 1, 24, data, 1), RP_ERR_LIMIT);
    expect_err(rp_st_write(writer, 1, UINT64_MAX, data, 2), RP_ERR_LIMIT);
    expect_ok(rp_st_commit(&writer));
    assert_null(writer);
    assert_int_equal(slurp(back, sizeof back), official_bytes);
    assert_memory_equal(back, official, official_bytes);
    rp_st_reader *reader = NULL;
    expect_ok(rp_st_open(&arena, path, &reader));
    assert_int_equal(rp_st_count(reader), 2);
    rp_st_close(&reader);
}

/* Opens `bytes` and asks for the checksums. */
static rp_err open_summed(const char *bytes, size_t count) {
    rp_arena own;
    rp_st_reader *reader = NULL;
    rp_err err;
    rp_arena_init(&own, "summed", 0);
    RP_TRY(rp_st_open_bytes(&own, bytes, count, "summed", &reader));
    RP_TRY(rp_st_check_sums(reader));
fail:
    rp_st_close(&reader);
    rp_arena_finish(&own);
    return err;
}

/* With checksums no bit may differ, and none without a name may be missing. */
static void a_flipped_bit_is_found(void **state) {
    (void)state;
    rp_st_writer *writer = NULL;
    char file[2048];
    const char *data = official + official_bytes - 32;
    expect_ok(rp_st_create(&arena, path, two, 2, step_12, true, &writer));
    expect_ok(rp_st_write(writer, 0, 0, data, 8));
    expect_ok(rp_st_write(writer, 1, 0, data + 8, 24));
    expect_ok(rp_st_commit(&writer));
    const size_t count = slurp(file, sizeof file);
    expect_ok(open_summed(file, count));
    expect_ok(open_summed(official, official_bytes)); /* it was written without */
    for (size_t i = 0; i < 8 * count; i++) {
        file[i / 8] = (char)(file[i / 8] ^ 1 << i % 8);
        if (open_summed(file, count) == RP_OK) {
            fail_msg("bit %zu of byte %zu of %zu is flipped, and nobody sees it", i % 8, i / 8,
                     count);
        }
        file[i / 8] = (char)(file[i / 8] ^ 1 << i % 8);
    }
    file[count - 1] ^= 1;
    expect_err(open_summed(file, count), RP_ERR_FORMAT);
    assert_non_null(strstr(rp_err_message(), "the checksum of tensor 'fc.weight' does not match"));
    for (size_t i = 0; i < count; i++) {
        expect_err(open_summed(file, i), RP_ERR_FORMAT);
    }
}

static void old_file_stays_until_commit(void **state) {
    (void)state;
    rp_st_writer *writer = NULL;
    char back[1024];
    written_bytes_are_the_official_ones(state);
    expect_ok(rp_st_create(&arena, path, two, 2, NULL, false, &writer));
    expect_ok(rp_st_write(writer, 1, 0, official, 24));
    expect_err(rp_st_commit(&writer), RP_ERR_FORMAT);
    assert_non_null(strstr(rp_err_message(), "'n' is not completely written"));
    assert_null(writer);
    expect_ok(rp_st_create(&arena, path, two, 2, NULL, false, &writer));
    expect_ok(rp_st_write(writer, 1, 0, official, 24));
    rp_st_abandon(&writer);
    rp_st_abandon(&writer);
    /* Too big for any disk: seen before a byte is written. */
    const rp_st_entry huge = {.name = "x", .type = RP_ST_U8, .dims = 1, .dim = {UINT64_C(1) << 62}};
    expect_err(rp_st_create(&arena, path, &huge, 1, NULL, false, &writer), RP_ERR_IO);
    assert_null(writer);
    assert_int_equal(slurp(back, sizeof back), official_bytes);
    assert_memory_equal(back, official, official_bytes);
    char temporary[128];
    (void)snprintf(temporary, sizeof temporary, "%s.tmp", path);
    assert_int_equal(access(temporary, F_OK), -1);
}

static void bad_targets(void **state) {
    (void)state;
    rp_st_writer *writer = NULL;
    rp_st_reader *reader = NULL;
    char missing[128];
    (void)snprintf(missing, sizeof missing, "%s/none/w.safetensors", folder);
    expect_err(rp_st_create(&arena, missing, two, 2, NULL, false, &writer), RP_ERR_IO);
    assert_non_null(strstr(rp_err_message(), missing));
    expect_err(rp_st_open(&arena, missing, &reader), RP_ERR_IO);
    expect_err(rp_st_open(&arena, folder, &reader), RP_ERR_IO);
    expect_err(rp_st_open(&arena, "/dev/null", &reader), RP_ERR_IO);
    static const rp_st_entry same[] = {{.name = "a", .dims = 0}, {.name = "a", .dims = 0}};
    expect_err(rp_st_create(&arena, path, same, 2, NULL, false, &writer), RP_ERR_FORMAT);
    static const rp_st_entry bad[] = {{.name = ""},
                                      {.name = "__metadata__"},
                                      {.name = "\xff"},
                                      {.name = "d", .dims = 7},
                                      {.name = "o", .dims = 2, .dim = {1ull << 40, 1ull << 40}}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_err(rp_st_create(&arena, path, &bad[i], 1, NULL, false, &writer), RP_ERR_FORMAT);
    }
    static const rp_st_entry line = {.name = "a", .type = RP_ST_U8, .dims = 1, .dim = {100}};
    expect_ok(rp_st_create(&arena, path, &line, 1, NULL, false, &writer));
    for (uint64_t i = 0; i < 16; i += 2) {
        expect_ok(rp_st_write(writer, 0, i, "x", 1));
    }
    expect_err(rp_st_write(writer, 0, 50, "x", 1), RP_ERR_LIMIT);
    rp_st_abandon(&writer);
}

/* Offsets beyond 2 GiB, in a sparse file. */
static void three_gibibytes(void **state) {
    (void)state;
    char header[8192];
    size_t count =
        compose_file(header,
                     "{\"big\":{\"dtype\":\"U8\",\"shape\":[3221225472],\"data_offsets\":"
                     "[0,3221225472]},\"w\":{\"dtype\":\"F32\",\"shape\":[1],"
                     "\"data_offsets\":[3221225472,3221225476]}}",
                     0);
    const float value = 2.5f;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, header, count, 0), count);
    assert_int_equal(pwrite(fd, &value, 4, (off_t)count + INT64_C(3221225472)), 4);
    close(fd);
    rp_st_reader *reader = NULL;
    const float *values = NULL;
    expect_ok(rp_st_open(&arena, path, &reader));
    expect_ok(rp_st_need_f32(reader, "w", 1, (const uint64_t[]){1}, &values));
    expect_close(values[0], 2.5, 0, 0);
    rp_st_close(&reader);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(official_file_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(every_cut_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(headers_are_not_believed, setup, teardown),
        cmocka_unit_test_setup_teardown(floats_are_cast, setup, teardown),
        cmocka_unit_test_setup_teardown(odd_but_legal, setup, teardown),
        cmocka_unit_test_setup_teardown(written_bytes_are_the_official_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(a_flipped_bit_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(old_file_stays_until_commit, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_targets, setup, teardown),
        cmocka_unit_test_setup_teardown(three_gibibytes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
