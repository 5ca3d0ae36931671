/* Writes a file to a disk, and verifies it. */
#ifndef RP_FLASH_WRITE_H
#define RP_FLASH_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct {
    const char *image, *device; /* paths */
    bool (*stopped)(void *context);
    void (*progress)(void *context, uint64_t bytes, uint64_t of); /* every 4 MiB */
    void *context;
} rp_card_job;

/* Writes the image, and returns after the disk has confirmed all of it.
 * errors  USAGE: the disk is in use or access is denied; IO; FAULT: the disk fails; INTERRUPTED */
rp_err rp_card_write(const rp_card_job *job) RP_MUST_CHECK;
/* Reads the disk without the kernel's cache, and compares it with the image.
 * errors  IO: it cannot be read; FAULT with the first byte that differs; INTERRUPTED */
rp_err rp_card_verify(const rp_card_job *job) RP_MUST_CHECK;

#endif
