/* Is a file the image of a disk? */
#ifndef RP_FLASH_DISK_IMAGE_H
#define RP_FLASH_DISK_IMAGE_H

#include <stdint.h>

#include "base/err.h"

typedef struct {
    uint64_t bytes;
    const char *arch; /* amd64, arm64, by the type of its root partition; NULL: it does not say */
} rp_disk_image;

/* errors  USAGE: it is none, with what is missing; IO */
rp_err rp_disk_image_check(const char *path, rp_disk_image *out) RP_MUST_CHECK;

#endif
