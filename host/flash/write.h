/* Bytes of a file onto a disk, and back. */
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

/* Returns when the disk says that it has all of it.
 * errors  USAGE: the kernel does not let it be opened alone; IO; FAULT: the disk takes it not;
 * INTERRUPTED */
rp_err rp_card_write(const rp_card_job *job) RP_MUST_CHECK;
/* Reads the disk itself, not what the kernel remembers of it.
 * errors  IO: it cannot be read; FAULT with the first byte that differs; INTERRUPTED */
rp_err rp_card_verify(const rp_card_job *job) RP_MUST_CHECK;

#endif
