/* Disks of this machine, and the use of each. */
#ifndef RP_FLASH_DISKS_H
#define RP_FLASH_DISKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { RP_DISKS_MAX = 128, RP_DISK_NAME = 64, RP_DISK_PATH = 4096 };

typedef struct {
    char name[RP_DISK_NAME]; /* sdb */
    char model[128];         /* "": unknown */
    uint64_t bytes;
    bool can_leave; /* removable, at USB, or a card */
    bool read_only;
    char in_use[512]; /* "sda1 is mounted at /"; "": not in use */
} rp_disk;

/* Lists disks in alphabetical order, without those of size 0. `root`: prefix of /sys and /proc, ""
 * for the real ones. errors  IO: the kernel's table of mounts cannot be read; LIMIT: too many */
rp_err rp_disks_read(const char *root, rp_disk *out, uint32_t *count) RP_MUST_CHECK;

/* Checks that a disk may be written. `device`: a path like /dev/sdb, without `root`; *path: the
 * path to open. errors  USAGE with the reason */
rp_err rp_disk_choose(const char *root, const char *device, uint64_t image_bytes, rp_disk *out,
                      char path[RP_DISK_PATH]) RP_MUST_CHECK;

#endif
