#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "transport/keys.h"

static unsigned mode_of(const char *name) {
    struct stat st;
    const char *path = in_folder(name);
    assert_int_equal(stat(path, &st), 0);
    return (unsigned)st.st_mode & 0777;
}

static void a_pair_is_made_and_read(void **state) {
    (void)state;
    rp_keypair keys;
    mode_t old = umask(0); /* whatever the umask: nobody else reads the secret */
    expect_ok(rp_keys_new(folder));
    (void)umask(old);
    assert_int_equal(mode_of("secret.key"), 0600);
    assert_int_equal(mode_of("public.key"), 0644);
    expect_ok(rp_keys_read(folder, &keys));
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
    expect_ok(rp_keys_new(folder));
    expect_ok(rp_keys_make(&old));
    write_text("public.key", old.public_text);
    write_text("secret.key", old.secret_text);
    expect_ok(rp_keys_read(folder, &keys));
    assert_memory_equal(&keys, &old, sizeof keys);
    rp_key_write(old.public_text, word);
    rp_key_write_secret(old.secret_text, secret);
    write_text("public.key", word);
    expect_ok(rp_keys_read(folder, &keys));
    write_text("secret.key", secret);
    expect_ok(rp_keys_read(folder, &keys));
    assert_memory_equal(&keys, &old, sizeof keys);
    secret[30] = secret[30] == 'q' ? 'p' : 'q';
    write_text("secret.key", secret);
    expect_err(rp_keys_read(folder, &keys), RP_ERR_FORMAT);
    assert_null(strstr(rp_err_message(), secret));
}

static void folders_on_the_way_are_made(void **state) {
    (void)state;
    char path[160];
    rp_keypair keys;
    (void)snprintf(path, sizeof path, "%s/a/b", folder);
    expect_err(rp_keys_read(path, &keys), RP_ERR_IO);
    assert_non_null(strstr(rp_err_message(), "ringpipe keys new --dir "));
    expect_ok(rp_keys_new(path));
    assert_int_equal(mode_of("a"), 0700);
    assert_int_equal(mode_of("a/b"), 0700);
    expect_ok(rp_keys_read(path, &keys));
}

static void nothing_is_overwritten(void **state) {
    (void)state;
    rp_keypair before;
    rp_keypair after;
    expect_ok(rp_keys_new(folder));
    expect_ok(rp_keys_read(folder, &before));
    expect_err(rp_keys_new(folder), RP_ERR_USAGE);
    const char *path = in_folder("public.key");
    assert_int_equal(unlink(path), 0);
    expect_ok(rp_keys_new(folder)); /* killed between the two: the secret is kept, and completed */
    expect_ok(rp_keys_read(folder, &after));
    assert_memory_equal(&before, &after, sizeof before);
}

static void an_open_secret_is_refused(void **state) {
    (void)state;
    rp_keypair keys;
    expect_ok(rp_keys_new(folder));
    const char *path = in_folder("secret.key");
    assert_int_equal(chmod(path, 0640), 0);
    expect_err(rp_keys_read(folder, &keys), RP_ERR_REFUSED);
    assert_int_equal(chmod(path, 0604), 0);
    expect_err(rp_keys_read(folder, &keys), RP_ERR_REFUSED);
    assert_int_equal(chmod(path, 0400), 0);
    expect_ok(rp_keys_read(folder, &keys));
}

static void damaged_files_are_told(void **state) {
    (void)state;
    rp_keypair keys;
    rp_keypair other;
    expect_err(rp_keys_read(folder, &keys), RP_ERR_IO);
    expect_ok(rp_keys_new(folder));
    expect_ok(rp_keys_make(&other));
    write_text("public.key", other.public_text);
    expect_err(rp_keys_read(folder, &keys), RP_ERR_FORMAT); /* not a pair */
    write_text("public.key", "tooshort\n");
    expect_err(rp_keys_read(folder, &keys), RP_ERR_FORMAT);
    write_text(
        "public.key",
        "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\n");
    expect_err(rp_keys_read(folder, &keys),
               RP_ERR_FORMAT); /* 40 characters that Z85 does not have */
    write_text("public.key", "");
    expect_err(rp_keys_read(folder, &keys), RP_ERR_FORMAT);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(a_pair_is_made_and_read),   WITH_FOLDER(nothing_is_overwritten),
        WITH_FOLDER(both_forms_are_read),       WITH_FOLDER(folders_on_the_way_are_made),
        WITH_FOLDER(an_open_secret_is_refused), WITH_FOLDER(damaged_files_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
