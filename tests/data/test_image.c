/* Decoding: every kind of PNG and JPEG as RGB bytes, and damaged ones refused with their names. */
#include "picture.h"

#include "data/image.h"

enum { H = 9, W = 11 };

static void expect_pixels(const char *name, const uint8_t *want) {
    rp_image image;
    expect_ok(rp_image_read(in_folder(name), false, &image));
    assert_true(image.width == W && image.height == H && image.channels == 3);
    assert_memory_equal(image.pixels, want, H * W * 3);
    rp_image_free(&image);
    assert_null(image.pixels);
}

static void png_kinds(void **state) {
    (void)state;
    static uint8_t pixels[H * W * 8];
    static uint8_t want[H * W * 3];
    fill_picture(want, H, W, 3);
    write_png("rgb.png", want, H, W, PNG_COLOR_TYPE_RGB, 8, W * 3, false);
    expect_pixels("rgb.png", want);
    write_png("interlaced.PNG", want, H, W, PNG_COLOR_TYPE_RGB, 8, W * 3, true);
    expect_pixels("interlaced.PNG", want);
    fill_picture(pixels, H, W, 4); /* the fourth is alpha, and dropped */
    write_png("rgba.png", pixels, H, W, PNG_COLOR_TYPE_RGB_ALPHA, 8, W * 4, false);
    expect_pixels("rgba.png", want);
    for (size_t i = 0; i < H * W * 3; i++) {
        pixels[2 * i] = pixels[2 * i + 1] = want[i];
    }
    write_png("deep.png", pixels, H, W, PNG_COLOR_TYPE_RGB, 16, W * 6, false);
    expect_pixels("deep.png", want);
    fill_picture(pixels, H, W, 1);
    for (size_t i = 0; i < H * W; i++) {
        want[3 * i] = pixels[i];
        want[3 * i + 1] = (uint8_t)(255 - pixels[i]);
        want[3 * i + 2] = 7;
    }
    write_png("palette.png", pixels, H, W, PNG_COLOR_TYPE_PALETTE, 8, W, false);
    expect_pixels("palette.png", want);
    for (size_t i = 0; i < H * W; i++) {
        want[3 * i] = want[3 * i + 1] = want[3 * i + 2] = pixels[i];
    }
    write_png("grey.png", pixels, H, W, PNG_COLOR_TYPE_GRAY, 8, W, false);
    expect_pixels("grey.png", want);
    const uint8_t bits[2] = {0xa5, 0x5f};
    for (size_t i = 0; i < H * W; i++) {
        const size_t x = i % W;
        want[3 * i] = want[3 * i + 1] = want[3 * i + 2] = bits[x / 8] >> (7 - x % 8) & 1 ? 255 : 0;
    }
    for (size_t y = 0; y < H; y++) {
        memcpy(pixels + 2 * y, bits, 2);
    }
    write_png("bits.png", pixels, H, W, PNG_COLOR_TYPE_GRAY, 1, 2, false);
    expect_pixels("bits.png", want);
}

static void expect_near(const char *name, const uint8_t *want, double distance) {
    rp_image image;
    expect_ok(rp_image_read(in_folder(name), false, &image));
    assert_true(image.width == W && image.height == H && image.channels == 3);
    for (size_t i = 0; i < (size_t)H * W * 3; i++) {
        expect_close(image.pixels[i], want[i], 0, distance);
    }
    rp_image_free(&image);
}

static void jpeg_kinds(void **state) {
    (void)state;
    static uint8_t pixels[H * W * 3];
    rp_image image;
    for (size_t i = 0; i < sizeof pixels; i++) {
        pixels[i] = (uint8_t)(40 + 60 * (i % 3) + i / 3 % W * 4); /* smooth */
    }
    write_jpeg("x.jpg", pixels, H, W);
    expect_near("x.jpg", pixels, 6);
    write_jpeg_as("tall.jpg", pixels, H, W, /* 4:1:0: a colour for each 4 x 2 pixels */
                  &(jpeg_kind){.pixels = JCS_RGB, .stored = JCS_YCbCr, .across = 4, .down = 2});
    expect_near("tall.jpg", pixels, 16);
    write_jpeg_as("progressive.jpg", pixels, H, W,
                  &(jpeg_kind){.pixels = JCS_RGB, .stored = JCS_RGB, .progressive = true});
    expect_near("progressive.jpg", pixels, 6);
    write_jpeg_as("grey.jpg", pixels, H, W,
                  &(jpeg_kind){.pixels = JCS_GRAYSCALE, .stored = JCS_GRAYSCALE});
    expect_ok(rp_image_read(in_folder("grey.jpg"), false, &image));
    for (size_t i = 0; i < H * W; i++) {
        expect_close(image.pixels[3 * i + 1], pixels[i], 0, 60);
        assert_int_equal(image.pixels[3 * i], image.pixels[3 * i + 2]);
    }
    rp_image_free(&image);
}

/* Pictures for print: red is 255 less cyan, darkened by black; Adobe's marker says that the file
 * has 255 less each ink. YCCK is the same, rotated. */
static void four_inks(void **state) {
    (void)state;
    static uint8_t inks[H * W * 4];
    static uint8_t want[H * W * 3];
    for (int marked = 0; marked < 2; marked++) {
        for (size_t i = 0; i < H * W; i++) {
            const unsigned black = (unsigned)(20 + i / W * 8);
            for (size_t c = 0; c < 4; c++) {
                const unsigned ink = c < 3 ? (unsigned)(30 + 60 * c + i % W * 4) : black;
                inks[4 * i + c] = (uint8_t)(marked ? 255 - ink : ink);
                if (c < 3) {
                    want[3 * i + c] = (uint8_t)((255 - ink) * (255 - black) / 255);
                }
            }
        }
        const jpeg_kind plain = {.pixels = JCS_CMYK, .stored = JCS_CMYK, .no_adobe = !marked};
        write_jpeg_as("inks.jpg", inks, H, W, &plain);
        expect_near("inks.jpg", want, 6);
    }
    write_jpeg_as("ycck.jpg", inks, H, W,
                  &(jpeg_kind){.pixels = JCS_CMYK, .stored = JCS_YCCK, .across = 2, .down = 2});
    expect_near("ycck.jpg", want, 12);
}

/* source  Pillow 13: Image.fromarray(a).convert("L") */
static void grey(void **state) {
    (void)state;
    static const uint8_t rgb[] = {255, 0,   0,   0, 255, 0, 0,   0,   255,
                                  255, 255, 255, 1, 2,   3, 200, 100, 50};
    static const uint8_t want[] = {76, 150, 29, 255, 2, 124};
    rp_image image;
    write_png("x.png", rgb, 1, 6, PNG_COLOR_TYPE_RGB, 8, 18, false);
    expect_ok(rp_image_read(in_folder("x.png"), true, &image));
    assert_int_equal(image.channels, 1);
    assert_memory_equal(image.pixels, want, 6);
    rp_image_free(&image);
}

static void expect_refused(const char *name, rp_err wanted, const char *part) {
    rp_image image;
    expect_err(rp_image_read(in_folder(name), false, &image), wanted);
    assert_null(image.pixels);
    expect_part(name);
    expect_part(part);
}

static void damaged(void **state) {
    (void)state;
    static uint8_t pixels[64 * 64 * 3];
    static uint8_t bytes[1 << 16];
    for (size_t i = 0; i < sizeof pixels; i++) {
        pixels[i] = (uint8_t)(i * i >> 3);
    }
    write_png("x.png", pixels, 64, 64, PNG_COLOR_TYPE_RGB, 8, 64 * 3, false);
    size_t count = read_back("x.png", bytes, sizeof bytes);
    for (size_t cut = 1; cut < count; cut += cut < 80 ? 1 : 97) {
        write_file("cut.png", bytes, cut);
        expect_refused("cut.png", RP_ERR_FORMAT, "");
    }
    bytes[count / 2] ^= 0x10;
    write_file("bit.png", bytes, count);
    expect_refused("bit.png", RP_ERR_FORMAT, "is damaged");
    write_file("text.png", "no picture", 10);
    expect_refused("text.png", RP_ERR_FORMAT, "is neither a JPEG nor a PNG file");
    write_file("empty.png", "", 0);
    expect_refused("empty.png", RP_ERR_FORMAT, "0 bytes");
    mkdir(in_folder("folder.png"), 0700);
    expect_refused("folder.png", RP_ERR_IO, "is not a regular file");
    expect_refused("absent.png", RP_ERR_IO, "cannot be opened");
}

/* libpng only warns when the sum of the unpacked pixels is wrong and the chunk's own is right. */
static void png_sum(void **state) {
    (void)state;
    static uint8_t pixels[H * W * 3];
    static uint8_t bytes[1 << 12];
    fill_picture(pixels, H, W, 3);
    write_png("x.png", pixels, H, W, PNG_COLOR_TYPE_RGB, 8, W * 3, false);
    const size_t count = read_back("x.png", bytes, sizeof bytes);
    const uint8_t *end = memmem(bytes, count, "IEND", 4);
    const uint8_t *data = memmem(bytes, count, "IDAT", 4);
    assert_true(data && end && data < end);
    const size_t at = (size_t)(data - bytes);
    const size_t sum = (size_t)(end - bytes) - 8; /* of IDAT; the length of IEND follows it */
    bytes[sum - 1] ^= 1;
    const uint32_t crc = (uint32_t)crc32(0, bytes + at, (uInt)(sum - at));
    for (uint32_t i = 0; i < 4; i++) {
        bytes[sum + i] = (uint8_t)(crc >> (24 - 8 * i));
    }
    write_file("sum.png", bytes, count);
    expect_refused("sum.png", RP_ERR_FORMAT, "is damaged");
}

/* A file that is cut is refused wherever it is cut, also when its header has bytes too many, which
 * are harmless and the decoder's first warning. */
static void cut_jpeg(void **state) {
    (void)state;
    static uint8_t pixels[64 * 64 * 3];
    static uint8_t bytes[1 << 16];
    rp_image image;
    for (size_t i = 0; i < sizeof pixels; i++) {
        pixels[i] = (uint8_t)(i * i >> 3);
    }
    write_jpeg("x.jpg", pixels, 64, 64);
    size_t count = read_back("x.jpg", bytes, sizeof bytes - 3);
    for (int extra = 0; extra < 2; extra++) {
        for (size_t cut = 1; cut < count - 2; cut += cut < 40 ? 1 : 19) { /* the last two end it */
            write_file("cut.jpg", bytes, cut);
            expect_refused("cut.jpg", RP_ERR_FORMAT, "");
        }
        memmove(bytes + 23, bytes + 20, count - 20); /* after the first marker's 18 bytes */
        memset(bytes + 20, 0x55, 3);
        count += 3;
        write_file("extra.jpg", bytes, count);
        expect_ok(rp_image_read(in_folder("extra.jpg"), false, &image));
        rp_image_free(&image);
    }
}

/* A whole file of a kind that the library does not read is not called damaged. */
static void unsupported_jpeg(void **state) {
    (void)state;
    static uint8_t pixels[8 * 8 * 3];
    static uint8_t bytes[1 << 12];
    write_jpeg("x.jpg", pixels, 8, 8);
    const size_t count = read_back("x.jpg", bytes, sizeof bytes);
    for (size_t i = 0; i + 5 < count; i++) {
        if (bytes[i] == 0xff && bytes[i + 1] == 0xc0) {
            bytes[i + 4] = 12; /* bits of a value */
        }
    }
    write_file("deep.jpg", bytes, count);
    expect_refused("deep.jpg", RP_ERR_FORMAT, "this kind of JPEG is not supported");
}

/* A header that asks for more than a picture may have takes no memory. */
static void too_large(void **state) {
    (void)state;
    static const uint8_t png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0,
                                  13,   'I', 'H', 'D', 'R',  0,    0,    0xff, 0, 0, 0,
                                  0xff, 0,   8,   2,   0,    0,    0,    0,    0, 0, 0};
    static uint8_t bytes[sizeof png];
    memcpy(bytes, png, sizeof png);
    const uint32_t crc = (uint32_t)crc32(0, bytes + 12, 17);
    for (int i = 0; i < 4; i++) {
        bytes[29 + i] = (uint8_t)(crc >> (24 - 8 * i));
    }
    write_file("large.png", bytes, sizeof bytes);
    expect_refused("large.png", RP_ERR_FORMAT, "");
    rp_image image = {0};
    expect_err(rp_image_new("x", 65280, 65280, &image), RP_ERR_FORMAT);
    expect_part("65280 x 65280 pixels");
    expect_err(rp_image_new("x", 0, 1, &image), RP_ERR_FORMAT);
    expect_err(rp_image_new("x", UINT64_MAX, 2, &image), RP_ERR_FORMAT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(png_kinds, setup, teardown),
        cmocka_unit_test_setup_teardown(jpeg_kinds, setup, teardown),
        cmocka_unit_test_setup_teardown(four_inks, setup, teardown),
        cmocka_unit_test_setup_teardown(png_sum, setup, teardown),
        cmocka_unit_test_setup_teardown(cut_jpeg, setup, teardown),
        cmocka_unit_test_setup_teardown(unsupported_jpeg, setup, teardown),
        cmocka_unit_test_setup_teardown(grey, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged, setup, teardown),
        cmocka_unit_test_setup_teardown(too_large, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
