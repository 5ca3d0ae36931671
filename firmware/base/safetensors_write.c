/* Writes a safetensors file: a temporary file that is renamed when it is complete. */
#include "base/replace.h"
#include "base/safetensors_own.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

/* Copies the entries and assigns consecutive offsets. */
static rp_err lay_out(rp_arena *arena, rp_st_writer *writer, const rp_st_entry *entries) {
    rp_err err = RP_OK;
    uint64_t at = 0;
    for (uint32_t i = 0; i < writer->entry_count; i++) {
        rp_st_entry *entry = &writer->entries[i];
        char *name;
        *entry = entries[i];
        if (strlen(entry->name) - 1 >= RP_ST_NAME_MAX || strcmp(entry->name, RP_ST_META_KEY) == 0 ||
            entry->dims > RP_ST_DIMS_MAX || (unsigned)entry->type >= RP_ST_TYPES ||
            !rp_st_size_of(entry, &entry->bytes) || entry->bytes > INT64_MAX - at) {
            return rp_fail(RP_ERR_FORMAT,
                           "%s: tensor '%.*s' cannot be written: name, shape or type", writer->path,
                           RP_ST_NAME_MAX, entry->name);
        }
        RP_TRY(rp_arena_string(arena, entry->name, &name));
        entry->name = name;
        entry->offset = at;
        at += entry->bytes;
    }
fail:
    return err;
}

/* Adds the metadata, checksums first. Returns false if memory is short or a text is not UTF-8. */
static bool add_meta(rp_arena *arena, const rp_st_writer *writer, const char *const *meta,
                     json_t *header) {
    const size_t digits = (size_t)writer->entry_count * RP_ST_SUM_DIGITS;
    json_t *map = json_object();
    bool good = json_object_set_new(header, RP_ST_META_KEY, map) == 0;
    char sum[RP_ST_SUM_DIGITS + 1];
    char *sums;
    if (good && writer->summed) {
        good = RP_ARENA_NEW(arena, digits + 1, &sums) == RP_OK;
        if (good) {
            rp_st_blank_sums(writer->entry_count, sum, sums);
            good = json_object_set_new(map, RP_ST_SUM_KEY, json_string(sum)) == 0 &&
                   json_object_set_new(map, RP_ST_SUMS_KEY, json_string(sums)) == 0;
        }
    }
    for (uint32_t i = 0; good && meta && meta[i]; i += 2) {
        good = json_object_set_new(map, meta[i], json_string(meta[i + 1])) == 0;
    }
    return good;
}

/* Returns NULL if memory is short or a text is not UTF-8. */
static json_t *make_header(rp_arena *arena, const rp_st_writer *writer, const char *const *meta) {
    json_t *header = json_object();
    if (((meta && meta[0]) || writer->summed) && !add_meta(arena, writer, meta, header)) {
        json_decref(header);
        return NULL;
    }
    for (uint32_t i = 0; i < writer->entry_count; i++) {
        const rp_st_entry *entry = &writer->entries[i];
        json_t *shape = json_array();
        for (uint32_t d = 0; d < entry->dims; d++) {
            (void)json_array_append_new(shape, json_integer((json_int_t)entry->dim[d]));
        }
        json_t *value = json_pack("{s:s, s:o, s:[I, I]}", "dtype", rp_st_type_name(entry->type),
                                  "shape", shape, "data_offsets", (json_int_t)entry->offset,
                                  (json_int_t)(entry->offset + entry->bytes));
        bool twice = json_object_get(header, entry->name) != NULL;
        if (json_object_set_new(header, entry->name, value) != 0 || twice) {
            json_decref(header);
            return NULL;
        }
    }
    return header;
}

static rp_err write_at(const rp_st_writer *writer, uint64_t offset, const void *bytes,
                       size_t count) {
    const char *from = bytes;
    while (count > 0) {
        ssize_t wrote = pwrite(writer->fd, from, count, (off_t)offset);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            return rp_fail(RP_ERR_IO, "%s: cannot be written: %s", writer->temporary,
                           strerror(errno));
        }
        from += wrote;
        offset += (uint64_t)wrote;
        count -= (size_t)wrote;
    }
    return RP_OK;
}

/* Writes the length and the header, padded with blanks so that the data begin at a multiple of 8,
 * and reserves space for the data. */
static rp_err write_header(rp_arena *arena, rp_st_writer *writer, const json_t *header) {
    rp_err err = RP_OK;
    size_t length = json_dumpb(header, NULL, 0, JSON_COMPACT);
    size_t padded = (length + 7) / 8 * 8;
    unsigned char prefix[RP_ST_LENGTH_BYTES];
    RP_TRY(RP_ARENA_NEW(arena, padded + 1, &writer->header));
    memset(writer->header, ' ', padded);
    if (json_dumpb(header, writer->header, length, JSON_COMPACT) != length || length == 0) {
        err = rp_fail(RP_ERR_MEMORY, "%s: no memory for the header", writer->path);
        goto fail;
    }
    if (padded > RP_ST_HEADER_BYTES_MAX) {
        err = rp_fail(RP_ERR_LIMIT, "%s: a header of %zu bytes is too long", writer->path, padded);
        goto fail;
    }
    for (uint32_t i = 0; i < RP_ST_LENGTH_BYTES; i++) {
        prefix[i] = (unsigned char)(padded >> 8 * i);
    }
    writer->data_offset = RP_ST_LENGTH_BYTES + padded;
    uint64_t total = writer->data_offset;
    if (writer->entry_count > 0) {
        const rp_st_entry *last = &writer->entries[writer->entry_count - 1];
        total += last->offset + last->bytes;
    }
    /* Reserving the space finds a full disk here, before anything is computed or sent. */
    int problem;
    do {
        problem = posix_fallocate(writer->fd, 0, (off_t)total);
    } while (problem == EINTR);
    if (problem != 0 && problem != EOPNOTSUPP && problem != EINVAL) {
        err = rp_fail(RP_ERR_IO, "%s: cannot be written, %" PRIu64 " bytes: %s", writer->temporary,
                      total, strerror(problem));
        goto fail;
    }
    RP_TRY(write_at(writer, 0, prefix, sizeof prefix));
    RP_TRY(write_at(writer, RP_ST_LENGTH_BYTES, writer->header, padded));
fail:
    return err;
}

rp_err rp_st_create(rp_arena *arena, const char *path, const rp_st_entry *entries, uint32_t count,
                    const char *const *meta, bool summed, rp_st_writer **out) {
    rp_err err = RP_OK;
    rp_st_writer *writer = NULL;
    json_t *header = NULL;
    char *copy;
    if (count > RP_ST_TENSORS_MAX) {
        return rp_fail(RP_ERR_LIMIT, "%s: %u tensors, at most %d", path, count, RP_ST_TENSORS_MAX);
    }
    RP_TRY(RP_ARENA_NEW(arena, 1, &writer));
    writer->fd = -1;
    writer->summed = summed;
    writer->entry_count = count;
    RP_TRY(rp_arena_string(arena, path, &copy));
    writer->path = copy;
    RP_TRY(rp_arena_printf(arena, &copy, "%s.tmp", path));
    writer->temporary = copy;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)count + 1, &writer->entries));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)count + 1, &writer->written));
    RP_TRY(lay_out(arena, writer, entries));
    header = make_header(arena, writer, meta);
    if (!header) {
        err = rp_fail(RP_ERR_FORMAT, "%s: a tensor's name occurs twice or is not UTF-8", path);
        goto fail;
    }
    writer->fd = open(writer->temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (writer->fd < 0) {
        err = rp_fail(RP_ERR_IO, "%s: cannot be written: %s", writer->temporary, strerror(errno));
        goto fail;
    }
    RP_TRY(write_header(arena, writer, header));
    *out = writer;
    writer = NULL;
fail:
    json_decref(header);
    rp_st_abandon(&writer);
    return err;
}

/* Adds [begin, end) to the written stretches and joins stretches that touch. */
static bool cover_bytes(rp_st_coverage *written, uint64_t begin, uint64_t end) {
    uint32_t first = 0;
    while (first < written->count && written->end[first] < begin) {
        first++;
    }
    uint32_t behind = first;
    while (behind < written->count && written->begin[behind] <= end) {
        begin = written->begin[behind] < begin ? written->begin[behind] : begin;
        end = written->end[behind] > end ? written->end[behind] : end;
        behind++;
    }
    uint32_t tail = written->count - behind;
    if (first + 1 + tail > RP_ST_STRETCHES_MAX) {
        return false;
    }
    memmove(&written->begin[first + 1], &written->begin[behind], tail * sizeof(uint64_t));
    memmove(&written->end[first + 1], &written->end[behind], tail * sizeof(uint64_t));
    written->begin[first] = begin;
    written->end[first] = end;
    written->count = first + 1 + tail;
    return true;
}

rp_err rp_st_write(rp_st_writer *writer, uint32_t index, uint64_t offset_bytes, const void *bytes,
                   size_t count) {
    RP_ASSERT(index < writer->entry_count);
    const rp_st_entry *entry = &writer->entries[index];
    if (offset_bytes > entry->bytes || count > entry->bytes - offset_bytes) {
        return rp_fail(RP_ERR_LIMIT,
                       "%s: tensor '%s': from byte %" PRIu64
                       " on %zu bytes exceed its size of %" PRIu64,
                       writer->path, entry->name, offset_bytes, count, entry->bytes);
    }
    if (count == 0) {
        return RP_OK;
    }
    if (!cover_bytes(&writer->written[index], offset_bytes, offset_bytes + count)) {
        return rp_fail(RP_ERR_LIMIT, "%s: tensor '%s': is written in too many separate pieces",
                       writer->path, entry->name);
    }
    return write_at(writer, writer->data_offset + entry->offset + offset_bytes, bytes, count);
}

rp_err rp_st_commit(rp_st_writer **taken) {
    rp_st_writer *writer = *taken;
    rp_err err = RP_OK;
    *taken = NULL;
    for (uint32_t i = 0; i < writer->entry_count; i++) {
        const rp_st_entry *entry = &writer->entries[i];
        const rp_st_coverage *written = &writer->written[i];
        if (entry->bytes > 0 &&
            (written->count != 1 || written->begin[0] != 0 || written->end[0] != entry->bytes)) {
            err = rp_fail(RP_ERR_FORMAT, "%s: tensor '%s' is not completely written", writer->path,
                          entry->name);
            goto fail;
        }
    }
    if (writer->summed) {
        RP_TRY(rp_st_add_sums(writer));
        RP_TRY(write_at(writer, RP_ST_LENGTH_BYTES, writer->header,
                        (size_t)writer->data_offset - RP_ST_LENGTH_BYTES));
    }
    bool synced = fsync(writer->fd) == 0;
    synced = close(writer->fd) == 0 && synced;
    writer->fd = -1;
    if (!synced || rename(writer->temporary, writer->path) != 0) {
        err = rp_fail(RP_ERR_IO, "%s: cannot be written: %s", writer->path, strerror(errno));
        (void)unlink(writer->temporary);
        goto fail;
    }
    err = rp_replace_sync_folder(writer->path);
fail:
    rp_st_abandon(&writer);
    return err;
}

void rp_st_abandon(rp_st_writer **writer) {
    if (*writer && (*writer)->fd >= 0) {
        (void)close((*writer)->fd);
        (void)unlink((*writer)->temporary);
    }
    *writer = NULL;
}
