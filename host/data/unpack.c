#include "data/unpack.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

enum { PATH_BYTES = 4096, PIECE_BYTES = 65536, FILE_BYTES_MAX = 1 << 30 };

typedef struct {
    struct archive *from;
    const char *path;
    const char *prefix;
    const rp_unpack_file *files;
    const char *dir;
    uint32_t found;
} unpacking;

static rp_err fail_damaged(const unpacking *u, const char *name) {
    const char *reason = archive_error_string(u->from);
    return rp_fail(RP_ERR_FORMAT, "%s: is truncated or damaged%s%s%s%s", u->path,
                   name[0] ? " in " : "", name, reason ? ": " : "", reason ? reason : "");
}

static rp_err copy_bytes(const unpacking *u, const char *name, FILE *file) {
    char piece[PIECE_BYTES];
    la_ssize_t got;
    uint64_t written = 0;
    while ((got = archive_read_data(u->from, piece, sizeof piece)) > 0) {
        written += (uint64_t)got;
        if (written > FILE_BYTES_MAX) {
            return fail_damaged(u, name);
        }
        if (fwrite(piece, 1, (size_t)got, file) != (size_t)got) {
            return rp_fail(RP_ERR_IO, "%s/%s: cannot be written: %s", u->dir, name,
                           strerror(errno));
        }
    }
    return got == 0 ? RP_OK : fail_damaged(u, name);
}

static rp_err join_path(char *path, const char *dir, const char *name, const char *end) {
    const int length = snprintf(path, PATH_BYTES, "%s/%s%s", dir, name, end);
    return length > 0 && length < PATH_BYTES
               ? RP_OK
               : rp_fail(RP_ERR_USAGE, "%s: the path is too long", dir);
}

static rp_err copy_file(const unpacking *u, const char *name) {
    char path[PATH_BYTES];
    char temporary[PATH_BYTES];
    FILE *file = NULL;
    rp_err err;
    RP_TRY(join_path(path, u->dir, name, ""));
    RP_TRY(join_path(temporary, u->dir, name, ".tmp"));
    file = fopen(temporary, "wbe");
    if (!file) {
        return rp_fail(RP_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    }
    err = copy_bytes(u, name, file);
    if (err == RP_OK && (fflush(file) != 0 || fsync(fileno(file)) != 0)) {
        err = rp_fail(RP_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    }
    if ((fclose(file) != 0 || (err == RP_OK && rename(temporary, path) != 0)) && err == RP_OK) {
        err = rp_fail(RP_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    }
    if (err != RP_OK) {
        (void)unlink(temporary);
    }
fail:
    return err;
}

/* The wanted file that the entry contains, or NULL. */
static const rp_unpack_file *find_wanted(const unpacking *u, struct archive_entry *entry) {
    const char *name = archive_entry_pathname(entry);
    const size_t length = strlen(u->prefix);
    if (!name || archive_entry_filetype(entry) != AE_IFREG ||
        strncmp(name, u->prefix, length) != 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < RP_UNPACK_FILES_MAX && u->files[i].name; i++) {
        if (strcmp(name + length, u->files[i].name) == 0) {
            return &u->files[i];
        }
    }
    return NULL;
}

static rp_err read_entries(unpacking *u) {
    struct archive_entry *entry;
    int code;
    uint32_t wanted = 0;
    rp_err err = RP_OK;
    while (wanted < RP_UNPACK_FILES_MAX && u->files[wanted].name) {
        wanted++;
    }
    while (u->found < wanted && (code = archive_read_next_header(u->from, &entry)) != ARCHIVE_EOF) {
        if (code != ARCHIVE_OK && code != ARCHIVE_WARN) {
            return fail_damaged(u, "");
        }
        const rp_unpack_file *file = find_wanted(u, entry);
        const int64_t bytes = archive_entry_size(entry);
        if (file && (bytes <= 0 || bytes > FILE_BYTES_MAX || bytes % file->record_bytes != 0)) {
            return rp_fail(RP_ERR_FORMAT, "%s: %s has %lld bytes, expected a multiple of %u",
                           u->path, file->name, (long long)bytes, file->record_bytes);
        }
        if (file) {
            RP_TRY(copy_file(u, file->name));
            u->found++;
        }
    }
    if (u->found < wanted) {
        err = rp_fail(RP_ERR_FORMAT,
                      "%s: has only %u of the %u expected files: it is truncated or damaged",
                      u->path, u->found, wanted);
    }
fail:
    return err;
}

rp_err rp_unpack(const char *archive, const char *prefix, const rp_unpack_file *files,
                 const char *dir) {
    unpacking u = {
        .from = archive_read_new(), .path = archive, .prefix = prefix, .files = files, .dir = dir};
    rp_err err;
    if (!u.from) {
        return rp_fail(RP_ERR_MEMORY, "%s: no memory for libarchive", archive);
    }
    (void)archive_read_support_filter_gzip(u.from);
    (void)archive_read_support_format_tar(u.from);
    if (access(archive, R_OK) != 0) {
        err = rp_fail(RP_ERR_IO, "%s: cannot be opened: %s", archive, strerror(errno));
    } else if (archive_read_open_filename(u.from, archive, PIECE_BYTES) != ARCHIVE_OK) {
        err = fail_damaged(&u, "");
    } else {
        err = read_entries(&u);
    }
    (void)archive_read_free(u.from);
    return err;
}
