#include "data/image.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/input.h"

static rp_err read_file(const char *path, uint8_t **bytes, size_t *count) {
    struct stat facts;
    void *block = NULL;
    rp_err err = RP_OK;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    }
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        err = rp_fail(RP_ERR_IO, "%s: is not a regular file", path);
    } else if (facts.st_size < 1 || facts.st_size > RP_IMAGE_FILE_BYTES_MAX) {
        err = rp_fail(RP_ERR_FORMAT, "%s: has %lld bytes, expected 1 to %d", path,
                      (long long)facts.st_size, RP_IMAGE_FILE_BYTES_MAX);
    } else {
        err = rp_block_new((size_t)facts.st_size, &block);
    }
    if (err == RP_OK) {
        err = rp_input_read(fd, path, 0, block, (size_t)facts.st_size);
    }
    if (err != RP_OK && block) {
        rp_block_free(block);
    } else if (err == RP_OK) {
        *bytes = block;
        *count = (size_t)facts.st_size;
    }
    (void)close(fd);
    return err;
}

/* source  ITU-R 601-2 luma in 16 bits, as Pillow's convert("L") */
static void make_grey(rp_image *image) {
    const size_t count = (size_t)image->width * image->height;
    const uint8_t *from = image->pixels;
    for (size_t i = 0; i < count; i++, from += 3) {
        const uint32_t sum = from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 0x8000u;
        image->pixels[i] = (uint8_t)(sum >> 16);
    }
    image->channels = 1;
}

rp_err rp_image_read(const char *path, bool grey, rp_image *out) {
    static const uint8_t png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    uint8_t *bytes = NULL;
    size_t count = 0;
    *out = (rp_image){0};
    rp_err err = read_file(path, &bytes, &count);
    if (err != RP_OK) {
        return err;
    }
    if (count >= sizeof png && memcmp(bytes, png, sizeof png) == 0) {
        err = rp_image_decode_png(path, bytes, count, out);
    } else if (count >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff) {
        err = rp_image_decode_jpeg(path, bytes, count, out);
    } else {
        err = rp_fail(RP_ERR_FORMAT, "%s: is neither a JPEG nor a PNG file", path);
    }
    rp_block_free(bytes);
    if (err != RP_OK) {
        rp_image_free(out);
    } else if (grey) {
        make_grey(out);
    }
    return err;
}
