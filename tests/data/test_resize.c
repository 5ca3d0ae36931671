/* Other sizes, to the byte as Pillow makes them. */
#include "picture.h"

#include "data/resize.h"

enum { H = 13, W = 17 };

/* source  Pillow 13.0.0: a[y, x, c] = (y*7 + x*13 + c*50 + x*y % 31) % 256 as uint8,
 *         zlib.crc32(np.asarray(Image.fromarray(a).resize((width, height), BILINEAR)).tobytes()),
 *         the same of convert("L"), and the last byte of the first */
static const struct {
    uint32_t height, width;
    uint32_t colour, grey;
    uint8_t last;
} golden[] = {
    {5, 7, 0x430fb857, 0xc9cd29c1, 133},   {20, 29, 0x5fd638b3, 0x471142a2, 142},
    {13, 40, 0x8e045d82, 0xd797f826, 142}, {4, 17, 0x6d90c2e8, 0xe12e5b14, 139},
    {1, 1, 0xe06f1dc0, 0xdf6f85b3, 125},   {13, 17, 0xdc75b4a3, 0xaae5b1d3, 142},
};

static void as_pillow(void **state) {
    (void)state;
    static uint8_t pixels[H * W * 3];
    static uint8_t one[H * W];
    static uint8_t out[64 * 64 * 3];
    static uint8_t before[sizeof pixels];
    rp_image image = {W, H, 3, pixels};
    fill_picture(pixels, H, W, 3);
    memcpy(before, pixels, sizeof before);
    for (size_t i = 0; i < H * W; i++) {
        const uint8_t *p = pixels + 3 * i;
        one[i] = (uint8_t)((p[0] * 19595u + p[1] * 38470u + p[2] * 7471u + 0x8000u) >> 16);
    }
    const rp_image grey = {W, H, 1, one};
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        const uint32_t height = golden[i].height;
        const uint32_t width = golden[i].width;
        expect_ok(rp_resize(&image, height, width, out));
        assert_int_equal(out[height * width * 3 - 1], golden[i].last);
        assert_int_equal(crc32(0, out, height * width * 3), golden[i].colour);
        assert_memory_equal(pixels, before, sizeof before);
        expect_ok(rp_resize(&grey, height, width, out));
        assert_int_equal(crc32(0, out, height * width), golden[i].grey);
    }
}

/* One colour stays that colour, white too, at the largest reduction. */
static void extremes(void **state) {
    (void)state;
    enum { SIDE = 2000 };
    uint8_t *pixels;
    uint8_t out[3 * 3];
    expect_ok(RP_ARENA_NEW(&arena, SIDE * SIDE, &pixels));
    memset(pixels, 255, SIDE * SIDE);
    const rp_image image = {SIDE, SIDE, 1, pixels};
    expect_ok(rp_resize(&image, 3, 3, out));
    for (int i = 0; i < 9; i++) {
        assert_int_equal(out[i], 255);
    }
    rp_arena_fail_at(2);
    expect_err(rp_resize(&image, 3, 3, out), RP_ERR_MEMORY);
    rp_arena_fail_at(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(as_pillow, setup, teardown),
        cmocka_unit_test_setup_teardown(extremes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
