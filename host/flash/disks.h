/* The disks of this machine, and what each is in use for. */
#ifndef RP_FLASH_DISKS_H
#define RP_FLASH_DISKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { RP_DISKS_MAX = 128, RP_DISK_NAME = 64, RP_DISK_PATH = 4096 };

typedef struct {
    char name[RP_DISK_NAME]; /* sdb */
    char model[128];         /* "" where it says nothing */
    uint64_t bytes;
    bool can_leave; /* removable, at USB, or a card */
    bool read_only;
    char in_use[512]; /* what for, as the end of a sentence: "sda1 is mounted at /"; "": nothing */
} rp_disk;

/* In alphabetical order; without those that have no size. `root`: in front of /sys and /proc, ""
 * for this machine's. errors  IO: what the kernel says of mounts cannot be read; LIMIT: too
 * many */
rp_err rp_disks_read(const char *root, rp_disk *out, uint32_t *count) RP_MUST_CHECK;

/* May it be written to? `device`: a path, as in /dev/sdb, behind `root`; *path: where it is opened.
 * errors  USAGE with the reason */
rp_err rp_disk_choose(const char *root, const char *device, uint64_t image_bytes, rp_disk *out,
                      char path[RP_DISK_PATH]) RP_MUST_CHECK;

#endif
