/* Folders with files, bundles made of them, and keys, for tests of updates. */
#ifndef RP_TESTS_UPDATE_TREE_H
#define RP_TESTS_UPDATE_TREE_H

#include "folder.h"

#include <fcntl.h>

#include "update/ab.h"

static rp_signing_pair pair;

/* In memory where that can be: a test of power cuts syncs some thousand times. */
static inline int tree_setup(void **state) {
    (void)state;
    if (setup_below(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") != 0 ||
        rp_signing_new(folder) != RP_OK) {
        return -1;
    }
    return rp_signing_read(folder, &pair) == RP_OK ? 0 : -1;
}

static inline void put_file(const char *name, const char *text, mode_t mode) {
    assert_int_equal(chmod(write_text(name, text), mode), 0);
}

/* A bundle NAME of version `version`, whose files say which one they are of. */
static inline void make_bundle(const char *name, const char *board, uint64_t version) {
    char text[64];
    char out[512];
    char tree[512];
    (void)snprintf(text, sizeof text, "software %d\n", (int)version);
    put_file("tree/bin/ringpipe-agent", text, 0755);
    put_file("tree/share/models/mlp.yaml", text, 0644);
    (void)snprintf(out, sizeof out, "%s", in_folder(name));
    (void)snprintf(tree, sizeof tree, "%s", in_folder("tree"));
    expect_ok(rp_bundle_write(out, tree, board, version, "0.1.0", &pair));
}

static inline void expect_said(rp_err got, rp_err wanted, const char *said) {
    if (got != wanted || !strstr(rp_err_message(), said)) {
        fail_msg("got %d '%s', expected %d '%s'", (int)got, rp_err_message(), (int)wanted, said);
    }
}

#endif
