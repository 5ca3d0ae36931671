/* Activations in 16 bits: the kernels against golden bits. Those of f16 were made by numpy's
 * float16, those of bf16 by hand. */
#include "codec/storage.h"
#include "nn/golden.h"

#include <math.h>

enum { LEAD = 5, TAIL = 3, ALL = 128, EVERY = 65536 };

static const struct {
    uint32_t f32;
    uint16_t f16, bf16;
} golden[] = {
    {0x00000000, 0x0000, 0x0000}, /* 0 */
    {0x80000000, 0x8000, 0x8000}, /* -0 */
    {0x3f800000, 0x3c00, 0x3f80}, /* 1 */
    {0xbf800000, 0xbc00, 0xbf80}, /* -1 */
    {0x40490fdb, 0x4248, 0x4049}, /* pi */
    {0x3eaaaaab, 0x3555, 0x3eab}, /* 1 / 3 */
    {0xc2f6e979, 0xd7b7, 0xc2f7}, /* -123.456 */
    /* ties of f16, and their neighbours */
    {0x3f801000, 0x3c00, 0x3f80}, /* 1 + 2^-11 */
    {0x3f803000, 0x3c02, 0x3f80}, /* 1 + 3 * 2^-11 */
    {0x3f801001, 0x3c01, 0x3f80},
    {0x3f800fff, 0x3c00, 0x3f80},
    /* ties of bf16, and a neighbour */
    {0x3f808000, 0x3c04, 0x3f80}, /* 1 + 2^-8 */
    {0x3f818000, 0x3c0c, 0x3f82}, /* 1 + 3 * 2^-8 */
    {0x3f808001, 0x3c04, 0x3f81},
    /* subnormal numbers of f16 */
    {0x33800000, 0x0001, 0x3380}, /* 2^-24, the smallest */
    {0x33000000, 0x0000, 0x3300}, /* 2^-25, a tie */
    {0x33000001, 0x0001, 0x3300},
    {0xb3000001, 0x8001, 0xb300},
    {0x33c00000, 0x0002, 0x33c0}, /* 1.5 * 2^-24, a tie */
    {0x34200000, 0x0002, 0x3420}, /* 2.5 * 2^-24, a tie */
    {0x387fc000, 0x03ff, 0x3880}, /* 1023 * 2^-24, the largest */
    {0x387fdfff, 0x03ff, 0x3880},
    {0x387fe000, 0x0400, 0x3880}, /* a tie */
    {0x38800000, 0x0400, 0x3880}, /* 2^-14, the smallest normal one */
    /* subnormal numbers of f32 */
    {0x00000001, 0x0000, 0x0000},
    {0x00008001, 0x0000, 0x0001},
    {0x807fffff, 0x8000, 0x8080},
    /* the ends of the ranges */
    {0x477fe000, 0x7bff, 0x4780}, /* 65504 */
    {0x477fefff, 0x7bff, 0x4780},
    {0x477ff000, 0x7c00, 0x4780}, /* 65520 */
    {0xc77ff000, 0xfc00, 0xc780},
    {0x7f7f7fff, 0x7c00, 0x7f7f},
    {0x7f7f8000, 0x7c00, 0x7f80},
    {0x7f7fffff, 0x7c00, 0x7f80}, /* the largest f32 */
    {0x7f800000, 0x7c00, 0x7f80}, /* infinite */
    {0xff800000, 0xfc00, 0xff80},
};

enum { GOLDEN = sizeof golden / sizeof *golden };
_Static_assert(GOLDEN + LEAD + TAIL <= ALL && GOLDEN % 16 > 0, "the last item is not full");

typedef struct {
    rp_arena arena;
    rp_darena *memory;
    rp_tensor x, packed; /* views that begin inside of their buffers */
} rig;

static void open_it(rig *r, rp_dtype format, uint32_t count) {
    rp_buffer *floats;
    rp_buffer *halves;
    rp_arena_init(&r->arena, "storage", 0);
    expect_ok(rp_darena_open(&r->arena, golden_device(), "storage", 0, 0, &r->memory));
    expect_ok(rp_darena_take(r->memory, (LEAD + count + TAIL) * sizeof(float), &floats));
    expect_ok(rp_darena_take(r->memory, (LEAD + count + TAIL) * sizeof(uint16_t), &halves));
    r->x = (rp_tensor){.buffer = floats, .offset = LEAD, .shape = rp_shape_1(count)};
    r->packed =
        (rp_tensor){.buffer = halves, .offset = LEAD, .dtype = format, .shape = rp_shape_1(count)};
}

static void close_it(rig *r) {
    rp_darena_close(&r->memory);
    rp_arena_finish(&r->arena);
}

static void write_whole(const rp_tensor *to, const void *from) {
    expect_ok(
        rp_buffer_write_now(golden_device(), to->buffer, 0, from, rp_buffer_bytes(to->buffer)));
}

static void read_whole(const rp_tensor *from, void *to) {
    expect_ok(
        rp_buffer_read_now(golden_device(), to, from->buffer, 0, rp_buffer_bytes(from->buffer)));
}

static uint32_t bits_of_f16(uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const int digits = bits & 0x3ff;
    const float size =
        exponent == 0 ? ldexpf((float)digits, -24) : ldexpf((float)(1024 + digits), exponent - 25);
    uint32_t out;
    memcpy(&out, &size, sizeof out);
    out = exponent == 31 ? 0x7f800000u | (uint32_t)digits << 13 : out;
    return out | (uint32_t)(bits & 0x8000) << 16;
}

static uint32_t bits_of(rp_dtype format, uint16_t bits) {
    return format == RP_F16 ? bits_of_f16(bits) : (uint32_t)bits << 16;
}

static const rp_dtype formats[] = {RP_F16, RP_BF16};

/* Rounding in place and packing give the same values, and nothing around them changes. */
static void rounds_to_golden_bits(void **state) {
    (void)state;
    for (size_t f = 0; f < 2; f++) {
        uint32_t x[ALL], rounded[ALL], unpacked[ALL];
        uint16_t packed[ALL];
        rig r;
        open_it(&r, formats[f], GOLDEN);
        memset(x, 0x5a, sizeof x);
        memset(packed, 0x5a, sizeof packed);
        for (uint32_t i = 0; i < GOLDEN; i++) {
            x[LEAD + i] = golden[i].f32;
        }
        write_whole(&r.x, x);
        expect_ok(rp_storage_round(golden_device(), formats[f], &r.x));
        read_whole(&r.x, rounded);
        write_whole(&r.x, x);
        write_whole(&r.packed, packed);
        expect_ok(rp_storage_pack(golden_device(), &r.packed, &r.x));
        read_whole(&r.x, unpacked);
        assert_memory_equal(rounded, unpacked, (LEAD + GOLDEN + TAIL) * sizeof *rounded);
        read_whole(&r.packed, packed);
        write_whole(&r.x, x);
        expect_ok(rp_storage_unpack(golden_device(), &r.x, &r.packed));
        read_whole(&r.x, unpacked);
        assert_memory_equal(rounded, unpacked, (LEAD + GOLDEN + TAIL) * sizeof *rounded);
        for (uint32_t i = 0; i < LEAD + GOLDEN + TAIL; i++) {
            const bool inside = i >= LEAD && i < LEAD + GOLDEN;
            const uint16_t want = !inside                ? 0x5a5a
                                  : formats[f] == RP_F16 ? golden[i - LEAD].f16
                                                         : golden[i - LEAD].bf16;
            assert_int_equal(packed[i], want);
            assert_int_equal(rounded[i], inside ? bits_of(formats[f], want) : 0x5a5a5a5a);
        }
        close_it(&r);
    }
}

static void a_nan_stays_one(void **state) {
    (void)state;
    static const uint32_t nans[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001,
                                    0x7fbfffff, 0x7fffffff, 0x7f808000, 0x7f807fff};
    enum { COUNT = sizeof nans / sizeof *nans };
    for (size_t f = 0; f < 2; f++) {
        float x[LEAD + COUNT + TAIL] = {0};
        rig r;
        open_it(&r, formats[f], COUNT);
        for (int way = 0; way < 2; way++) {
            memcpy(x + LEAD, nans, sizeof nans);
            write_whole(&r.x, x);
            if (way == 0) {
                expect_ok(rp_storage_round(golden_device(), formats[f], &r.x));
            } else {
                expect_ok(rp_storage_pack(golden_device(), &r.packed, &r.x));
                write_whole(&r.x, (float[LEAD + COUNT + TAIL]){0});
                expect_ok(rp_storage_unpack(golden_device(), &r.x, &r.packed));
            }
            read_whole(&r.x, x);
            for (uint32_t i = 0; i < COUNT; i++) {
                assert_true(isnan(x[LEAD + i]));
            }
        }
        close_it(&r);
    }
}

/* All 16-bit values unpack to what they mean, and rounding leaves them as they are. */
static void every_value_is_itself(void **state) {
    (void)state;
    static uint16_t packed[LEAD + EVERY + TAIL];
    static uint32_t x[LEAD + EVERY + TAIL];
    for (size_t f = 0; f < 2; f++) {
        rig r;
        open_it(&r, formats[f], EVERY);
        for (uint32_t i = 0; i < EVERY; i++) {
            packed[LEAD + i] = (uint16_t)i;
        }
        write_whole(&r.packed, packed);
        for (int again = 0; again < 2; again++) {
            expect_ok(again ? rp_storage_pack(golden_device(), &r.packed, &r.x)
                            : rp_storage_unpack(golden_device(), &r.x, &r.packed));
            read_whole(&r.x, x);
            read_whole(&r.packed, packed);
            for (uint32_t i = 0; i < EVERY; i++) {
                const uint32_t want = bits_of(formats[f], (uint16_t)i);
                if ((want & 0x7fffffff) <= 0x7f800000) {
                    assert_int_equal(x[LEAD + i], want);
                    assert_int_equal(packed[LEAD + i], i);
                }
            }
        }
        close_it(&r);
    }
}

static void views_are_checked(void **state) {
    (void)state;
    rig r;
    open_it(&r, RP_F16, 32);
    rp_tensor bad = r.packed;
    bad.offset += TAIL + 1;
    expect_err(rp_storage_pack(golden_device(), &bad, &r.x), RP_ERR_SHAPE);
    expect_err(rp_storage_unpack(golden_device(), &r.x, &bad), RP_ERR_SHAPE);
    bad = r.packed;
    bad.dtype = RP_I32;
    expect_err(rp_storage_pack(golden_device(), &bad, &r.x), RP_ERR_SHAPE);
    bad = r.packed;
    bad.shape = rp_shape_1(31);
    expect_err(rp_storage_unpack(golden_device(), &r.x, &bad), RP_ERR_SHAPE);
    bad = r.x;
    bad.offset += TAIL + 1;
    expect_err(rp_storage_round(golden_device(), RP_BF16, &bad), RP_ERR_SHAPE);
    expect_err(rp_storage_round(golden_device(), RP_F32, &r.x), RP_ERR_SHAPE);
    bad = r.x;
    bad.dtype = RP_I32;
    expect_err(rp_storage_round(golden_device(), RP_F16, &bad), RP_ERR_SHAPE);
    close_it(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_to_golden_bits),
        cmocka_unit_test(a_nan_stays_one),
        cmocka_unit_test(every_value_is_itself),
        cmocka_unit_test(views_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
