/* Reads pictures: JPEG with libjpeg-turbo, PNG with libpng. Private to the room.
 *
 * source  equals Pillow's Image.open(path).convert("RGB"), and convert("L") of it: colour profiles,
 *         gamma and EXIF rotation are ignored, alpha is dropped, 16 bits become 8 */
#ifndef RP_DATA_IMAGE_H
#define RP_DATA_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    RP_IMAGE_SIDE_MAX = 65500,
    RP_IMAGE_PIXELS_MAX = 1 << 26,
    RP_IMAGE_FILE_BYTES_MAX = 1 << 28
};

/* Pixels are [height][width][channels]; channels: 3 (red, green, blue) or 1. */
typedef struct {
    uint32_t width, height, channels;
    uint8_t *pixels; /* a block: rp_image_free() */
} rp_image;

/* Reads and decodes a file; its first bytes decide the format, not its name. `grey`: one channel.
 * errors  IO; FORMAT naming the file: not JPEG or PNG, truncated, damaged, too large; MEMORY */
rp_err rp_image_read(const char *path, bool grey, rp_image *out) RP_MUST_CHECK;
void rp_image_free(rp_image *image); /* accepts an empty one */

/* Decoders: fill out->width, height, and pixels of three channels. `path`: for messages. */
rp_err rp_image_decode_jpeg(const char *path, const uint8_t *bytes, size_t count,
                            rp_image *out) RP_MUST_CHECK;
rp_err rp_image_decode_png(const char *path, const uint8_t *bytes, size_t count,
                           rp_image *out) RP_MUST_CHECK;

/* Allocates the pixels of an RGB image. errors FORMAT: too large; MEMORY */
rp_err rp_image_new(const char *path, uint64_t width, uint64_t height, rp_image *out) RP_MUST_CHECK;

#endif
