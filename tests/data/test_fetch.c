#include "fixture.h"

#include "data/fetch.h"

enum { RECORD = 3073, BLOCK = 512 };

static char old_path[4096];

/* A program `curl` of our own, first in PATH: takes what lies in $RP_TEST_FROM. */
static void fake_curl(const char *from) {
    static const char script[] =
        "#!/bin/sh\n"
        "while [ $# -gt 1 ]; do [ \"$1\" = --output ] && out=$2; shift; done\n"
        "case $1 in https://*) ;; *) exit 3;; esac\n"
        "exec cp \"$RP_TEST_FROM/${1##*/}\" \"$out\" 2>/dev/null\n";
    char path[4400];
    assert_int_equal(mkdir(path_in_folder("bin"), 0700), 0);
    write_file("bin/curl", script, sizeof script - 1);
    assert_int_equal(chmod(path_in_folder("bin/curl"), 0700), 0);
    (void)snprintf(path, sizeof path, "%s:%s", path_in_folder("bin"), old_path);
    setenv("PATH", path, 1);
    setenv("RP_TEST_FROM", from, 1);
}

static int keep_path(void **state) {
    (void)snprintf(old_path, sizeof old_path, "%s", getenv("PATH"));
    return setup(state);
}

static int restore_path(void **state) {
    setenv("PATH", old_path, 1);
    return teardown(state);
}

static void to_folder(char target[256]) {
    (void)snprintf(target, 256, "%s", path_in_folder("to"));
}

static void sets_without_files(void **state) {
    (void)state;
    expect_err(rp_data_fetch("glyphs", folder), RP_ERR_USAGE);
    expect_part("'glyphs' has no files to fetch; these have: mnist fashion-mnist cifar10");
    expect_err(rp_data_fetch("mnist", "/proc/none/x"), RP_ERR_IO);
}

static void no_curl(void **state) {
    (void)state;
    char target[256];
    to_folder(target);
    setenv("PATH", folder, 1);
    expect_err(rp_data_fetch("mnist", target), RP_ERR_IO);
    expect_part("the program `curl` can not be started: No such file or directory; by hand: get "
                "train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz t10k-images-idx3-ubyte.gz "
                "t10k-labels-idx1-ubyte.gz from https://");
    expect_part(target);
    assert_int_equal(rp_err_exit_code(RP_ERR_IO), 2);
}

static void offline(void **state) {
    (void)state;
    char target[256];
    to_folder(target);
    fake_curl("/nowhere");
    expect_err(rp_data_fetch("cifar10", target), RP_ERR_IO);
    expect_part("cifar-10-binary.tar.gz can not be fetched (curl ended with 1); by hand: get "
                "cifar-10-binary.tar.gz from https://www.cs.toronto.edu/~kriz/ and unpack it in");
    assert_int_equal(rmdir(target), 0); /* nothing was left there */
}

static void wrong_bytes(void **state) {
    (void)state;
    char target[256];
    char from[256];
    to_folder(target);
    (void)snprintf(from, sizeof from, "%s", folder);
    write_file("train-images-idx3-ubyte.gz", "evil", 4);
    fake_curl(from);
    expect_err(rp_data_fetch("fashion-mnist", target), RP_ERR_FORMAT);
    expect_part("train-images-idx3-ubyte.gz is not the official file: 4 bytes");
    assert_int_equal(rmdir(target), 0);
}

static void official_files(void **state) {
    (void)state;
    rp_data data;
    char target[256];
    char keys[300];
    struct stat before;
    struct stat after;
    const char *real = real_data("mnist");
    if (!real) {
        skip();
    }
    to_folder(target);
    fake_curl(real);
    expect_ok(rp_data_fetch("mnist", target));
    (void)snprintf(keys, sizeof keys, "{set: mnist, path: %s}", target);
    expect_ok(open_data(&data, keys, NULL, true));
    rp_data_close(&data);
    /* A second time nothing is fetched. */
    stat(path_in_folder("to/t10k-labels-idx1-ubyte.gz"), &before);
    setenv("PATH", "/nowhere", 1);
    expect_ok(rp_data_fetch("mnist", target));
    stat(path_in_folder("to/t10k-labels-idx1-ubyte.gz"), &after);
    assert_int_equal(before.st_ino, after.st_ino);
}

/* ---- the archive ---- */

static size_t add_member(unsigned char *tar, const char *name, size_t bytes) {
    memset(tar, 0, BLOCK);
    (void)snprintf((char *)tar, 100, "%s", name);
    (void)snprintf((char *)tar + 124, 12, "%011o", (unsigned)bytes);
    tar[156] = '0';
    memset(tar + BLOCK, 3, bytes);
    size_t end = BLOCK + bytes;
    size_t padded = (end + BLOCK - 1) / BLOCK * BLOCK;
    memset(tar + end, 0, padded - end);
    return padded;
}

static size_t make_archive(unsigned char *tar, size_t bytes) {
    size_t used = add_member(tar, "cifar-10-batches-bin/", 0);
    used += add_member(tar + used, "cifar-10-batches-bin/readme.html", 700);
    for (int i = 1; i <= 5; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "cifar-10-batches-bin/data_batch_%d.bin", i);
        used += add_member(tar + used, name, bytes);
    }
    used += add_member(tar + used, "cifar-10-batches-bin/test_batch.bin", bytes);
    memset(tar + used, 0, 2 * BLOCK);
    return used + 2 * BLOCK;
}

static void archive_is_unpacked(void **state) {
    (void)state;
    static unsigned char tar[64 * 1024];
    char archive[256];
    rp_data data;
    size_t count = make_archive(tar, 2 * RECORD);
    write_gz("c.tar.gz", tar, count);
    (void)snprintf(archive, sizeof archive, "%s", path_in_folder("c.tar.gz"));
    expect_ok(rp_data_unpack_cifar10(archive, folder));
    expect_ok(open_data(&data, "{set: cifar10, path: %}", NULL, true));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 10);
    rp_data_close(&data);
    for (size_t cut = 0; cut < count - 3 * BLOCK; cut += 1500) {
        write_gz("c.tar.gz", tar, cut);
        expect_err(rp_data_unpack_cifar10(archive, folder), RP_ERR_FORMAT);
        expect_part("cut off or damaged");
    }
    count = make_archive(tar, RECORD + 1);
    write_gz("c.tar.gz", tar, count);
    expect_err(rp_data_unpack_cifar10(archive, folder), RP_ERR_FORMAT);
    expect_part("has 3074 bytes, not records of 3073");
    expect_err(rp_data_unpack_cifar10("/nowhere/c.tar.gz", folder), RP_ERR_IO);
    count = make_archive(tar, RECORD);
    write_gz("c.tar.gz", tar, count);
    expect_err(rp_data_unpack_cifar10(archive, "/nowhere"), RP_ERR_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sets_without_files, keep_path, restore_path),
        cmocka_unit_test_setup_teardown(no_curl, keep_path, restore_path),
        cmocka_unit_test_setup_teardown(offline, keep_path, restore_path),
        cmocka_unit_test_setup_teardown(wrong_bytes, keep_path, restore_path),
        cmocka_unit_test_setup_teardown(official_files, keep_path, restore_path),
        cmocka_unit_test_setup_teardown(archive_is_unpacked, keep_path, restore_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
