/* Picture files for tests, written by the libraries that read them. */
#ifndef RP_TESTS_DATA_PICTURE_H
#define RP_TESTS_DATA_PICTURE_H

#include "fixture.h"

#include <jpeglib.h>
#include <png.h>

/* Value c of the pixel at (y, x), whatever its type. */
static inline uint8_t picture_byte(uint32_t y, uint32_t x, uint32_t c) {
    return (uint8_t)(y * 7 + x * 13 + c * 50 + x * y % 31);
}

static inline void fill_picture(uint8_t *pixels, uint32_t height, uint32_t width,
                                uint32_t channels) {
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++) {
            for (uint32_t c = 0; c < channels; c++) {
                *pixels++ = picture_byte(y, x, c);
            }
        }
    }
}

/* `type`: PNG_COLOR_TYPE_*. Rows are `row_bytes` of `pixels`; a palette maps i to (i, 255 - i, 7).
 */
static inline void write_png(const char *name, const uint8_t *pixels, uint32_t height,
                             uint32_t width, int type, int depth, size_t row_bytes,
                             bool interlaced) {
    png_color palette[256];
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_init_io(png, file);
    png_set_IHDR(png, info, width, height, depth, type,
                 interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    for (int i = 0; i < 256; i++) {
        palette[i] = (png_color){(png_byte)i, (png_byte)(255 - i), 7};
    }
    if (type == PNG_COLOR_TYPE_PALETTE) {
        png_set_PLTE(png, info, palette, 256);
    }
    png_write_info(png, info);
    const int passes = interlaced ? png_set_interlace_handling(png) : 1;
    for (int pass = 0; pass < passes; pass++) {
        for (uint32_t y = 0; y < height; y++) {
            png_write_row(png, pixels + y * row_bytes);
        }
    }
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    assert_int_equal(fclose(file), 0);
}

/* What a JPEG is written as, other than quality 95. */
typedef struct {
    J_COLOR_SPACE pixels, stored;
    int across, down; /* sampling factors of the first component; 0 is 1 */
    bool no_adobe;    /* four inks without Adobe's marker */
    bool progressive;
} jpeg_kind;

static inline void write_jpeg_as(const char *name, const uint8_t *pixels, uint32_t height,
                                 uint32_t width, const jpeg_kind *kind) {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_width = width;
    jpeg.image_height = height;
    jpeg.in_color_space = kind->pixels;
    jpeg.input_components = kind->pixels == JCS_GRAYSCALE ? 1 : kind->pixels == JCS_CMYK ? 4 : 3;
    jpeg_set_defaults(&jpeg);
    jpeg_set_colorspace(&jpeg, kind->stored);
    jpeg_set_quality(&jpeg, 95, TRUE);
    jpeg.comp_info[0].h_samp_factor = kind->across > 0 ? kind->across : 1;
    jpeg.comp_info[0].v_samp_factor = kind->down > 0 ? kind->down : 1;
    jpeg.write_Adobe_marker = jpeg.write_Adobe_marker && !kind->no_adobe;
    if (kind->progressive) {
        jpeg_simple_progression(&jpeg);
    }
    jpeg_start_compress(&jpeg, TRUE);
    for (uint32_t y = 0; y < height; y++) {
        uint8_t row[1024];
        JSAMPROW line = row;
        const size_t bytes = (size_t)width * (size_t)jpeg.input_components;
        assert_true(bytes <= sizeof row);
        memcpy(row, pixels + y * bytes, bytes);
        (void)jpeg_write_scanlines(&jpeg, &line, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    assert_int_equal(fclose(file), 0);
}

/* Red, green and blue, no subsampling. */
static inline void write_jpeg(const char *name, const uint8_t *pixels, uint32_t height,
                              uint32_t width) {
    write_jpeg_as(name, pixels, height, width,
                  &(jpeg_kind){.pixels = JCS_RGB, .stored = JCS_YCbCr});
}

static inline size_t read_back(const char *name, uint8_t *bytes, size_t room) {
    FILE *file = fopen(in_folder(name), "rb");
    assert_non_null(file);
    const size_t count = fread(bytes, 1, room, file);
    assert_true(count < room);
    (void)fclose(file);
    return count;
}

#endif
