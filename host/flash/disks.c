#include "flash/disks.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"

/* ---- small files of /sys --------------------------------------------------------------------- */

/* Reads the first line of a file; "" if it is missing. */
static void read_line(char *out, size_t bytes, const char *root, const char *format, const char *a,
                      const char *b) {
    char path[RP_DISK_PATH];
    char below[256];
    out[0] = '\0';
    (void)snprintf(below, sizeof below, format, a, b);
    const int n = snprintf(path, sizeof path, "%s%s", root, below);
    FILE *file = n < (int)sizeof path ? fopen(path, "r") : NULL;
    if (file) {
        if (!fgets(out, (int)bytes, file)) {
            out[0] = '\0';
        }
        (void)fclose(file);
    }
    for (size_t length = strlen(out); length > 0 && strchr(" \n\t", out[length - 1]);) {
        out[--length] = '\0';
    }
}

/* Lists the names in a folder; *count 0 if it is missing. */
static rp_err list_names(const char *root, const char *below, char (*out)[RP_DISK_NAME],
                         uint32_t max, uint32_t *count) {
    char path[RP_DISK_PATH];
    *count = 0;
    (void)snprintf(path, sizeof path, "%s%s", root, below);
    DIR *dir = opendir(path);
    if (!dir) {
        return RP_OK;
    }
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= RP_DISK_NAME) {
            continue;
        }
        if (*count == max) {
            (void)closedir(dir);
            return rp_fail(RP_ERR_LIMIT, "%s has more than %u entries", path, max);
        }
        uint32_t at = (*count)++;
        for (; at > 0 && strcmp(out[at - 1], entry->d_name) > 0; at--) {
            memcpy(out[at], out[at - 1], RP_DISK_NAME);
        }
        (void)snprintf(out[at], RP_DISK_NAME, "%s", entry->d_name);
    }
    (void)closedir(dir);
    return RP_OK;
}

/* ---- in use ---------------------------------------------------------------------------------- */

static bool is_source(const char *source, const char *name) {
    return strncmp(source, "/dev/", 5) == 0 && strcmp(source + 5, name) == 0;
}

/* Writes to `out` the use of the disk or partition `name` (sdb1) with the number `dev` (8:17), if
 * the line of mountinfo or swaps mentions it. */
typedef void say_use(const char *line, const char *name, const char *dev, char *out, size_t bytes);

static void say_mount(const char *line, const char *name, const char *dev, char *out,
                      size_t bytes) {
    char number[32];
    char where[256];
    char source[256] = "";
    const char *rest = strstr(line, " - ");
    if (sscanf(line, "%*s %*s %31s %*s %255s", number, where) != 2) {
        return;
    }
    if (rest) {
        (void)sscanf(rest, " - %*s %255s", source);
    }
    if ((dev[0] && strcmp(number, dev) == 0) || is_source(source, name)) {
        (void)snprintf(out, bytes, "%s is mounted at %s", name, where);
    }
}

static void say_swap(const char *line, const char *name, const char *dev, char *out, size_t bytes) {
    char source[256];
    (void)dev;
    if (sscanf(line, "%255s", source) == 1 && is_source(source, name)) {
        (void)snprintf(out, bytes, "%s is swap space of this machine", name);
    }
}

/* Searches a table of the kernel. An unreadable table is an error, because a disk might be in use.
 * `may_lack`: the kernel may have been built without the table. */
static rp_err search_table(const char *root, const char *table, bool may_lack, say_use *say,
                           const char *name, const char *dev, char *out, size_t bytes) {
    char path[RP_DISK_PATH];
    char line[8192];
    (void)snprintf(path, sizeof path, "%s%s", root, table);
    FILE *file = fopen(path, "r");
    if (!file && may_lack && errno == ENOENT) {
        return RP_OK;
    }
    while (file && !out[0] && fgets(line, sizeof line, file)) {
        say(line, name, dev, out, bytes);
    }
    const bool failed = !file || ferror(file);
    const int why = errno;
    if (file) {
        (void)fclose(file);
    }
    return failed ? rp_fail(RP_ERR_IO, "%s: %s; without it disks in use cannot be detected", path,
                            strerror(why))
                  : RP_OK;
}

/* Finds the use of a disk or partition; `folder`: its folder below /sys. */
static rp_err find_use(const char *root, const char *folder, const char *name, char *out,
                       size_t bytes) {
    char holders[192];
    char held[16][RP_DISK_NAME];
    char dev[32];
    uint32_t count = 0;
    rp_err err;
    (void)snprintf(holders, sizeof holders, "%s/holders", folder);
    RP_TRY(list_names(root, holders, held, 16, &count));
    if (count > 0) {
        (void)snprintf(out, bytes, "%s is used by %s", name, held[0]);
    }
    read_line(dev, sizeof dev, root, "%s/%s", folder, "dev");
    RP_TRY(search_table(root, "/proc/self/mountinfo", false, say_mount, name, dev, out, bytes));
    RP_TRY(search_table(root, "/proc/swaps", true, say_swap, name, dev, out, bytes));
fail:
    return err;
}

/* ---- disks ----------------------------------------------------------------------------------- */

static bool is_virtual(const char *name) {
    static const char *const begins[] = {"loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        if (strncmp(name, begins[i], strlen(begins[i])) == 0) {
            return true;
        }
    }
    /* Partitions of an eMMC with its own firmware. */
    return strncmp(name, "mmcblk", 6) == 0 && (strstr(name, "boot") || strstr(name, "rpmb"));
}

static bool can_leave(const char *root, const char *name) {
    char path[RP_DISK_PATH];
    char real[PATH_MAX];
    char removable[8];
    read_line(removable, sizeof removable, root, "/sys/block/%s/%s", name, "removable");
    (void)snprintf(path, sizeof path, "%s/sys/block/%s", root, name);
    return strcmp(removable, "1") == 0 || strncmp(name, "mmcblk", 6) == 0 ||
           (realpath(path, real) && strstr(real, "/usb"));
}

static rp_err read_disk(const char *root, const char *name, rp_disk *out) {
    char part[64][RP_DISK_NAME];
    char folder[160];
    char text[64];
    uint32_t count;
    rp_err err;
    *out = (rp_disk){.can_leave = can_leave(root, name)};
    (void)snprintf(out->name, sizeof out->name, "%s", name);
    read_line(text, sizeof text, root, "/sys/block/%s/%s", name, "size");
    out->bytes = strtoull(text, NULL, 10) * 512;
    read_line(text, sizeof text, root, "/sys/block/%s/%s", name, "ro");
    out->read_only = strcmp(text, "1") == 0;
    read_line(out->model, sizeof out->model, root, "/sys/block/%s/%s", name, "device/model");
    if (!out->model[0]) {
        read_line(out->model, sizeof out->model, root, "/sys/block/%s/%s", name, "device/name");
    }
    (void)snprintf(folder, sizeof folder, "/sys/block/%s", name);
    RP_TRY(find_use(root, folder, name, out->in_use, sizeof out->in_use));
    RP_TRY(list_names(root, folder, part, 64, &count));
    for (uint32_t i = 0; i < count && !out->in_use[0]; i++) {
        if (strncmp(part[i], name, strlen(name)) == 0) {
            (void)snprintf(folder, sizeof folder, "/sys/block/%.63s/%.63s", name, part[i]);
            RP_TRY(find_use(root, folder, part[i], out->in_use, sizeof out->in_use));
        }
    }
fail:
    return err;
}

rp_err rp_disks_read(const char *root, rp_disk *out, uint32_t *count) {
    static char name[RP_DISKS_MAX][RP_DISK_NAME];
    uint32_t found;
    rp_err err;
    *count = 0;
    RP_TRY(list_names(root, "/sys/block", name, RP_DISKS_MAX, &found));
    for (uint32_t i = 0; i < found; i++) {
        if (!is_virtual(name[i])) {
            RP_TRY(read_disk(root, name[i], &out[*count]));
            *count += out[*count].bytes > 0;
        }
    }
fail:
    return err;
}

/* The disk of a partition like sdb1 or mmcblk0p2; NULL: not a partition. */
static const rp_disk *disk_of_partition(const rp_disk *disk, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++) {
        const size_t length = strlen(disk[i].name);
        if (strncmp(name, disk[i].name, length) == 0 && name[length]) {
            return &disk[i];
        }
    }
    return NULL;
}

static rp_err check_disk(const rp_disk *disk, const char *device, uint64_t image_bytes) {
    if (disk->in_use[0]) {
        return rp_fail(RP_ERR_USAGE, "%s is in use: %s", device, disk->in_use);
    }
    if (!disk->can_leave) {
        return rp_fail(RP_ERR_USAGE,
                       "%s is an internal disk; only removable disks (cards, USB) are written",
                       device);
    }
    if (disk->read_only) {
        return rp_fail(RP_ERR_USAGE, "%s is write-protected; check the lock switch of the card",
                       device);
    }
    if (disk->bytes < image_bytes) {
        return rp_fail(RP_ERR_USAGE,
                       "%s is too small: it has %" PRIu64 " MiB, the image %" PRIu64 " MiB", device,
                       disk->bytes >> 20, image_bytes >> 20);
    }
    return RP_OK;
}

rp_err rp_disk_choose(const char *root, const char *device, uint64_t image_bytes, rp_disk *out,
                      char path[RP_DISK_PATH]) {
    static rp_disk disk[RP_DISKS_MAX];
    char real[PATH_MAX];
    struct stat st;
    uint32_t count;
    rp_err err;
    if (snprintf(path, RP_DISK_PATH, "%s%s", root, device) >= RP_DISK_PATH ||
        !realpath(path, real) || stat(real, &st) != 0) {
        return rp_fail(RP_ERR_USAGE, "%s: %s", device, strerror(errno));
    }
    const char *name = strrchr(real, '/') + 1;
    RP_TRY(rp_disks_read(root, disk, &count));
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(disk[i].name, name) == 0 && (root[0] || S_ISBLK(st.st_mode))) {
            *out = disk[i];
            (void)snprintf(path, RP_DISK_PATH, "%s", real);
            return check_disk(out, device, image_bytes);
        }
    }
    const rp_disk *whole = disk_of_partition(disk, count, name);
    return whole ? rp_fail(RP_ERR_USAGE, "%s is a partition; expected the whole disk, /dev/%s",
                           device, whole->name)
                 : rp_fail(RP_ERR_USAGE, "%s is not a disk; `ringpipe flash` lists the disks",
                           device);
fail:
    return err;
}
