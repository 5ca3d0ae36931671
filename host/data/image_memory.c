/* Memory of a picture; its size is checked before memory is taken. */
#include "base/arena.h"
#include "data/image.h"

rp_err rp_image_new(const char *path, uint64_t width, uint64_t height, rp_image *out) {
    void *pixels;
    if (width == 0 || height == 0 || width > RP_IMAGE_SIDE_MAX || height > RP_IMAGE_SIDE_MAX ||
        width * height > RP_IMAGE_PIXELS_MAX) {
        return rp_fail(RP_ERR_FORMAT, "%s: has %llu x %llu pixels, expected 1 to %d in total", path,
                       (unsigned long long)width, (unsigned long long)height, RP_IMAGE_PIXELS_MAX);
    }
    rp_err err = rp_block_new((size_t)(width * height) * 3, &pixels);
    if (err == RP_OK) {
        *out = (rp_image){(uint32_t)width, (uint32_t)height, 3, pixels};
    }
    return err;
}

void rp_image_free(rp_image *image) {
    if (image->pixels) {
        rp_block_free(image->pixels);
    }
    *image = (rp_image){0};
}
