/* A temporary folder and an arena, for tests of files. */
#ifndef RP_TESTS_FOLDER_H
#define RP_TESTS_FOLDER_H

#include "expect.h"

#include <ftw.h>
#include <sys/stat.h>
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

/* Valid until the eighth call after this one. */
static inline const char *in_folder(const char *name) {
    static char path[8][512];
    static uint32_t turn;
    char *out = path[turn++ % 8];
    (void)snprintf(out, sizeof *path, "%s/%s", folder, name);
    return out;
}

static inline int remove_entry(const char *path, const struct stat *status, int type,
                               struct FTW *where) {
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

/* With everything below it. */
static inline int remove_tree(const char *path) {
    return nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static inline int teardown(void **state) {
    (void)state;
    rp_arena_finish(&arena);
    return remove_tree(folder);
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

/* Makes the folders on the way. Returns the path, as in_folder(). */
static inline const char *store(const char *name, const char *mode, const void *bytes,
                                size_t count) {
    const char *path = in_folder(name);
    for (const char *at = name; (at = strchr(at, '/')); at++) {
        char part[512];
        (void)snprintf(part, sizeof part, "%s/%.*s", folder, (int)(at - name), name);
        (void)mkdir(part, 0755); /* it may be there */
    }
    FILE *file = fopen(path, mode);
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    return path;
}

static inline void append(const char *name, const void *bytes, size_t count) {
    (void)store(name, "ab", bytes, count);
}

static inline const char *write_file(const char *name, const void *bytes, size_t count) {
    return store(name, "wb", bytes, count);
}

static inline const char *write_text(const char *name, const char *text) {
    return write_file(name, text, strlen(text));
}

#endif
