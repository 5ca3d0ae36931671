#include "data/cifar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"

enum { RECORDS_MAX = 1000 * 1000, NAMES_BYTES = 65536 };

static rp_err check_labels(const rp_cifar_file *file, const char *path, const uint32_t *most) {
    for (uint32_t i = 0; i < file->count; i++) {
        const uint8_t *record = file->records + (size_t)i * file->record_bytes;
        for (uint32_t k = 0; most[k]; k++) {
            if (record[k] >= most[k]) {
                return rp_fail(RP_ERR_FORMAT, "%s: invalid label %u of record %u; expected 0 to %u",
                               path, record[k], i, most[k] - 1);
            }
        }
    }
    return RP_OK;
}

static rp_err read_records(rp_arena *arena, int fd, const char *path, const uint32_t *most,
                           rp_cifar_file *out) {
    struct stat facts;
    rp_err err;
    out->record_bytes = RP_CIFAR_PIXELS;
    for (uint32_t k = 0; most[k]; k++) {
        out->record_bytes++;
    }
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return rp_fail(RP_ERR_IO, "%s: is not a regular file", path);
    }
    if (facts.st_size == 0 || facts.st_size % out->record_bytes != 0 ||
        facts.st_size / out->record_bytes > RECORDS_MAX) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: %lld bytes are not a multiple of the record's %u bytes: the file is "
                       "truncated or damaged",
                       path, (long long)facts.st_size, out->record_bytes);
    }
    out->count = (uint32_t)(facts.st_size / out->record_bytes);
    RP_TRY(RP_ARENA_NEW(arena, (size_t)facts.st_size, &out->records));
    RP_TRY(rp_input_read(fd, path, 0, out->records, (size_t)facts.st_size));
    RP_TRY(check_labels(out, path, most));
fail:
    return err;
}

/* *fd: descriptor of the file, or -1 with errno set. */
static rp_err open_file(rp_arena *arena, const char *folder, const char *sub, const char *name,
                        char **path, int *fd) {
    rp_err err;
    RP_TRY(rp_arena_printf(arena, path, "%s/%s", folder, name));
    *fd = open(*path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0 && errno == ENOENT) {
        RP_TRY(rp_arena_printf(arena, path, "%s/%s/%s", folder, sub, name));
        *fd = open(*path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    }
fail:
    return err;
}

rp_err rp_cifar_open(rp_arena *arena, const char *folder, const char *sub, const char *name,
                     const uint32_t *most, rp_cifar_file *out) {
    char *path;
    int fd;
    rp_err err = open_file(arena, folder, sub, name, &path, &fd);
    if (err == RP_OK && fd < 0) {
        return rp_fail(RP_ERR_IO, "%s/%s: cannot be opened: %s; `ringpipe data fetch` gets it",
                       folder, name, strerror(errno));
    }
    if (err == RP_OK) {
        err = read_records(arena, fd, path, most, out);
        (void)close(fd);
    }
    return err;
}

rp_err rp_cifar_names(rp_arena *arena, const char *folder, const char *sub, const char *name,
                      uint32_t count, const char *const **out) {
    char *path;
    char *text;
    const char **names;
    uint32_t found = 0;
    int fd;
    rp_err err;
    *out = NULL;
    RP_TRY(open_file(arena, folder, sub, name, &path, &fd));
    if (fd < 0) {
        return RP_OK;
    }
    err = RP_ARENA_NEW(arena, NAMES_BYTES, &text); /* zeroed */
    const ssize_t got = err == RP_OK ? read(fd, text, NAMES_BYTES - 1) : 0;
    (void)close(fd);
    RP_TRY(err);
    RP_TRY(RP_ARENA_NEW(arena, count, &names));
    for (char *at = text; got > 0 && *at;) {
        const size_t length = strcspn(at, "\r\n");
        char *next = at + length + (at[length] != '\0');
        at[length] = '\0';
        if (length > 0 && found++ < count) {
            names[found - 1] = at;
        }
        at = next;
    }
    *out = found == count ? names : NULL;
fail:
    return err;
}
