#include "data/npz.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "data/array.h"

enum { BLOCK_BYTES = 65536 };

struct rp_npz {
    const char *path;
    uint32_t count;
    uint64_t bytes; /* of all arrays so far */
    const char *name[RP_NPZ_ARRAYS_MAX];
    rp_array array[RP_NPZ_ARRAYS_MAX];
};

static rp_err fail_damaged(const rp_npz *npz, struct archive *from, const char *name) {
    const char *reason = archive_error_string(from);
    return rp_fail(RP_ERR_FORMAT, "%s: is truncated or damaged%s%s%s%s", npz->path,
                   name[0] ? " in " : "", name, reason ? ": " : "", reason ? reason : "");
}

/* Reads exactly as many bytes as the archive states. */
static rp_err read_bytes(const rp_npz *npz, struct archive *from, const char *name, uint8_t *to,
                         size_t count) {
    uint8_t more;
    for (size_t done = 0; done < count;) {
        const la_ssize_t got = archive_read_data(from, to + done, count - done);
        if (got <= 0) {
            return fail_damaged(npz, from, name);
        }
        done += (size_t)got;
    }
    return archive_read_data(from, &more, 1) == 0 ? RP_OK : fail_damaged(npz, from, name);
}

static rp_err read_array(rp_arena *arena, rp_npz *npz, struct archive *from,
                         struct archive_entry *entry) {
    const char *name = archive_entry_pathname(entry);
    const size_t length = name ? strlen(name) : 0;
    const int64_t bytes = archive_entry_size_is_set(entry) ? archive_entry_size(entry) : 0;
    char *path;
    char *copy;
    uint8_t *data;
    rp_err err;
    if (archive_entry_filetype(entry) != AE_IFREG || length < 5 ||
        strcmp(name + length - 4, ".npy") != 0) {
        return rp_fail(RP_ERR_FORMAT, "%s: has '%.200s', expected arrays NAME.npy only", npz->path,
                       name ? name : "");
    }
    if (npz->count == RP_NPZ_ARRAYS_MAX) {
        return rp_fail(RP_ERR_LIMIT, "%s: has more than %d arrays", npz->path, RP_NPZ_ARRAYS_MAX);
    }
    if (bytes <= 0) {
        return fail_damaged(npz, from, name);
    }
    if ((uint64_t)bytes > RP_NPZ_BYTES_MAX - npz->bytes) {
        return rp_fail(RP_ERR_LIMIT, "%s: the arrays have more than %d MiB", npz->path,
                       RP_NPZ_BYTES_MAX >> 20);
    }
    npz->bytes += (uint64_t)bytes;
    RP_TRY(rp_arena_printf(arena, &path, "%s: %s", npz->path, name));
    RP_TRY(rp_arena_text(arena, name, length - 4, &copy));
    if (rp_npz_find(npz, copy) != UINT32_MAX) {
        return rp_fail(RP_ERR_FORMAT, "%s: there are two arrays with this name", path);
    }
    RP_TRY(RP_ARENA_NEW(arena, (size_t)bytes, &data));
    RP_TRY(read_bytes(npz, from, name, data, (size_t)bytes));
    RP_TRY(rp_array_open_bytes(data, (size_t)bytes, path, &npz->array[npz->count]));
    npz->name[npz->count++] = copy;
fail:
    return err;
}

static rp_err read_arrays(rp_arena *arena, rp_npz *npz, struct archive *from) {
    struct archive_entry *entry;
    int code;
    rp_err err = RP_OK;
    while (err == RP_OK && (code = archive_read_next_header(from, &entry)) != ARCHIVE_EOF) {
        if (code != ARCHIVE_OK && code != ARCHIVE_WARN) {
            return fail_damaged(npz, from, "");
        }
        err = read_array(arena, npz, from, entry);
    }
    if (err == RP_OK && npz->count == 0) {
        err = rp_fail(RP_ERR_FORMAT, "%s: has no arrays", npz->path);
    }
    return err;
}

rp_err rp_npz_read(rp_arena *arena, const char *path, rp_npz **out) {
    rp_npz *npz;
    rp_err err = RP_ARENA_NEW(arena, 1, &npz);
    if (err != RP_OK) {
        return err;
    }
    npz->path = path;
    struct archive *from = archive_read_new();
    if (!from) {
        return rp_fail(RP_ERR_MEMORY, "%s: no memory for libarchive", path);
    }
    (void)archive_read_support_format_zip(from);
    if (access(path, R_OK) != 0) {
        err = rp_fail(RP_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    } else if (archive_read_open_filename(from, path, BLOCK_BYTES) != ARCHIVE_OK) {
        err = fail_damaged(npz, from, "");
    } else {
        err = read_arrays(arena, npz, from);
    }
    (void)archive_read_free(from);
    *out = npz;
    return err;
}

uint32_t rp_npz_find(const rp_npz *npz, const char *name) {
    for (uint32_t i = 0; i < npz->count; i++) {
        if (strcmp(npz->name[i], name) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

uint32_t rp_npz_samples(const rp_npz *npz, uint32_t array, rp_shape *sample) {
    RP_ASSERT(array < npz->count);
    *sample = npz->array[array].sample;
    return npz->array[array].count;
}

rp_err rp_npz_floats(const rp_npz *npz, uint32_t array, uint32_t index, float *row) {
    RP_ASSERT(array < npz->count && index < npz->array[array].count);
    return rp_array_read_row(&npz->array[array], index, row);
}

rp_err rp_npz_whole(const rp_npz *npz, uint32_t array, uint32_t index, int32_t least, int32_t most,
                    int32_t *row) {
    RP_ASSERT(array < npz->count && index < npz->array[array].count);
    if (npz->array[array].number == RP_NUMBER_FLOAT) {
        return rp_fail(RP_ERR_FORMAT, "%s: %s has floats, expected whole numbers", npz->path,
                       npz->name[array]);
    }
    return rp_array_read_whole(&npz->array[array], index, least, most, row);
}
