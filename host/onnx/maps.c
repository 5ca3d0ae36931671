#include "onnx/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"

typedef struct {
    const char *location;
    void *bytes;
    size_t count;
} mapping;

struct rp_onnx_maps {
    rp_arena *arena;
    const char *model; /* path; NULL: no folder */
    uint32_t count;
    mapping file[RP_ONNX_FILES_MAX];
};

rp_err rp_onnx_maps_new(rp_arena *arena, const char *model, rp_onnx_maps **out) {
    rp_err err = RP_ARENA_NEW(arena, 1, out);
    if (err == RP_OK) {
        (*out)->arena = arena;
        (*out)->model = model;
    }
    return err;
}

/* Maps an open file and closes its descriptor. */
static rp_err map_open(rp_onnx_maps *maps, int fd, const char *name, const char *location,
                       const uint8_t **bytes, size_t *count) {
    struct stat facts;
    void *at = MAP_FAILED;
    if (fstat(fd, &facts) == 0 && !S_ISREG(facts.st_mode)) {
        (void)close(fd);
        return rp_fail(RP_ERR_FORMAT, "%s: %s: not a regular file", maps->model, name);
    }
    const size_t size = (size_t)facts.st_size;
    if (size > 0) {
        at = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    (void)close(fd);
    if (size > 0 && at == MAP_FAILED) {
        return rp_fail(RP_ERR_IO, "%s: %s: cannot be mapped: %s", maps->model, name,
                       strerror(errno));
    }
    maps->file[maps->count++] =
        (mapping){.location = location, .bytes = size > 0 ? at : NULL, .count = size};
    *bytes = size > 0 ? at : (const uint8_t *)"";
    *count = size;
    return RP_OK;
}

rp_err rp_onnx_maps_model(rp_onnx_maps *maps, const uint8_t **bytes, size_t *count) {
    const char *why = "";
    const int fd = rp_input_open(maps->model, &why);
    if (fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", maps->model, why);
    }
    return map_open(maps, fd, "the file", "", bytes, count);
}

/* ---- external data --------------------------------------------------------------------------- */

static rp_err fail_location(const rp_onnx_maps *maps, const char *tensor, const char *location,
                            const char *problem) {
    return rp_fail(RP_ERR_FORMAT, "%s: tensor %s: its data are in '%.300s', which %s", maps->model,
                   tensor, location, problem);
}

/* Opens the folder of the model's file. */
static int open_folder(const rp_onnx_maps *maps) {
    const char *slash = strrchr(maps->model, '/');
    char folder[4096];
    const size_t length = slash ? (size_t)(slash - maps->model) + 1 : 0;
    if (length >= sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(folder, maps->model, length);
    folder[length] = '\0';
    return open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Opens a path below `folder`, part by part, without a symbolic link. Closes the folder. Returns -1
 * with errno, which is ELOOP or ENOTDIR for a link. */
static int open_below(int folder, const char *location) {
    const char *at = location;
    int here = folder;
    for (;;) {
        char part[256];
        const size_t length = strcspn(at, "/");
        const bool last = at[length] == '\0';
        if (length >= sizeof part) {
            errno = ENAMETOOLONG;
            (void)close(here);
            return -1;
        }
        memcpy(part, at, length);
        part[length] = '\0';
        const int next = openat(
            here, part, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (last ? O_NONBLOCK : O_DIRECTORY));
        const int problem = errno;
        (void)close(here);
        errno = problem;
        if (next < 0 || last) {
            return next;
        }
        here = next;
        at += length + 1;
    }
}

/* Whether each part of the path is a name: not empty, not "." and not "..". */
static bool stays_inside(const char *location) {
    for (const char *at = location;;) {
        const size_t length = strcspn(at, "/");
        if (length == 0 || (length == 1 && at[0] == '.') ||
            (length == 2 && at[0] == '.' && at[1] == '.')) {
            return false;
        }
        if (at[length] == '\0') {
            return true;
        }
        at += length + 1;
    }
}

rp_err rp_onnx_maps_external(rp_onnx_maps *maps, const char *tensor, const char *location,
                             const uint8_t **bytes, size_t *count) {
    for (uint32_t i = 0; i < maps->count; i++) {
        if (strcmp(maps->file[i].location, location) == 0 && location[0]) {
            *bytes = maps->file[i].count > 0 ? maps->file[i].bytes : (const uint8_t *)"";
            *count = maps->file[i].count;
            return RP_OK;
        }
    }
    if (!maps->model) {
        return rp_fail(RP_ERR_FORMAT, "tensor %s: external data without a folder", tensor);
    }
    if (!stays_inside(location)) {
        return fail_location(maps, tensor, location, "is outside of the model's folder");
    }
    if (maps->count == RP_ONNX_FILES_MAX) {
        return rp_fail(RP_ERR_LIMIT, "%s: more than %d files of external data", maps->model,
                       RP_ONNX_FILES_MAX - 1);
    }
    int fd = open_folder(maps);
    fd = fd >= 0 ? open_below(fd, location) : fd;
    if (fd < 0 && errno == ELOOP) {
        return fail_location(maps, tensor, location, "is a symbolic link; expected a file");
    }
    if (fd < 0) {
        return fail_location(maps, tensor, location,
                             errno == ENOENT    ? "does not exist"
                             : errno == ENOTDIR ? "is not below folders of the model's folder"
                                                : "cannot be opened");
    }
    char *kept = NULL;
    char what[RP_ERR_MESSAGE_BYTES];
    const rp_err err = rp_arena_string(maps->arena, location, &kept);
    if (err != RP_OK) {
        (void)close(fd);
        return err;
    }
    (void)snprintf(what, sizeof what, "tensor %s: its data in '%.300s'", tensor, location);
    return map_open(maps, fd, what, kept, bytes, count);
}

void rp_onnx_maps_close(rp_onnx_maps *maps) {
    for (uint32_t i = 0; maps && i < maps->count; i++) {
        if (maps->file[i].bytes) {
            (void)munmap(maps->file[i].bytes, maps->file[i].count);
        }
    }
    if (maps) {
        maps->count = 0;
    }
}
