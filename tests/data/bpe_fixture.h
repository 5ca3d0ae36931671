/* Tokenisers in the temporary folder, made from those of tests/golden/bpe. */
#ifndef RP_TESTS_DATA_BPE_FIXTURE_H
#define RP_TESTS_DATA_BPE_FIXTURE_H

#include "fixture.h"

static inline const char *golden(const char *name) {
    static char path[512];
    const char *root = getenv("RP_SOURCE_DIR");
    (void)snprintf(path, sizeof path, "%s/tests/golden/bpe/%s", root ? root : ".", name);
    return path;
}

/* Copies the file at `from` to `to` in the folder, with a text that is in it replaced; NULL: as it
 * is. */
static inline void copy_with(const char *from, const char *to, const char *what, const char *by) {
    static char text[1 << 16];
    FILE *file = fopen(from, "rb");
    assert_non_null(file);
    const size_t count = fread(text, 1, sizeof text - 1, file);
    assert_int_equal(fclose(file), 0);
    text[count] = '\0';
    const char *place = what ? strstr(text, what) : NULL;
    assert_int_equal(place != NULL, what != NULL);
    file = fopen(in_folder(to), "wb");
    assert_non_null(file);
    const size_t before = place ? (size_t)(place - text) : count;
    assert_int_equal(fwrite(text, 1, before, file), before);
    if (place) {
        assert_true(fprintf(file, "%s%s", by, place + strlen(what)) > 0);
    }
    assert_int_equal(fclose(file), 0);
}

/* A golden file as bpe.json. */
static inline void write_bpe(const char *name, const char *what, const char *by) {
    copy_with(golden(name), "bpe.json", what, by);
}

#endif
