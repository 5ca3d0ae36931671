/* Picture files for tests, written by the libraries that read them. */
#ifndef RP_TESTS_DATA_PICTURE_H
#define RP_TESTS_DATA_PICTURE_H

#include "fixture.h"

#include <png.h>
#include <turbojpeg.h>

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
    FILE *file = fopen(path_in_folder(name), "wb");
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

/* Quality 95, no subsampling; `format`: TJPF_RGB or TJPF_GRAY. */
static inline void write_jpeg(const char *name, const uint8_t *pixels, uint32_t height,
                              uint32_t width, int format) {
    unsigned char *bytes = NULL;
    unsigned long count = 0;
    tjhandle handle = tjInitCompress();
    const int sampling = format == TJPF_GRAY ? TJSAMP_GRAY : TJSAMP_444;
    assert_int_equal(tjCompress2(handle, pixels, (int)width, 0, (int)height, format, &bytes, &count,
                                 sampling, 95, 0),
                     0);
    write_file(name, bytes, count);
    tjFree(bytes);
    (void)tjDestroy(handle);
}

static inline size_t read_back(const char *name, uint8_t *bytes, size_t room) {
    FILE *file = fopen(path_in_folder(name), "rb");
    assert_non_null(file);
    const size_t count = fread(bytes, 1, room, file);
    assert_true(count < room);
    (void)fclose(file);
    return count;
}

#endif
