#include "base/tensor_range.h"

#include <math.h>

#include "expect.h"

static char bytes[1024];

/* One tensor `t` of this type and these values. */
static rp_tensor_range range_of(const char *type, int count, const void *data, size_t data_bytes) {
    rp_arena arena;
    rp_st_reader *reader = NULL;
    const int length = snprintf(bytes + 8, sizeof bytes - 8,
                                "{\"t\":{\"dtype\":\"%s\",\"shape\":[%d,1],"
                                "\"data_offsets\":[0,%zu]}}",
                                type, count, data_bytes);
    memset(bytes, 0, 8);
    bytes[0] = (char)length;
    memcpy(bytes + 8 + length, data, data_bytes);
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_st_open_bytes(&arena, bytes, 8 + (size_t)length + data_bytes, "t", &reader));
    const rp_tensor_range range = rp_tensor_range_of(reader, rp_st_entry_at(reader, 0));
    assert_string_equal(rp_st_type_name(rp_st_entry_at(reader, 0)->type), type);
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return range;
}

static void expect_range(const rp_tensor_range *range, uint64_t count, double min, double max,
                         double mean) {
    assert_int_equal(range->count, count);
    expect_close(range->min, min, 0, 0);
    expect_close(range->max, max, 0, 0);
    expect_close(range->mean, mean, 1e-12, 0);
}

static void every_type_is_read(void **state) {
    (void)state;
    const float f32[] = {-1.5F, 4, 0.5F};
    const double f64[] = {-1.5, 4, 0.5};
    const int32_t i32[] = {-7, 1, 0};
    const int64_t i64[] = {-70, 10, 0};
    const uint8_t u8[] = {250, 1, 1};
    const uint16_t f16[] = {0xbe00, 0x4400, 0x0001}; /* -1.5, 4, the least above 0 */
    const uint16_t bf16[] = {0xbfc0, 0x4080, 0x3f00};
    rp_tensor_range r = range_of("F32", 3, f32, sizeof f32);
    expect_range(&r, 3, -1.5, 4, 1);
    r = range_of("F64", 3, f64, sizeof f64);
    expect_range(&r, 3, -1.5, 4, 1);
    r = range_of("I32", 3, i32, sizeof i32);
    expect_range(&r, 3, -7, 1, -2);
    r = range_of("I64", 3, i64, sizeof i64);
    expect_range(&r, 3, -70, 10, -20);
    r = range_of("U8", 3, u8, sizeof u8);
    expect_range(&r, 3, 1, 250, 84);
    r = range_of("F16", 3, f16, sizeof f16);
    expect_range(&r, 3, -1.5, 4, (2.5 + ldexp(1, -24)) / 3);
    r = range_of("BF16", 3, bf16, sizeof bf16);
    expect_range(&r, 3, -1.5, 4, 1);
    assert_int_equal(r.nan + r.infinite, 0);
}

/* Every type of the format is known; those that are not plain numbers have no range. */
static void other_types_are_listed(void **state) {
    (void)state;
    static const struct {
        const char *type;
        size_t bytes; /* of 4 elements */
        double min;
    } kinds[] = {{"I8", 4, -1},
                 {"I16", 8, -1},
                 {"U16", 8, 65535},
                 {"U32", 16, 4294967295.0},
                 {"U64", 32, 0x1p64},
                 {"BOOL", 4, (double)NAN},
                 {"C64", 32, (double)NAN},
                 {"F8_E5M2", 4, (double)NAN},
                 {"F8_E4M3", 4, (double)NAN},
                 {"F8_E8M0", 4, (double)NAN},
                 {"F6_E2M3", 3, (double)NAN},
                 {"F6_E3M2", 3, (double)NAN},
                 {"F4", 2, (double)NAN}};
    uint8_t ones[32];
    memset(ones, 0xff, sizeof ones);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const rp_tensor_range r = range_of(kinds[k].type, 4, ones, kinds[k].bytes);
        assert_int_equal(r.count, 4);
        assert_int_equal(r.nan + r.infinite, 0);
        assert_true(isnan(kinds[k].min) ? isnan(r.min) : r.min == kinds[k].min);
    }
}

static void what_is_not_finite_is_counted(void **state) {
    (void)state;
    const float f32[] = {NAN, 2, -INFINITY, NAN};
    const uint16_t f16[] = {0x7e00, 0x7c00, 0xfc00}; /* NaN, both infinities */
    rp_tensor_range r = range_of("F32", 4, f32, sizeof f32);
    expect_range(&r, 4, 2, 2, 2);
    assert_int_equal(r.nan, 2);
    assert_int_equal(r.infinite, 1);
    r = range_of("F16", 3, f16, sizeof f16);
    assert_int_equal(r.nan, 1);
    assert_int_equal(r.infinite, 2);
    assert_true(isnan(r.min) && isnan(r.max) && isnan(r.mean));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(other_types_are_listed),
        cmocka_unit_test(what_is_not_finite_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
