/* Unpacks the files of a bundle. */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/replace.h"
#include "update/bundle_own.h"

enum { PIECE = 1 << 16, PATH_BYTES = 4096 };

/* Creates the folders of `path` below `folder`, and syncs each one's parent. */
static rp_err make_folders(const char *folder, const char *path) {
    char made[PATH_BYTES];
    rp_err err = RP_OK;
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        const int n = snprintf(made, sizeof made, "%s/%.*s", folder, (int)(slash - path), path);
        if (n >= (int)sizeof made || (mkdir(made, 0755) != 0 && errno != EEXIST)) {
            return rp_fail(RP_ERR_IO, "%s: %s", made, strerror(errno));
        }
        RP_TRY(rp_replace_sync_folder(made));
    }
fail:
    return err;
}

rp_err rp_bundle_copy(const rp_bundle_file *of, FILE *file, const char *name, int fd) {
    crypto_hash_sha256_state state;
    uint8_t sum[RP_BUNDLE_SUM];
    uint8_t piece[PIECE];
    (void)crypto_hash_sha256_init(&state);
    for (uint64_t left = of->bytes; left > 0;) {
        const size_t want = left < PIECE ? (size_t)left : PIECE;
        const size_t got = fread(piece, 1, want, file);
        if (got != want) {
            return ferror(file)
                       ? rp_fail(RP_ERR_IO, "%s: cannot be read: %s", name, strerror(errno))
                       : rp_fail(RP_ERR_FORMAT, "%s: is cut off in %s", name, of->path);
        }
        (void)crypto_hash_sha256_update(&state, piece, got);
        if (write(fd, piece, got) != (ssize_t)got) {
            return rp_fail(RP_ERR_IO, "%s of %s: cannot be written: %s", of->path, name,
                           strerror(errno));
        }
        left -= got;
    }
    (void)crypto_hash_sha256_final(&state, sum);
    if (memcmp(sum, of->sha256, sizeof sum) != 0) {
        return rp_fail(RP_ERR_REFUSED, "%s: %s differs from what was signed", name, of->path);
    }
    return RP_OK;
}

static rp_err unpack_file(const rp_bundle_file *of, FILE *file, const char *name,
                          const char *folder) {
    char path[PATH_BYTES];
    int fd = -1;
    rp_err err;
    RP_TRY(make_folders(folder, of->path));
    if (snprintf(path, sizeof path, "%s/%s", folder, of->path) >= (int)sizeof path) {
        return rp_fail(RP_ERR_IO, "%s: the name is too long", folder);
    }
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    RP_TRY(rp_bundle_copy(of, file, name, fd));
    if (fchmod(fd, of->mode) != 0 || fsync(fd) != 0) {
        RP_TRY(
            rp_fail(RP_ERR_IO, "%s of %s: cannot be written: %s", of->path, name, strerror(errno)));
    }
    RP_TRY(rp_replace_sync_folder(path));
fail:
    if (fd >= 0) {
        (void)close(fd);
    }
    return err;
}

rp_err rp_bundle_unpack(const rp_bundle *bundle, FILE *file, const char *name, const char *folder) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < bundle->count; i++) {
        RP_TRY(unpack_file(&bundle->file[i], file, name, folder));
    }
    if (fgetc(file) != EOF) {
        return rp_fail(RP_ERR_FORMAT, "%s: has bytes after its last file", name);
    }
fail:
    return err;
}
