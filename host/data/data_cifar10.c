#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/data.h"
#include "data/pixels.h"

enum {
    SIDE = 32,
    PIXELS = 3 * SIDE * SIDE,
    RECORD = 1 + PIXELS, /* label, 1024 red, 1024 green, 1024 blue */
    CLASSES = 10,
    FILES = 6,
    FILE_RECORDS_MAX = 1000 * 1000
};

typedef struct {
    uint8_t *records[FILES];
    uint32_t count[FILES];
} own;

static const char *const names[FILES] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                         "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};

static rp_err read_all(int fd, const char *path, uint8_t *to, size_t count) {
    while (count > 0) {
        ssize_t got = read(fd, to, count);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return rp_fail(RP_ERR_IO, "%s: can not be read: %s", path,
                           got < 0 ? strerror(errno) : "it became shorter");
        }
        to += got;
        count -= (size_t)got;
    }
    return RP_OK;
}

static rp_err read_batch(rp_arena *arena, int fd, const char *path, uint8_t **records,
                         uint32_t *count) {
    struct stat facts;
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return rp_fail(RP_ERR_IO, "%s: is not a file", path);
    }
    if (facts.st_size == 0 || facts.st_size % RECORD != 0 ||
        facts.st_size / RECORD > FILE_RECORDS_MAX) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: %lld bytes are not a whole number of records of %d: cut off or damaged",
                       path, (long long)facts.st_size, RECORD);
    }
    rp_err err = RP_OK;
    *count = (uint32_t)(facts.st_size / RECORD);
    RP_TRY(RP_ARENA_NEW(arena, (size_t)facts.st_size, records));
    RP_TRY(read_all(fd, path, *records, (size_t)facts.st_size));
    for (uint32_t i = 0; i < *count; i++) {
        const unsigned label = (*records)[(size_t)i * RECORD];
        if (label >= CLASSES) {
            return rp_fail(RP_ERR_FORMAT, "%s: label %u of record %u, expected 0 to 9", path, label,
                           i);
        }
    }
fail:
    return err;
}

/* In the folder itself, or in the one that the official archive unpacks to. */
static rp_err open_batch(rp_arena *arena, const char *folder, const char *name, uint8_t **records,
                         uint32_t *count) {
    rp_err err = RP_OK;
    char *path;
    RP_TRY(rp_arena_printf(arena, &path, "%s/%s", folder, name));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) {
        RP_TRY(rp_arena_printf(arena, &path, "%s/cifar-10-batches-bin/%s", folder, name));
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    }
    if (fd < 0) {
        return rp_fail(RP_ERR_IO, "%s/%s: can not be opened: %s; `ringpipe data fetch` gets it",
                       folder, name, strerror(errno));
    }
    err = read_batch(arena, fd, path, records, count);
    (void)close(fd);
fail:
    return err;
}

static rp_err open_set(rp_arena *arena, rp_data *data, rp_node *keys, const rp_shape *input,
                       bool class_target) {
    static const float mean[] = {0.4914f, 0.4822f, 0.4465f};
    static const float deviation[] = {0.2470f, 0.2435f, 0.2616f};
    static const char *const class_names[CLASSES] = {
        "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
    (void)input;
    (void)class_target;
    rp_err err = RP_OK;
    const char *folder = NULL;
    own *o;
    RP_TRY(rp_node_need(keys, "path"));
    RP_TRY(rp_node_string(keys, "path", &folder));
    RP_TRY(RP_ARENA_NEW(arena, 1, &o));
    for (uint32_t i = 0; i < FILES; i++) {
        RP_TRY(open_batch(arena, folder, names[i], &o->records[i], &o->count[i]));
        data->count[i + 1 == FILES ? RP_SPLIT_TEST : RP_SPLIT_TRAIN] += o->count[i];
    }
    data->sample = rp_shape_3(3, SIDE, SIDE);
    data->channels = 3;
    data->classes = CLASSES;
    data->class_name = class_names;
    RP_TRY(rp_norm_set(arena, &data->norm, 3, mean, deviation));
    data->own = o;
fail:
    return err;
}

static rp_err read_sample(const rp_data *data, rp_split split, uint32_t index, float *x, float *row,
                          int32_t *label) {
    const own *o = data->own;
    uint32_t file = split == RP_SPLIT_TEST ? FILES - 1 : 0;
    (void)row;
    while (index >= o->count[file]) {
        index -= o->count[file++];
    }
    const uint8_t *record = o->records[file] + (size_t)index * RECORD;
    rp_pixels_read(x, record + 1, PIXELS);
    if (label) {
        *label = record[0];
    }
    return RP_OK;
}

const rp_data_kind rp_data_cifar10 = {
    .name = "cifar10",
    .source = "CIFAR-10 binary version, Krizhevsky 2009; the usual mean and deviation",
    .open = open_set,
    .read = read_sample,
};
