#include "base/safetensors_own.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/input.h"

/* ---- reading ---- */

static rp_err fail_entry(const rp_st_reader *reader, const char *tensor, const char *problem) {
    return rp_fail(RP_ERR_FORMAT, "%s: tensor '%.*s': %s", reader->name, RP_ST_NAME_MAX, tensor,
                   problem);
}

static bool read_u64(const json_t *value, uint64_t *out) {
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return false;
    }
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static rp_err read_shape(const rp_st_reader *reader, const json_t *shape, rp_st_entry *entry) {
    if (!json_is_array(shape)) {
        return fail_entry(reader, entry->name, "shape is not a list");
    }
    if (json_array_size(shape) > RP_ST_DIMS_MAX) {
        return fail_entry(reader, entry->name, "more than 6 dimensions");
    }
    entry->dims = (uint32_t)json_array_size(shape);
    for (uint32_t i = 0; i < entry->dims; i++) {
        if (!read_u64(json_array_get(shape, i), &entry->dim[i])) {
            return fail_entry(reader, entry->name, "a dimension is not a whole number");
        }
    }
    return RP_OK;
}

static rp_err read_entry(const rp_st_reader *reader, const json_t *object, rp_st_entry *entry) {
    if (!json_is_object(object) || json_object_size(object) != 3) {
        return fail_entry(reader, entry->name, "expected dtype, shape and data_offsets");
    }
    const char *type = json_string_value(json_object_get(object, "dtype"));
    if (!type || !rp_st_type_find(type, &entry->type)) {
        return rp_fail(RP_ERR_FORMAT, "%s: tensor '%s': unknown dtype '%.16s'", reader->name,
                       entry->name, type ? type : "");
    }
    rp_err err = read_shape(reader, json_object_get(object, "shape"), entry);
    if (err != RP_OK) {
        return err;
    }
    const json_t *offsets = json_object_get(object, "data_offsets");
    uint64_t end = 0;
    uint64_t bytes = 0;
    if (json_array_size(offsets) != 2 || !read_u64(json_array_get(offsets, 0), &entry->offset) ||
        !read_u64(json_array_get(offsets, 1), &end) || end < entry->offset) {
        return fail_entry(reader, entry->name, "data_offsets is not [begin, end]");
    }
    entry->bytes = end - entry->offset;
    if (!rp_st_size_of(entry, &bytes) || bytes != entry->bytes) {
        return fail_entry(reader, entry->name, "data_offsets do not fit shape and dtype");
    }
    return RP_OK;
}

static rp_err read_meta(rp_st_reader *reader, json_t *object) {
    rp_err err = RP_OK;
    if (!json_is_object(object)) {
        return rp_fail(RP_ERR_FORMAT, "%s: __metadata__ is not a map", reader->name);
    }
    RP_TRY(RP_ARENA_NEW(reader->arena, 2 * json_object_size(object) + 1, &reader->meta));
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        if (!json_is_string(value)) {
            return rp_fail(RP_ERR_FORMAT, "%s: __metadata__ '%.64s' is not a string", reader->name,
                           key);
        }
        char *copy;
        RP_TRY(rp_arena_string(reader->arena, key, &copy));
        reader->meta[2 * reader->meta_count] = copy;
        RP_TRY(rp_arena_string(reader->arena, json_string_value(value), &copy));
        reader->meta[2 * reader->meta_count + 1] = copy;
        reader->meta_count++;
    }
fail:
    return err;
}

static int compare_names(const void *a, const void *b) {
    const rp_st_entry *const *x = a;
    const rp_st_entry *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int compare_offsets(const void *a, const void *b) {
    const rp_st_entry *const *x = a;
    const rp_st_entry *const *y = b;
    if ((*x)->offset != (*y)->offset) {
        return (*x)->offset < (*y)->offset ? -1 : 1;
    }
    return ((*x)->bytes > (*y)->bytes) - ((*x)->bytes < (*y)->bytes);
}

/* Checks that the tensors fill the data exactly: no hole, no overlap, nothing left over. */
static rp_err check_layout(rp_st_reader *reader) {
    uint64_t at = 0;
    uint64_t total = reader->count - (size_t)(reader->data - reader->bytes);
    qsort(reader->by_name, reader->entry_count, sizeof *reader->by_name, compare_offsets);
    for (uint32_t i = 0; i < reader->entry_count; i++) {
        const rp_st_entry *entry = reader->by_name[i];
        if (entry->offset != at) {
            return fail_entry(reader, entry->name,
                              entry->offset < at ? "overlaps another tensor"
                                                 : "there is a gap before it");
        }
        at += entry->bytes; /* cannot overflow: offset + bytes was an integer in the header */
        if (at > total) {
            return fail_entry(reader, entry->name, "ends after the end of the file");
        }
    }
    if (at != total) {
        return rp_fail(RP_ERR_FORMAT, "%s: has %" PRIu64 " bytes after the last tensor",
                       reader->name, total - at);
    }
    qsort(reader->by_name, reader->entry_count, sizeof *reader->by_name, compare_names);
    return RP_OK;
}

static rp_err read_entries(rp_st_reader *reader, json_t *header) {
    rp_err err = RP_OK;
    size_t count = json_object_size(header) - (json_object_get(header, RP_ST_META_KEY) ? 1 : 0);
    if (count > RP_ST_TENSORS_MAX) {
        return rp_fail(RP_ERR_FORMAT, "%s: %zu tensors, at most %d", reader->name, count,
                       RP_ST_TENSORS_MAX);
    }
    RP_TRY(RP_ARENA_NEW(reader->arena, count + 1, &reader->entries));
    RP_TRY(RP_ARENA_NEW(reader->arena, count + 1, &reader->by_name));
    const char *key;
    json_t *value;
    json_object_foreach(header, key, value) {
        if (strcmp(key, RP_ST_META_KEY) == 0) {
            RP_TRY(read_meta(reader, value));
            continue;
        }
        if (key[0] == '\0' || strlen(key) > RP_ST_NAME_MAX) {
            return fail_entry(reader, key, "expected a name of 1 to 200 bytes");
        }
        rp_st_entry *entry = &reader->entries[reader->entry_count];
        char *name;
        RP_TRY(rp_arena_string(reader->arena, key, &name));
        entry->name = name;
        RP_TRY(read_entry(reader, value, entry));
        reader->by_name[reader->entry_count++] = entry;
    }
    err = check_layout(reader);
fail:
    return err;
}

static rp_err read_header(rp_st_reader *reader) {
    if (reader->count < RP_ST_LENGTH_BYTES + 2) {
        return rp_fail(RP_ERR_FORMAT, "%s: %zu bytes are too few for a safetensors file",
                       reader->name, reader->count);
    }
    uint64_t length = 0;
    for (uint32_t i = RP_ST_LENGTH_BYTES; i-- > 0;) {
        length = length << 8 | reader->bytes[i];
    }
    if (length > RP_ST_HEADER_BYTES_MAX || length > reader->count - RP_ST_LENGTH_BYTES) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: not a safetensors file, or cut off: a header of %" PRIu64
                       " bytes in a file of %zu",
                       reader->name, length, reader->count);
    }
    const char *text = (const char *)reader->bytes + RP_ST_LENGTH_BYTES;
    if (length == 0 || text[0] != '{') {
        return rp_fail(RP_ERR_FORMAT, "%s: the header does not begin with '{'", reader->name);
    }
    reader->data = reader->bytes + RP_ST_LENGTH_BYTES + length;
    json_error_t problem;
    json_t *header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &problem);
    if (!header) {
        return rp_fail(RP_ERR_FORMAT, "%s: header, byte %d: %s", reader->name, problem.position,
                       problem.text);
    }
    rp_err err = read_entries(reader, header);
    json_decref(header);
    return err;
}

rp_err rp_st_open_bytes(rp_arena *arena, const void *bytes, size_t count, const char *name,
                        rp_st_reader **out) {
    rp_st_reader *reader;
    char *copy;
    rp_err err = RP_OK;
    RP_TRY(RP_ARENA_NEW(arena, 1, &reader));
    RP_TRY(rp_arena_string(arena, name, &copy));
    reader->arena = arena;
    reader->name = copy;
    reader->bytes = bytes;
    reader->count = count;
    RP_TRY(read_header(reader));
    *out = reader;
fail:
    return err;
}

static rp_err map_file(const char *path, void **mapped, size_t *bytes) {
    int fd = open(rp_input_path(path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    path = rp_input_name(path);
    if (fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    }
    rp_err err = RP_OK;
    struct stat facts;
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        err = rp_fail(RP_ERR_IO, "%s: is not a file", path);
    } else if (facts.st_size == 0) {
        err = rp_fail(RP_ERR_FORMAT, "%s: is empty", path);
    } else {
        *bytes = (size_t)facts.st_size;
        *mapped = mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (*mapped == MAP_FAILED) {
            err = rp_fail(RP_ERR_IO, "%s: cannot be mapped: %s", path, strerror(errno));
        }
    }
    (void)close(fd);
    return err;
}

rp_err rp_st_open(rp_arena *arena, const char *path, rp_st_reader **out) {
    void *mapped = NULL;
    size_t bytes = 0;
    rp_err err = map_file(path, &mapped, &bytes);
    if (err != RP_OK) {
        return err;
    }
    rp_st_reader *reader = NULL;
    err = rp_st_open_bytes(arena, mapped, bytes, rp_input_name(path), &reader);
    if (err != RP_OK) {
        (void)munmap(mapped, bytes);
        return err;
    }
    reader->mapped = mapped;
    *out = reader;
    return RP_OK;
}

void rp_st_close(rp_st_reader **reader) {
    if (*reader && (*reader)->mapped) {
        (void)munmap((*reader)->mapped, (*reader)->count);
    }
    *reader = NULL;
}

uint32_t rp_st_count(const rp_st_reader *reader) {
    return reader->entry_count;
}

const rp_st_entry *rp_st_entry_at(const rp_st_reader *reader, uint32_t index) {
    RP_ASSERT(index < reader->entry_count);
    return &reader->entries[index];
}

const rp_st_entry *rp_st_find(const rp_st_reader *reader, const char *name) {
    const rp_st_entry wanted = {.name = name};
    const rp_st_entry *key = &wanted;
    const rp_st_entry **found =
        bsearch(&key, reader->by_name, reader->entry_count, sizeof *reader->by_name, compare_names);
    return found ? *found : NULL;
}

const char *rp_st_meta(const rp_st_reader *reader, const char *key) {
    for (uint32_t i = 0; i < reader->meta_count; i++) {
        if (strcmp(reader->meta[2 * i], key) == 0) {
            return reader->meta[2 * i + 1];
        }
    }
    return NULL;
}

bool rp_st_meta_at(const rp_st_reader *reader, uint32_t index, const char **key,
                   const char **value) {
    if (index >= reader->meta_count) {
        return false;
    }
    *key = reader->meta[2 * index];
    *value = reader->meta[2 * index + 1];
    return true;
}

const void *rp_st_data(const rp_st_reader *reader, const rp_st_entry *entry) {
    return reader->data + entry->offset;
}

static void shape_text(uint32_t dims, const uint64_t *dim, char *text, size_t text_bytes) {
    size_t used = (size_t)snprintf(text, text_bytes, "[");
    for (uint32_t i = 0; i < dims && used < text_bytes; i++) {
        used +=
            (size_t)snprintf(text + used, text_bytes - used, "%s%" PRIu64, i ? ", " : "", dim[i]);
    }
    if (used < text_bytes) {
        (void)snprintf(text + used, text_bytes - used, "]");
    }
}

bool rp_st_are_finite(const void *floats, uint64_t count, uint64_t *at) {
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, (const uint8_t *)floats + i * sizeof bits, sizeof bits);
        if ((bits & UINT32_C(0x7f800000)) == UINT32_C(0x7f800000)) {
            *at = i;
            return false;
        }
    }
    return true;
}

static rp_err check_finite(const rp_st_reader *reader, const char *name, const float *values,
                           uint64_t count) {
    uint64_t at;
    if (rp_st_are_finite(values, count, &at)) {
        return RP_OK;
    }
    const char *what = isnan(values[at]) ? "NaN" : "infinite";
    const rp_st_entry *entry = rp_st_find(reader, name);
    const double given = rp_st_value(entry->type, rp_st_data(reader, entry), at);
    return rp_fail(RP_ERR_FORMAT, "%s: tensor '%s': value %" PRIu64 " is %s", reader->name, name,
                   at, isfinite(given) ? "too large for F32" : what);
}

/* Converts values that cannot be used in place: not F32, or not aligned, because the format does
 * not promise alignment. */
static rp_err cast_values(const rp_st_reader *reader, const rp_st_entry *entry, const void **out) {
    const uint8_t *data = rp_st_data(reader, entry);
    uint64_t count = 0;
    float *values;
    rp_err err;
    (void)rp_st_count_of(entry, &count);
    RP_TRY(RP_ARENA_NEW(reader->arena, count + 1, &values));
    for (uint64_t i = 0; i < count; i++) {
        values[i] = (float)rp_st_value(entry->type, data, i);
    }
    *out = values;
fail:
    return err;
}

/* Dimensions of 1 at the beginning change neither the number of values nor their order. */
static bool is_same_shape(uint32_t dims, const uint64_t *dim, uint32_t other_dims,
                          const uint64_t *other) {
    for (; dims > 0 && *dim == 1; dims--) {
        dim++;
    }
    for (; other_dims > 0 && *other == 1; other_dims--) {
        other++;
    }
    return dims == other_dims && (dims == 0 || memcmp(dim, other, dims * sizeof *dim) == 0);
}

rp_err rp_st_need_f32(const rp_st_reader *reader, const char *name, uint32_t dims,
                      const uint64_t *dim, const float **out) {
    const rp_st_entry *entry = rp_st_find(reader, name);
    if (!entry) {
        return rp_fail(RP_ERR_FORMAT, "%s: tensor '%s' is missing", reader->name, name);
    }
    if (!rp_st_is_float(entry->type)) {
        return rp_fail(RP_ERR_FORMAT, "%s: tensor '%s': expected F32, F16, BF16 or F64, found %s",
                       reader->name, name, rp_st_type_name(entry->type));
    }
    if (!is_same_shape(dims, dim, entry->dims, entry->dim)) {
        char wanted[128];
        char found[128];
        shape_text(dims, dim, wanted, sizeof wanted);
        shape_text(entry->dims, entry->dim, found, sizeof found);
        return rp_fail(RP_ERR_FORMAT, "%s: tensor '%s': expected shape %s, found %s", reader->name,
                       name, wanted, found);
    }
    const void *data = rp_st_data(reader, entry);
    uint64_t count = 0;
    (void)rp_st_count_of(entry, &count);
    if (entry->type != RP_ST_F32 || (uintptr_t)data % _Alignof(float) != 0) {
        const rp_err err = cast_values(reader, entry, &data);
        if (err != RP_OK) {
            return err;
        }
    }
    *out = data;
    return check_finite(reader, name, *out, count);
}
