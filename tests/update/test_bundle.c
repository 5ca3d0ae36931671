#include "tree.h"

#include <sodium.h>

/* Reads a bundle and unpacks it into the new folder `to`. */
static rp_err read_and_unpack(const char *name, const uint8_t *key, rp_bundle *out) {
    char to[512];
    (void)remove_tree(in_folder("to"));
    (void)snprintf(to, sizeof to, "%s", in_folder("to"));
    assert_int_equal(mkdir(to, 0755), 0);
    FILE *file = fopen(in_folder(name), "rb");
    assert_non_null(file);
    rp_err err = rp_bundle_read(&arena, file, name, key, out);
    err = err == RP_OK ? rp_bundle_unpack(out, file, name, to) : err;
    (void)fclose(file);
    return err;
}

static void what_is_packed_comes_out(void **state) {
    (void)state;
    rp_bundle bundle;
    struct stat st;
    make_bundle("b", "pocl-cpu", 7);
    expect_ok(read_and_unpack("b", pair.public, &bundle));
    assert_string_equal(bundle.board, "pocl-cpu");
    assert_string_equal(bundle.software, "0.1.0");
    assert_int_equal(bundle.version, 7);
    assert_int_equal(bundle.count, 2);
    assert_string_equal(bundle.file[0].path, "bin/ringpipe-agent");
    assert_string_equal(slurp("to/bin/ringpipe-agent", NULL), "software 7\n");
    assert_string_equal(slurp("to/share/models/mlp.yaml", NULL), "software 7\n");
    assert_int_equal(stat(in_folder("to/bin/ringpipe-agent"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0755);
    assert_int_equal(stat(in_folder("to/share/models/mlp.yaml"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0644);
}

/* The same files give the same bytes: what is signed can be made again. */
static void a_bundle_is_reproducible(void **state) {
    (void)state;
    static char one[1 << 16];
    size_t bytes;
    size_t again;
    make_bundle("b", "pocl-cpu", 7);
    memcpy(one, slurp("b", &bytes), sizeof one);
    make_bundle("c", "pocl-cpu", 7);
    assert_memory_equal(slurp("c", &again), one, bytes);
    assert_int_equal(again, bytes);
}

static void another_key_is_refused(void **state) {
    (void)state;
    rp_bundle bundle;
    uint8_t other[RP_SIGNING_BYTES];
    uint8_t secret[2 * RP_SIGNING_BYTES];
    make_bundle("b", "pocl-cpu", 7);
    (void)crypto_sign_keypair(other, secret);
    expect_said(read_and_unpack("b", other, &bundle), RP_ERR_REFUSED, "is not signed by the key");
}

static void write_changed(const char *bytes, size_t count, size_t at, int bit) {
    FILE *file = fopen(in_folder("bad"), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    if (at < count) {
        assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
        assert_int_not_equal(fputc((unsigned char)bytes[at] ^ 1 << bit, file), EOF);
    }
    assert_int_equal(fclose(file), 0);
}

/* Every bit of a small bundle, and every length. */
static void what_was_changed_is_refused(void **state) {
    (void)state;
    static char whole[1 << 16];
    size_t bytes;
    rp_bundle bundle;
    make_bundle("b", "pocl-cpu", 7);
    memcpy(whole, slurp("b", &bytes), sizeof whole);
    assert_true(bytes < sizeof whole);
    for (size_t at = 0; at < bytes; at++) {
        write_changed(whole, bytes, at, (int)(at % 8));
        const rp_err err = read_and_unpack("bad", pair.public, &bundle);
        if (err != RP_ERR_REFUSED && err != RP_ERR_FORMAT) {
            fail_msg("byte %zu: got %d", at, (int)err);
        }
    }
    for (size_t count = 0; count < bytes; count++) {
        write_changed(whole, count, bytes, 0);
        expect_err(read_and_unpack("bad", pair.public, &bundle), RP_ERR_FORMAT);
    }
    whole[bytes] = 'x';
    write_changed(whole, bytes + 1, bytes + 1, 0);
    expect_said(read_and_unpack("bad", pair.public, &bundle), RP_ERR_FORMAT,
                "bytes after its last file");
}

static void paths_stay_inside(void **state) {
    (void)state;
    assert_true(rp_bundle_is_path("bin/ringpipe-agent"));
    assert_true(rp_bundle_is_path("a..b/.c"));
    static const char *const bad[] = {"",     "/etc/passwd", "..",       "../x", "a/../b",
                                      "a//b", "a/",          "./a",      "a/.",  "a b",
                                      "a\nb", "a\\b",        "a/..b/..", "ü"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (rp_bundle_is_path(bad[i])) {
            fail_msg("'%s' is taken", bad[i]);
        }
    }
}

/* A manifest that is signed, and wrong all the same. */
static rp_err read_signed(const char *manifest) {
    uint8_t text[4096] = "ringpipe bundle 1\n";
    uint8_t signature[RP_SIGNATURE_BYTES];
    const size_t purpose = strlen((const char *)text);
    const size_t bytes = strlen(manifest);
    const uint8_t size[4] = {(uint8_t)bytes, (uint8_t)(bytes >> 8), 0, 0};
    rp_bundle bundle;
    memcpy(text + purpose, manifest, bytes);
    (void)crypto_sign_detached(signature, NULL, text, purpose + bytes, pair.secret);
    (void)unlink(in_folder("bad"));
    append("bad", "RPBUNDLE1\n", 10);
    append("bad", signature, sizeof signature);
    append("bad", size, sizeof size);
    append("bad", manifest, bytes);
    return read_and_unpack("bad", pair.public, &bundle);
}

#define HEAD "board: x\nversion: 1\nsoftware: y\nfiles:\n"
#define SUM "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define FILE_OF(path) "  - {path: \"" path "\", bytes: 0, mode: 644, sha256: \"" SUM "\"}\n"

static void a_wrong_manifest_is_told(void **state) {
    (void)state;
    expect_ok(read_signed(HEAD FILE_OF("a")));
    expect_said(read_signed(HEAD FILE_OF("../a")), RP_ERR_USAGE, "not a valid path");
    expect_said(read_signed(HEAD FILE_OF("a") FILE_OF("a")), RP_ERR_USAGE, "not a valid path");
    expect_said(read_signed(HEAD FILE_OF("a") FILE_OF("a/b")), RP_ERR_USAGE, "not a valid path");
    expect_said(read_signed(HEAD FILE_OF("a/b") FILE_OF("a")), RP_ERR_USAGE, "not a valid path");
    expect_said(read_signed("board: x\nversion: 0\nsoftware: y\nfiles:\n" FILE_OF("a")),
                RP_ERR_USAGE, "version");
    expect_said(read_signed("board: x\nversion: 1\nsoftware: y\nfiles: []\n"), RP_ERR_USAGE,
                "files");
    expect_said(read_signed(HEAD "  - {path: a, bytes: 0, mode: 777, sha256: \"" SUM "\"}\n"),
                RP_ERR_USAGE, "mode");
    expect_said(read_signed(HEAD "  - {path: a, bytes: 0, mode: 644, sha256: \"e3\"}\n"),
                RP_ERR_USAGE, "sha256");
    expect_said(
        read_signed(HEAD "  - {path: a, bytes: 1073741825, mode: 644, sha256: \"" SUM "\"}\n"),
        RP_ERR_USAGE, "bytes");
}

static void a_folder_that_no_bundle_takes(void **state) {
    (void)state;
    char out[512];
    char tree[512];
    (void)snprintf(out, sizeof out, "%s", in_folder("b"));
    (void)snprintf(tree, sizeof tree, "%s", in_folder("tree"));
    assert_int_equal(mkdir(tree, 0755), 0);
    expect_said(rp_bundle_write(out, tree, "x", 1, "y", &pair), RP_ERR_USAGE, "no file");
    put_file("tree/a b", "x", 0644);
    expect_said(rp_bundle_write(out, tree, "x", 1, "y", &pair), RP_ERR_USAGE, "expected names of");
    assert_int_equal(unlink(in_folder("tree/a b")), 0);
    assert_int_equal(symlink("/etc/passwd", in_folder("tree/link")), 0);
    expect_said(rp_bundle_write(out, tree, "x", 1, "y", &pair), RP_ERR_USAGE, "files and folders");
    assert_int_equal(access(out, F_OK), -1);
    append("b", "mine", 4);
    expect_said(rp_bundle_write(out, tree, "x", 1, "y", &pair), RP_ERR_USAGE, "is not a bundle");
    assert_string_equal(slurp("b", NULL), "mine");
}

static void keys_are_looked_after(void **state) {
    (void)state;
    rp_signing_pair again;
    uint8_t public[RP_SIGNING_BYTES];
    expect_said(rp_signing_new(folder), RP_ERR_USAGE, "not overwritten");
    expect_ok(rp_signing_read(folder, &again));
    assert_memory_equal(&again, &pair, sizeof pair);
    expect_ok(rp_signing_read_public(folder, public));
    assert_memory_equal(public, pair.public, sizeof public);
    assert_int_equal(chmod(in_folder("update-secret.key"), 0640), 0);
    expect_said(rp_signing_read(folder, &again), RP_ERR_REFUSED, "other users may read it");
    expect_said(rp_signing_read("/nonexistent", &again), RP_ERR_IO, "bundle --new-key");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_packed_comes_out, tree_setup, teardown),
        cmocka_unit_test_setup_teardown(a_bundle_is_reproducible, tree_setup, teardown),
        cmocka_unit_test_setup_teardown(another_key_is_refused, tree_setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_changed_is_refused, tree_setup, teardown),
        cmocka_unit_test(paths_stay_inside),
        cmocka_unit_test_setup_teardown(a_wrong_manifest_is_told, tree_setup, teardown),
        cmocka_unit_test_setup_teardown(a_folder_that_no_bundle_takes, tree_setup, teardown),
        cmocka_unit_test_setup_teardown(keys_are_looked_after, tree_setup, teardown),
    };
    return cmocka_run_group_tests_name("bundle", tests, NULL, NULL);
}
