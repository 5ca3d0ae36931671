#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int rp_replace_open(const char *path, int flags) {
    return open(path, flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
}

rp_err rp_replace_unwritten(const char *path) {
    char text[RP_REPLACE_PATH_BYTES];
    (void)snprintf(text, sizeof text, "%s: cannot be written: %s", path, strerror(errno));
    rp_err_set_message(text);
    return RP_ERR_IO;
}

static bool name_temporary(const char *path, char out[RP_REPLACE_PATH_BYTES]) {
    const int used = snprintf(out, RP_REPLACE_PATH_BYTES, "%s.tmp", path);
    const bool fits = used > 0 && used < RP_REPLACE_PATH_BYTES;
    errno = fits ? errno : ENAMETOOLONG;
    return fits;
}

FILE *rp_replace_begin(const char *path) {
    char temporary[RP_REPLACE_PATH_BYTES];
    const int fd =
        name_temporary(path, temporary) ? rp_replace_open(temporary, O_WRONLY | O_TRUNC) : -1;
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file && fd >= 0) {
        (void)close(fd);
    }
    return file;
}

rp_err rp_replace_sync_folder(const char *path) {
    char folder[RP_REPLACE_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    if (length >= sizeof folder) {
        return rp_fail(RP_ERR_IO, "%s: the name is too long", path);
    }
    memcpy(folder, path, length);
    folder[length] = '\0';
    int fd = open(length ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Some file systems cannot sync a folder and report EINVAL, which is ignored. */
    bool bad = fd < 0 || (fsync(fd) != 0 && errno != EINVAL);
    rp_err err =
        bad ? rp_fail(RP_ERR_IO, "%s: cannot be synced: %s", length ? folder : ".", strerror(errno))
            : RP_OK;
    if (fd >= 0) {
        (void)close(fd);
    }
    return err;
}

void rp_replace_abandon(FILE *file, const char *path) {
    char temporary[RP_REPLACE_PATH_BYTES];
    const int code = errno;
    if (file) {
        (void)fclose(file);
        if (name_temporary(path, temporary)) {
            (void)unlink(temporary);
        }
    }
    errno = code;
}

rp_err rp_replace_end(FILE *file, const char *path, bool good) {
    char temporary[RP_REPLACE_PATH_BYTES];
    const bool named = name_temporary(path, temporary);
    int code = errno;
    good = file && good && named;
    if (good && (fflush(file) != 0 || fsync(fileno(file)) != 0)) {
        good = false;
        code = errno;
    }
    if (file && fclose(file) != 0 && good) {
        good = false;
        code = errno;
    }
    if (good && rename(temporary, path) != 0) {
        good = false;
        code = errno;
    }
    if (good) {
        return rp_replace_sync_folder(path);
    }
    if (named && file) {
        (void)unlink(temporary);
    }
    return rp_fail(RP_ERR_IO, "%s: cannot be written: %s", path,
                   code == ELOOP ? "a symbolic link is not followed" : strerror(code));
}
