#include "update/space.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { DEPTH_MAX = 32, BLOCK = 512 /* unit of st_blocks */ };

/* Takes ownership of `fd`. Returns an errno, 0 = none. */
static int add_folder(int fd, uint32_t depth, uint64_t *bytes) {
    DIR *dir = depth > DEPTH_MAX ? NULL : fdopendir(fd);
    int code = 0;
    if (!dir) {
        code = depth > DEPTH_MAX ? ELOOP : errno;
        (void)close(fd);
        return code;
    }
    for (const struct dirent *entry; code == 0 && (entry = readdir(dir));) {
        struct stat st;
        const bool is_self = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (is_self || fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
            continue; /* a file that was just removed occupies nothing */
        }
        *bytes += (uint64_t)st.st_blocks * BLOCK;
        if (S_ISDIR(st.st_mode)) {
            const int inner =
                openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
            code = inner < 0 ? errno : add_folder(inner, depth + 1, bytes);
        }
    }
    (void)closedir(dir);
    return code;
}

rp_err rp_space_used(const char *folder, uint64_t *out) {
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    *out = 0;
    const int code = fd < 0 ? errno : add_folder(fd, 0, out);
    return code == 0 || (fd < 0 && code == ENOENT)
               ? RP_OK
               : rp_fail(RP_ERR_IO, "%s: %s", folder, strerror(code));
}

rp_err rp_space_check(const char *what, const char *folder, uint64_t needed, uint64_t freed,
                      uint64_t margin) {
    struct statvfs disk;
    if (statvfs(folder, &disk) != 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", folder, strerror(errno));
    }
    const uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize + freed;
    const bool fits = room >= margin && room - margin >= needed;
    return fits ? RP_OK
                : rp_fail(RP_ERR_LIMIT,
                          "%s does not fit on the disk of %s: it needs %" PRIu64
                          " KiB, but %" PRIu64 " are free, of which %" PRIu64 " must stay free",
                          what, folder, needed / 1024 + (needed % 1024 != 0), room / 1024,
                          margin / 1024);
}
