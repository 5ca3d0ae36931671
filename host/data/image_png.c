#include "data/image.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

enum { CHUNK_BYTES_MAX = 1 << 26 };

/* State of libpng's callbacks. */
typedef struct {
    const uint8_t *bytes;
    size_t count, at;
    char message[160];
} source;

static void read_bytes(png_structp png, png_bytep to, size_t count) {
    source *from = png_get_io_ptr(png);
    if (count > from->count - from->at) {
        png_error(png, "the file ends too early");
    }
    memcpy(to, from->bytes + from->at, count);
    from->at += count;
}

static _Noreturn void leave(png_structp png, png_const_charp message) {
    source *from = png_get_error_ptr(png);
    (void)snprintf(from->message, sizeof from->message, "%s", message);
    png_longjmp(png, 1);
}

/* Does a warning mean wrong pixels? Those about pixel data do, except for extra bytes; those about
 * text, colour profiles etc. do not. */
static bool means_damage(const char *warning) {
    return strncmp(warning, "IDAT:", 5) == 0 && !strstr(warning, "Extra compressed data") &&
           !strstr(warning, "Too much image data");
}

static void heed_warning(png_structp png, png_const_charp message) {
    if (means_damage(message)) {
        leave(png, message);
    }
}

/* Converts all formats to 8 bits of red, green and blue. */
static void set_transforms(png_structp png) {
    png_set_expand(png);
    png_set_scale_16(png);
    png_set_gray_to_rgb(png);
    png_set_strip_alpha(png);
}

/* Contains every call that may longjmp. No local variable is read after a longjmp. */
static rp_err decode(png_structp png, png_infop info, const char *path, const source *from,
                     rp_image *out) {
    if (setjmp(png_jmpbuf(png)) != 0) {
        return rp_fail(RP_ERR_FORMAT, "%s: the picture is damaged: %s", path, from->message);
    }
    png_read_info(png, info);
    const uint32_t width = png_get_image_width(png, info);
    const uint32_t height = png_get_image_height(png, info);
    rp_err err = rp_image_new(path, width, height, out);
    if (err != RP_OK) {
        return err;
    }
    set_transforms(png);
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != (size_t)width * 3) {
        return rp_fail(RP_ERR_FORMAT, "%s: libpng cannot convert the picture to RGB", path);
    }
    for (int pass = 0; pass < passes; pass++) {
        for (uint32_t y = 0; y < height; y++) {
            png_read_row(png, out->pixels + (size_t)y * width * 3, NULL);
        }
    }
    png_read_end(png, NULL);
    return RP_OK;
}

rp_err rp_image_decode_png(const char *path, const uint8_t *bytes, size_t count, rp_image *out) {
    source from = {.bytes = bytes, .count = count};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &from, leave, heed_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    rp_err err;
    if (info) {
        png_set_read_fn(png, &from, read_bytes);
        png_set_user_limits(png, RP_IMAGE_SIDE_MAX, RP_IMAGE_SIDE_MAX);
        png_set_chunk_malloc_max(png, CHUNK_BYTES_MAX);
        err = decode(png, info, path, &from, out);
    } else {
        err = rp_fail(RP_ERR_MEMORY, "%s: no memory for libpng", path);
    }
    if (png) {
        png_destroy_read_struct(&png, info ? &info : NULL, NULL);
    }
    return err;
}
