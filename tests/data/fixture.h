/* A temporary folder with files, and data sets opened from a line of YAML. */
#ifndef RP_TESTS_DATA_FIXTURE_H
#define RP_TESTS_DATA_FIXTURE_H

#include "folder.h"

#include <zlib.h>

#include "data/data.h"

static inline void write_gz(const char *name, const void *bytes, size_t count) {
    gzFile file = gzopen(in_folder(name), "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, (unsigned)count), (int)count);
    assert_int_equal(gzclose(file), Z_OK);
}

/* `keys` with every % replaced by the folder, as `data:` of a run file. */
static inline rp_err open_for(rp_data *data, const char *keys, const rp_data_input *input,
                              bool class_target, uint64_t seed) {
    char text[512];
    size_t used = 0;
    for (; *keys && used < sizeof text - sizeof folder; keys++) {
        if (*keys == '%') {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s", folder);
        } else {
            text[used++] = *keys;
        }
    }
    rp_node *node = NULL;
    expect_ok(rp_config_read_text(&arena, text, used, "run.yaml", &node));
    return rp_data_open(&arena, data, node, input, class_target, seed);
}

static inline rp_err open_seeded(rp_data *data, const char *keys, const rp_shape *input,
                                 bool class_target, uint64_t seed) {
    const rp_data_input stated = {.shape = input ? *input : (rp_shape){0}};
    return open_for(data, keys, input ? &stated : NULL, class_target, seed);
}

static inline rp_err open_data(rp_data *data, const char *keys, const rp_shape *input,
                               bool class_target) {
    return open_seeded(data, keys, input, class_target, 7);
}

static inline void expect_part(const char *part) {
    if (!strstr(rp_err_message(), part)) {
        fail_msg("'%s' is not in '%s'", part, rp_err_message());
    }
}

/* Path of a folder of real data, or NULL with a printed reason. */
static inline const char *real_data(const char *name) {
    static char path[512];
    const char *source = getenv("RP_SOURCE_DIR");
    (void)snprintf(path, sizeof path, "%s/../shared/data/%s", source ? source : ".", name);
    if (access(path, R_OK) != 0) {
        print_message("SKIP: no real data at %s\n", path);
        return NULL;
    }
    return path;
}

#endif
