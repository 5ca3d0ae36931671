#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "expect.h"
#include "transport/keys.h"

static char dir[64];

static void path_of(const char *name, char out[128]) {
    snprintf(out, 128, "%s/%s", dir, name);
}

static int set_up(void **state) {
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/rp-test-keys-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    DIR *folder = opendir(dir);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        (void)unlink(path);
    }
    (void)closedir(folder);
    return rmdir(dir);
}

static void write_file(const char *name, const char *text) {
    char path[128];
    path_of(name, path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static unsigned mode_of(const char *name) {
    char path[128];
    struct stat st;
    path_of(name, path);
    assert_int_equal(stat(path, &st), 0);
    return (unsigned)st.st_mode & 0777;
}

static void a_pair_is_made_and_read(void **state) {
    (void)state;
    rp_keypair keys;
    mode_t old = umask(0); /* whatever the umask: nobody else reads the secret */
    expect_ok(rp_keys_new(dir));
    (void)umask(old);
    assert_int_equal(mode_of("secret.key"), 0600);
    assert_int_equal(mode_of("public.key"), 0644);
    expect_ok(rp_keys_read(dir, &keys));
    assert_int_equal(strlen(keys.public_text), 40);
    assert_int_equal(strlen(keys.secret_text), 40);
    assert_string_not_equal(keys.public_text, keys.secret_text);
}

/* Files of before have Z85 text, new ones words; a word that was damaged is no key. */
static void both_forms_are_read(void **state) {
    (void)state;
    rp_keypair old;
    rp_keypair keys;
    char word[RP_KEY_WORD];
    char secret[RP_KEY_SECRET_WORD];
    char path[128];
    expect_ok(rp_keys_new(dir));
    expect_ok(rp_keys_make(&old));
    path_of("secret.key", path);
    write_file("public.key", old.public_text);
    write_file("secret.key", old.secret_text);
    expect_ok(rp_keys_read(dir, &keys));
    assert_memory_equal(&keys, &old, sizeof keys);
    rp_key_write(old.public_text, word);
    rp_key_write_secret(old.secret_text, secret);
    write_file("public.key", word);
    expect_ok(rp_keys_read(dir, &keys));
    write_file("secret.key", secret);
    expect_ok(rp_keys_read(dir, &keys));
    assert_memory_equal(&keys, &old, sizeof keys);
    secret[30] = secret[30] == 'q' ? 'p' : 'q';
    write_file("secret.key", secret);
    expect_err(rp_keys_read(dir, &keys), RP_ERR_FORMAT);
    assert_null(strstr(rp_err_message(), secret));
}

static void folders_on_the_way_are_made(void **state) {
    (void)state;
    char path[160];
    rp_keypair keys;
    (void)snprintf(path, sizeof path, "%s/a/b", dir);
    expect_err(rp_keys_read(path, &keys), RP_ERR_IO);
    assert_non_null(strstr(rp_err_message(), "ringpipe keys new --dir "));
    expect_ok(rp_keys_new(path));
    assert_int_equal(mode_of("a"), 0700);
    assert_int_equal(mode_of("a/b"), 0700);
    expect_ok(rp_keys_read(path, &keys));
    static const char *const files[] = {"a/b/public.key", "a/b/secret.key", "a/b", "a"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        path_of(files[i], path);
        assert_int_equal(remove(path), 0);
    }
}

static void nothing_is_overwritten(void **state) {
    (void)state;
    rp_keypair before;
    rp_keypair after;
    char path[128];
    expect_ok(rp_keys_new(dir));
    expect_ok(rp_keys_read(dir, &before));
    expect_err(rp_keys_new(dir), RP_ERR_USAGE);
    path_of("public.key", path);
    assert_int_equal(unlink(path), 0);
    expect_ok(rp_keys_new(dir)); /* killed between the two: the secret is kept, and completed */
    expect_ok(rp_keys_read(dir, &after));
    assert_memory_equal(&before, &after, sizeof before);
}

static void an_open_secret_is_refused(void **state) {
    (void)state;
    rp_keypair keys;
    char path[128];
    expect_ok(rp_keys_new(dir));
    path_of("secret.key", path);
    assert_int_equal(chmod(path, 0640), 0);
    expect_err(rp_keys_read(dir, &keys), RP_ERR_REFUSED);
    assert_int_equal(chmod(path, 0604), 0);
    expect_err(rp_keys_read(dir, &keys), RP_ERR_REFUSED);
    assert_int_equal(chmod(path, 0400), 0);
    expect_ok(rp_keys_read(dir, &keys));
}

static void damaged_files_are_told(void **state) {
    (void)state;
    rp_keypair keys;
    rp_keypair other;
    expect_err(rp_keys_read(dir, &keys), RP_ERR_IO);
    expect_ok(rp_keys_new(dir));
    expect_ok(rp_keys_make(&other));
    write_file("public.key", other.public_text);
    expect_err(rp_keys_read(dir, &keys), RP_ERR_FORMAT); /* not a pair */
    write_file("public.key", "tooshort\n");
    expect_err(rp_keys_read(dir, &keys), RP_ERR_FORMAT);
    write_file(
        "public.key",
        "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\n");
    expect_err(rp_keys_read(dir, &keys), RP_ERR_FORMAT); /* 40 characters that Z85 does not have */
    write_file("public.key", "");
    expect_err(rp_keys_read(dir, &keys), RP_ERR_FORMAT);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(a_pair_is_made_and_read),   WITH_FOLDER(nothing_is_overwritten),
        WITH_FOLDER(both_forms_are_read),       WITH_FOLDER(folders_on_the_way_are_made),
        WITH_FOLDER(an_open_secret_is_refused), WITH_FOLDER(damaged_files_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
