#include "data/idx.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "data/gzip.h"
#include "data/pixels.h"

enum { SIDE = 28, CLASSES = 10, COUNT_MAX = 10 * 1000 * 1000 };

typedef struct {
    uint8_t *images[2];
    uint8_t *labels[2];
} own;

typedef struct {
    const char *path;
    gzFile file;
    uint32_t bytes; /* uncompressed size modulo 2^32, as gzip stores it */
} idx_file;

static uint32_t little_u32(const uint8_t *b) {
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint32_t big_u32(const uint8_t *b) {
    return (uint32_t)b[3] | (uint32_t)b[2] << 8 | (uint32_t)b[1] << 16 | (uint32_t)b[0] << 24;
}

/* Finds the size without unpacking: that of the file, or the one at the end of a gzip file. */
static rp_err find_size(idx_file *idx, int fd) {
    struct stat facts;
    uint8_t magic[2] = {0};
    uint8_t tail[4] = {0};
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return rp_fail(RP_ERR_IO, "%s: is not a regular file", idx->path);
    }
    if (facts.st_size < 8 || pread(fd, magic, 2, 0) != 2 ||
        pread(fd, tail, 4, facts.st_size - 4) != 4) {
        return rp_fail(RP_ERR_FORMAT, "%s: is too short for an idx file", idx->path);
    }
    const bool packed = magic[0] == 0x1f && magic[1] == 0x8b;
    idx->bytes = packed ? little_u32(tail) : (uint32_t)facts.st_size;
    return RP_OK;
}

static rp_err open_file(rp_arena *arena, const char *folder, const char *name, idx_file *idx) {
    rp_err err = RP_OK;
    char *path;
    RP_TRY(rp_arena_printf(arena, &path, "%s/%s", folder, name));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) {
        RP_TRY(rp_arena_printf(arena, &path, "%s/%s.gz", folder, name));
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    }
    if (fd < 0) {
        return rp_fail(RP_ERR_IO,
                       "%s (or without .gz): cannot be opened: %s; `ringpipe data fetch` gets it",
                       path, strerror(errno));
    }
    idx->path = path;
    err = find_size(idx, fd);
    idx->file = err == RP_OK ? gzdopen(fd, "rb") : NULL;
    if (!idx->file) {
        (void)close(fd);
        return err == RP_OK ? rp_fail(RP_ERR_MEMORY, "%s: no memory for zlib", path) : err;
    }
fail:
    return err;
}

static rp_err read_bytes(const idx_file *idx, uint8_t *to, size_t count) {
    while (count > 0) {
        const unsigned piece = count < 1u << 20 ? (unsigned)count : 1u << 20;
        const int got = gzread(idx->file, to, piece);
        if (got < 0) {
            return rp_fail(RP_ERR_FORMAT, "%s: %s", idx->path, rp_gzip_problem(idx->file));
        }
        if (got == 0) {
            return rp_fail(RP_ERR_FORMAT, "%s: is truncated: %zu bytes are missing", idx->path,
                           count);
        }
        to += got;
        count -= (size_t)got;
    }
    return RP_OK;
}

/* Reads a header of `fields` numbers: magic, count, and the sides of a picture. */
static rp_err read_header(const idx_file *idx, uint32_t magic, uint32_t fields, uint32_t *count) {
    uint8_t bytes[16];
    uint32_t number[4];
    rp_err err = read_bytes(idx, bytes, 4 * fields);
    if (err != RP_OK) {
        return err;
    }
    for (uint32_t i = 0; i < fields; i++) {
        number[i] = big_u32(bytes + 4 * i);
    }
    if (number[0] != magic) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: not the expected idx file: magic 0x%08" PRIx32
                       ", expected 0x%08" PRIx32,
                       idx->path, number[0], magic);
    }
    if (fields == 4 && (number[2] != SIDE || number[3] != SIDE)) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: has pictures of %" PRIu32 " x %" PRIu32
                       " pixels, expected 28 x 28 (for "
                       "other sizes use `set: idx`)",
                       idx->path, number[2], number[3]);
    }
    const uint64_t sample_bytes = fields == 4 ? SIDE * SIDE : 1;
    const uint64_t wanted = 4 * fields + number[1] * sample_bytes;
    if (number[1] == 0 || number[1] > COUNT_MAX || (uint32_t)wanted != idx->bytes) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: the header requires %" PRIu32 " samples (%" PRIu64
                       " bytes), but the file has %" PRIu32 " bytes: it is truncated or damaged",
                       idx->path, number[1], wanted, idx->bytes);
    }
    *count = number[1];
    return RP_OK;
}

static rp_err read_file(rp_arena *arena, const char *folder, const char *name, bool images,
                        uint32_t *count, uint8_t **out) {
    idx_file idx = {0};
    rp_err err = RP_OK;
    RP_TRY(open_file(arena, folder, name, &idx));
    RP_TRY(read_header(&idx, images ? 0x803 : 0x801, images ? 4 : 2, count));
    const size_t bytes = (size_t)*count * (images ? SIDE * SIDE : 1);
    RP_TRY(RP_ARENA_NEW(arena, bytes, out));
    RP_TRY(read_bytes(&idx, *out, bytes));
    RP_TRY(rp_gzip_check_end(idx.file, idx.path));
    for (uint32_t i = 0; !images && i < *count; i++) {
        if ((*out)[i] >= CLASSES) {
            err = rp_fail(RP_ERR_FORMAT,
                          "%s: invalid label %u of sample %" PRIu32 "; expected 0 to 9", idx.path,
                          (*out)[i], i);
            goto fail;
        }
    }
fail:
    if (idx.file) {
        (void)gzclose(idx.file);
    }
    return err;
}

rp_err rp_idx_open(rp_arena *arena, rp_data *data, rp_node *keys) {
    static const char *const names[2][2] = {
        {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
        {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
    };
    rp_err err = RP_OK;
    const char *folder = NULL;
    own *o;
    RP_TRY(rp_node_need(keys, "path"));
    RP_TRY(rp_node_string(keys, "path", &folder));
    RP_TRY(RP_ARENA_NEW(arena, 1, &o));
    for (int split = RP_SPLIT_TRAIN; split <= RP_SPLIT_TEST; split++) {
        uint32_t labels;
        RP_TRY(read_file(arena, folder, names[split][0], true, &data->count[split],
                         &o->images[split]));
        RP_TRY(read_file(arena, folder, names[split][1], false, &labels, &o->labels[split]));
        if (labels != data->count[split]) {
            return rp_fail(RP_ERR_FORMAT,
                           "%s: %s has %" PRIu32 " pictures, but %s has %" PRIu32 " labels", folder,
                           names[split][0], data->count[split], names[split][1], labels);
        }
    }
    data->sample = rp_shape_3(1, SIDE, SIDE);
    data->channels = 1;
    data->bytes = true;
    data->classes = CLASSES;
    data->own = o;
fail:
    return err;
}

rp_err rp_idx_read(const rp_data *data, rp_split split, uint32_t index, float *x, float *row,
                   int32_t *label) {
    const own *o = data->own;
    (void)row;
    rp_pixels_read(x, o->images[split] + (size_t)index * SIDE * SIDE, SIDE * SIDE);
    if (label) {
        *label = o->labels[split][index];
    }
    return RP_OK;
}
