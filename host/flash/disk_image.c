#include "flash/disk_image.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/input.h"

enum { SECTOR = 512, ENTRY = 128, ENTRIES = 128, HEAD = 34 * SECTOR };

/* Types of root partitions, in the byte order of the disk.
 * source  the Discoverable Partitions Specification */
static const struct {
    const char *arch;
    uint8_t type[16];
} roots[] = {
    {"amd64",
     {0xe3, 0xbc, 0x68, 0x4f, 0xcd, 0xe8, 0xb1, 0x4d, 0x96, 0xe7, 0xfb, 0xca, 0xf9, 0x84, 0xb7,
      0x09}},
    {"arm64",
     {0x45, 0xb0, 0x21, 0xb9, 0xf0, 0x1d, 0xc3, 0x41, 0xaf, 0x44, 0x4c, 0x6f, 0x28, 0x0d, 0x3f,
      0xae}},
};

static const char *find_arch(const uint8_t *entries) {
    for (size_t i = 0; i < ENTRIES; i++) {
        for (size_t k = 0; k < sizeof roots / sizeof *roots; k++) {
            if (memcmp(entries + i * ENTRY, roots[k].type, 16) == 0) {
                return roots[k].arch;
            }
        }
    }
    return NULL;
}

rp_err rp_disk_image_check(const char *path, rp_disk_image *out) {
    uint8_t head[HEAD];
    struct stat st;
    const char *why;
    FILE *file = rp_input_fopen(path, &why);
    if (!file) {
        return rp_fail(RP_ERR_USAGE, "%s: %s", path, why);
    }
    const size_t got = fread(head, 1, sizeof head, file);
    const bool known = fstat(fileno(file), &st) == 0;
    (void)fclose(file);
    if (!known) {
        return rp_fail(RP_ERR_USAGE, "%s: the size of the file cannot be found", path);
    }
    *out = (rp_disk_image){.bytes = (uint64_t)st.st_size};
    if (got < sizeof head || st.st_size % SECTOR != 0) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: this is not a disk image: expected a size in whole sectors of %d bytes",
                       path, SECTOR);
    }
    if (head[510] != 0x55 || head[511] != 0xaa) {
        return rp_fail(RP_ERR_USAGE, "%s: this is not a disk image: it has no partition table%s",
                       path,
                       head[0] == 0xfd || head[0] == 0x1f || head[0] == 0x28
                           ? "; it seems to be compressed (xz, gzip, zstd): decompress it first"
                           : "");
    }
    if (memcmp(head + SECTOR, "EFI PART", 8) == 0) {
        out->arch = find_arch(head + (ptrdiff_t)2 * SECTOR);
    }
    return RP_OK;
}
