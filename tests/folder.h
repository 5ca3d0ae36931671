/* A temporary folder and an arena, for tests of files. */
#ifndef RP_TESTS_FOLDER_H
#define RP_TESTS_FOLDER_H

#include "expect.h"

#include <dirent.h>
#include <unistd.h>

#include "base/arena.h"

static rp_arena arena;
static char folder[64];

static inline int setup_below(const char *parent) {
    rp_arena_init(&arena, "test", 0);
    (void)snprintf(folder, sizeof folder, "%s/rp-run-XXXXXX", parent);
    return mkdtemp(folder) ? 0 : -1;
}

static inline int setup(void **state) {
    (void)state;
    return setup_below("/tmp");
}

static inline const char *in_folder(const char *name) {
    static char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static inline int teardown(void **state) {
    (void)state;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_name[0] != '.') {
            (void)unlink(in_folder(entry->d_name));
        }
    }
    if (dir) {
        (void)closedir(dir);
    }
    rp_arena_finish(&arena);
    return rmdir(folder);
}

/* The file's bytes and a zero behind them; valid until the next call. */
static inline const char *slurp(const char *name, size_t *bytes) {
    static char text[1 << 20];
    FILE *file = fopen(in_folder(name), "rb");
    assert_non_null(file);
    const size_t count = fread(text, 1, sizeof text - 1, file);
    assert_int_equal(fclose(file), 0);
    text[count] = '\0';
    if (bytes) {
        *bytes = count;
    }
    return text;
}

static inline void append(const char *name, const void *bytes, size_t count) {
    FILE *file = fopen(in_folder(name), "ab");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

#endif
