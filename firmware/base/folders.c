#include "base/folders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool is_link(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
}

DIR *rp_folders_open(const char *path) {
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0) {
        (void)close(fd);
    }
    errno = !dir && is_link(path) ? ELOOP : errno;
    return dir;
}

rp_err rp_folders_make_own(const char *path, unsigned mode) {
    if (mkdir(path, (mode_t)mode) == 0) {
        return RP_OK;
    }
    const int code = errno;
    if (is_link(path)) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: is a symbolic link, which is not followed: expected a folder", path);
    }
    if (is_folder(path)) {
        return RP_OK;
    }
    return code == EEXIST ? rp_fail(RP_ERR_USAGE, "%s: is a file, not a folder", path)
                          : rp_fail(RP_ERR_IO, "%s: %s", path, strerror(code));
}

rp_err rp_folders_make(const char *path, unsigned mode) {
    char part[RP_FOLDERS_PATH_BYTES];
    const size_t bytes = strlen(path);
    if (bytes == 0 || bytes >= sizeof part) {
        return rp_fail(RP_ERR_USAGE, "%.100s: expected a path of 1 to %zu bytes", path,
                       sizeof part - 1);
    }
    for (size_t i = 1; i <= bytes; i++) {
        if (path[i] != '/' && path[i] != '\0') {
            continue;
        }
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, (mode_t)mode) == 0) {
            continue;
        }
        /* Some file systems report EROFS or EACCES for a folder that exists. */
        const int code = errno;
        if (!is_folder(part)) {
            return code == EEXIST || code == ENOTDIR
                       ? rp_fail(RP_ERR_USAGE, "%s: %s is a file, not a folder", path, part)
                       : rp_fail(RP_ERR_IO, "%s: %s", part, strerror(code));
        }
    }
    return RP_OK;
}
