#include "fixture.h"

#include <dirent.h>

#include "data/fetch.h"

enum { RECORD = 3073, BLOCK = 512 };

static void to_folder(char target[256]) {
    (void)snprintf(target, 256, "%s", in_folder("to"));
}

/* A file: address of a folder. */
static const char *address_of(const char *path) {
    static char address[4200];
    (void)snprintf(address, sizeof address, "file://%s", path);
    return address;
}

static void sets_without_files(void **state) {
    (void)state;
    expect_err(rp_data_fetch("glyphs", NULL, folder), RP_ERR_USAGE);
    expect_part(
        "'glyphs' has no files to fetch; expected one of: mnist fashion-mnist cifar10 cifar100");
    expect_err(rp_data_fetch("mnist", NULL, "/proc/none/x"), RP_ERR_IO);
    expect_err(rp_data_unpack("mnist", "x", folder), RP_ERR_USAGE);
    assert_string_equal(rp_data_fetch_name(3), "cifar100");
    assert_null(rp_data_fetch_name(4));
}

static void not_there(void **state) {
    (void)state;
    char target[256];
    to_folder(target);
    expect_err(rp_data_fetch("mnist", address_of("/nowhere"), target), RP_ERR_IO);
    expect_part(
        "train-images-idx3-ubyte.gz cannot be fetched: Couldn't open file /nowhere/train-im");
    expect_part(
        "; to do it by hand, download train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz "
        "t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz from https://");
    expect_part(target);
    assert_int_equal(rp_err_exit_code(RP_ERR_IO), 2);
    expect_err(rp_data_fetch("cifar100", address_of("/nowhere"), target), RP_ERR_IO);
    expect_part("; to do it by hand, download cifar-100-binary.tar.gz from "
                "https://www.cs.toronto.edu/~kriz/ and "
                "unpack it in");
    expect_err(rp_data_fetch("cifar10", "ftp://127.0.0.1", target), RP_ERR_IO);
    expect_part("cannot be fetched: Protocol \"ftp\"");
    assert_int_equal(rmdir(target), 0); /* nothing was left there */
}

static void wrong_bytes(void **state) {
    (void)state;
    char target[256];
    to_folder(target);
    write_file("train-images-idx3-ubyte.gz", "evil", 4);
    expect_err(rp_data_fetch("fashion-mnist", address_of(folder), target), RP_ERR_FORMAT);
    expect_part("train-images-idx3-ubyte.gz is not the official file: 4 bytes");
    assert_int_equal(rmdir(target), 0);
    /* More than the official file has: it ends there. */
    assert_int_equal(truncate(in_folder("train-images-idx3-ubyte.gz"), 30000000), 0);
    expect_err(rp_data_fetch("fashion-mnist", address_of(folder), target), RP_ERR_IO);
    expect_part("it is longer than the official file of 26421880 bytes");
    assert_int_equal(rmdir(target), 0);
}

static void official_files(void **state) {
    (void)state;
    rp_data data;
    char target[256];
    char keys[300];
    char real_path[4096];
    struct stat before;
    struct stat after;
    const char *real = real_data("mnist");
    if (!real || !realpath(real, real_path)) {
        skip();
    }
    to_folder(target);
    expect_ok(rp_data_fetch("mnist", address_of(real_path), target));
    (void)snprintf(keys, sizeof keys, "{set: mnist, path: %s}", target);
    expect_ok(open_data(&data, keys, NULL, true));
    rp_data_close(&data);
    /* A second time nothing is fetched. */
    stat(in_folder("to/t10k-labels-idx1-ubyte.gz"), &before);
    expect_ok(rp_data_fetch("mnist", address_of("/nowhere"), target));
    stat(in_folder("to/t10k-labels-idx1-ubyte.gz"), &after);
    assert_int_equal(before.st_ino, after.st_ino);
}

/* ---- the archive ---- */

static size_t add_member(unsigned char *tar, const char *name, size_t bytes) {
    unsigned sum = 0;
    memset(tar, 0, BLOCK);
    (void)snprintf((char *)tar, 100, "%s", name);
    (void)snprintf((char *)tar + 100, 8, "0000644");
    (void)snprintf((char *)tar + 124, 12, "%011o", (unsigned)bytes);
    memset(tar + 148, ' ', 8);
    tar[156] = bytes > 0 ? '0' : '5';
    memcpy(tar + 257, "ustar\00000", 8);
    for (size_t i = 0; i < BLOCK; i++) {
        sum += tar[i];
    }
    (void)snprintf((char *)tar + 148, 8, "%06o", sum);
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
    (void)snprintf(archive, sizeof archive, "%s", in_folder("c.tar.gz"));
    expect_ok(rp_data_unpack("cifar10", archive, folder));
    expect_ok(open_data(&data, "{set: cifar10, path: %}", NULL, true));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 10);
    rp_data_close(&data);
    for (size_t cut = 0; cut < count - 3 * BLOCK; cut += 1500) {
        write_gz("c.tar.gz", tar, cut);
        expect_err(rp_data_unpack("cifar10", archive, folder), RP_ERR_FORMAT);
        expect_part("truncated or damaged");
    }
    count = make_archive(tar, RECORD + 1);
    write_gz("c.tar.gz", tar, count);
    expect_err(rp_data_unpack("cifar10", archive, folder), RP_ERR_FORMAT);
    expect_part("has 3074 bytes, expected a multiple of 3073");
    expect_err(rp_data_unpack("cifar10", "/nowhere/c.tar.gz", folder), RP_ERR_IO);
    count = make_archive(tar, RECORD);
    write_gz("c.tar.gz", tar, count);
    expect_err(rp_data_unpack("cifar10", archive, "/nowhere"), RP_ERR_IO);
}

/* Four files, two of them text; names that lead elsewhere are not followed. */
static void archive_of_cifar100(void **state) {
    (void)state;
    static unsigned char tar[64 * 1024];
    char archive[256];
    rp_data data;
    size_t used = add_member(tar, "cifar-100-binary/../../evil.bin", 3074);
    used += add_member(tar + used, "cifar-100-binary/fine_label_names.txt", 9);
    used += add_member(tar + used, "elsewhere/train.bin", 3074);
    used += add_member(tar + used, "cifar-100-binary/train.bin", 4 * 3074);
    used += add_member(tar + used, "cifar-100-binary/test.bin", 3074);
    used += add_member(tar + used, "cifar-100-binary/coarse_label_names.txt", 5);
    memset(tar + used, 0, 2 * BLOCK);
    write_gz("c.tar.gz", tar, used + 2 * BLOCK);
    (void)snprintf(archive, sizeof archive, "%s", in_folder("c.tar.gz"));
    mkdir(in_folder("out"), 0700);
    expect_ok(rp_data_unpack("cifar100", archive, in_folder("out")));
    DIR *dir = opendir(in_folder("out"));
    int files = 0;
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        files += entry->d_name[0] != '.';
    }
    (void)closedir(dir);
    assert_int_equal(files, 4);
    expect_ok(open_data(&data, "{set: cifar100, path: %/out}", NULL, true));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 4);
    rp_data_close(&data);
    assert_int_not_equal(access(in_folder("evil.bin"), F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sets_without_files, setup, teardown),
        cmocka_unit_test_setup_teardown(not_there, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(official_files, setup, teardown),
        cmocka_unit_test_setup_teardown(archive_is_unpacked, setup, teardown),
        cmocka_unit_test_setup_teardown(archive_of_cifar100, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
