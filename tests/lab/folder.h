/* A temporary folder with folders in it, and an arena. */
#ifndef RP_TESTS_LAB_FOLDER_H
#define RP_TESTS_LAB_FOLDER_H

#include "expect.h"

#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"

static rp_arena arena;
static char folder[64];

static inline int setup(void **state) {
    (void)state;
    rp_arena_init(&arena, "test", 0);
    (void)snprintf(folder, sizeof folder, "/tmp/rp-lab-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_one(const char *path, const struct stat *status, int type,
                             struct FTW *where) {
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

static inline int teardown(void **state) {
    (void)state;
    rp_arena_finish(&arena);
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Valid until the test ends. */
static inline const char *in_folder(const char *name) {
    char *path = NULL;
    expect_ok(rp_arena_printf(&arena, &path, "%s/%s", folder, name));
    return path;
}

/* Makes the folders on the way. */
static inline const char *write_file(const char *name, const char *text) {
    const char *path = in_folder(name);
    char part[512];
    for (size_t i = strlen(folder) + 1; path[i]; i++) {
        assert_true(i < sizeof part);
        if (path[i] == '/') {
            (void)snprintf(part, i + 1, "%s", path);
            assert_true(mkdir(part, 0777) == 0 || errno == EEXIST);
        }
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) == EOF, 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

#endif
