/* Checks disk images. */
#ifndef RP_FLASH_DISK_IMAGE_H
#define RP_FLASH_DISK_IMAGE_H

#include <stdint.h>

#include "base/err.h"

typedef struct {
    uint64_t bytes;
    const char *arch; /* amd64, arm64, by the type of the root partition; NULL: unknown */
} rp_disk_image;

/* errors  USAGE: not a disk image, with the reason; IO */
rp_err rp_disk_image_check(const char *path, rp_disk_image *out) RP_MUST_CHECK;

#endif
