/* Pictures from files: JPEG by libjpeg-turbo, PNG by libpng. Private to the room.
 *
 * source  what Pillow's Image.open(path).convert("RGB") gives, and convert("L") of it: colour
 *         profiles, gamma and EXIF turns are not looked at, alpha is dropped, 16 bits become 8 */
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

/* [height][width][channels], 3 for red, green, blue or 1. */
typedef struct {
    uint32_t width, height, channels;
    uint8_t *pixels; /* a block: rp_image_free() */
} rp_image;

/* Reads and decodes; by the file's first bytes, not its name. `grey`: one channel.
 * errors  IO; FORMAT naming the file: no JPEG or PNG, cut off, damaged, too large; MEMORY */
rp_err rp_image_read(const char *path, bool grey, rp_image *out) RP_MUST_CHECK;
void rp_image_free(rp_image *image); /* accepts an empty one */

/* The decoders: fill out->width, height, pixels with three channels. `path` is for messages. */
rp_err rp_image_decode_jpeg(const char *path, const uint8_t *bytes, size_t count,
                            rp_image *out) RP_MUST_CHECK;
rp_err rp_image_decode_png(const char *path, const uint8_t *bytes, size_t count,
                           rp_image *out) RP_MUST_CHECK;

/* Memory for the pixels of an RGB image of this size. errors FORMAT: too large; MEMORY */
rp_err rp_image_new(const char *path, uint64_t width, uint64_t height, rp_image *out) RP_MUST_CHECK;

#endif
