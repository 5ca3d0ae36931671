/* Decoding: every kind of PNG and JPEG as RGB bytes, and damaged ones refused with their names. */
#include "picture.h"

#include "data/image.h"

enum { H = 9, W = 11 };

static void expect_pixels(const char *name, const uint8_t *want) {
    rp_image image;
    expect_ok(rp_image_read(path_in_folder(name), false, &image));
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

static void jpeg_kinds(void **state) {
    (void)state;
    static uint8_t pixels[H * W * 3];
    rp_image image;
    for (size_t i = 0; i < sizeof pixels; i++) {
        pixels[i] = (uint8_t)(40 + 60 * (i % 3) + i / 3 % W * 4); /* smooth */
    }
    write_jpeg("x.jpg", pixels, H, W, TJPF_RGB);
    expect_ok(rp_image_read(path_in_folder("x.jpg"), false, &image));
    assert_true(image.width == W && image.height == H && image.channels == 3);
    for (size_t i = 0; i < sizeof pixels; i++) {
        expect_close(image.pixels[i], pixels[i], 0, 6);
    }
    rp_image_free(&image);
    write_jpeg("grey.jpg", pixels, H, W, TJPF_GRAY);
    expect_ok(rp_image_read(path_in_folder("grey.jpg"), false, &image));
    for (size_t i = 0; i < H * W; i++) {
        expect_close(image.pixels[3 * i + 1], pixels[i], 0, 60);
        assert_int_equal(image.pixels[3 * i], image.pixels[3 * i + 2]);
    }
    rp_image_free(&image);
}

/* source  Pillow 13: Image.fromarray(a).convert("L") */
static void grey(void **state) {
    (void)state;
    static const uint8_t rgb[] = {255, 0,   0,   0, 255, 0, 0,   0,   255,
                                  255, 255, 255, 1, 2,   3, 200, 100, 50};
    static const uint8_t want[] = {76, 150, 29, 255, 2, 124};
    rp_image image;
    write_png("x.png", rgb, 1, 6, PNG_COLOR_TYPE_RGB, 8, 18, false);
    expect_ok(rp_image_read(path_in_folder("x.png"), true, &image));
    assert_int_equal(image.channels, 1);
    assert_memory_equal(image.pixels, want, 6);
    rp_image_free(&image);
}

static void expect_refused(const char *name, rp_err wanted, const char *part) {
    rp_image image;
    expect_err(rp_image_read(path_in_folder(name), false, &image), wanted);
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
    write_jpeg("x.jpg", pixels, 64, 64, TJPF_RGB);
    count = read_back("x.jpg", bytes, sizeof bytes);
    for (size_t cut = 1; cut < count - 2; cut += cut < 80 ? 1 : 97) { /* the last two end it */
        write_file("cut.jpg", bytes, cut);
        expect_refused("cut.jpg", RP_ERR_FORMAT, "");
    }
    write_file("text.png", "no picture", 10);
    expect_refused("text.png", RP_ERR_FORMAT, "is neither a JPEG nor a PNG file");
    write_file("empty.png", "", 0);
    expect_refused("empty.png", RP_ERR_FORMAT, "0 bytes");
    mkdir(path_in_folder("folder.png"), 0700);
    expect_refused("folder.png", RP_ERR_IO, "is not a file");
    expect_refused("absent.png", RP_ERR_IO, "can not be opened");
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
        cmocka_unit_test_setup_teardown(grey, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged, setup, teardown),
        cmocka_unit_test_setup_teardown(too_large, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
