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
    expect_err(rp_keys_new(dir), RP_ERR_USAGE); /* the secret alone is kept, too */
    write_file("public.key", before.public_text);
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

static void trusted_keys_are_listed(void **state) {
    (void)state;
    rp_arena arena;
    const char *const *texts;
    uint32_t count;
    rp_keypair a;
    rp_keypair b;
    rp_keypair c;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_keys_make(&a));
    expect_ok(rp_keys_make(&b));
    expect_ok(rp_keys_make(&c));
    expect_ok(rp_keys_trusted(&arena, dir, &texts, &count));
    assert_int_equal(count, 0);
    write_file("trusted", "# who may connect\n\n");
    expect_ok(rp_keys_trust(dir, "host", a.public_text));
    expect_ok(rp_keys_trust(dir, "board-2.lab", b.public_text));
    expect_ok(rp_keys_trust(dir, "host", c.public_text)); /* replaces */
    expect_ok(rp_keys_trusted(&arena, dir, &texts, &count));
    assert_int_equal(count, 2);
    assert_string_equal(texts[0], b.public_text);
    assert_string_equal(texts[1], c.public_text);
    expect_err(rp_keys_trust(dir, "a b", a.public_text), RP_ERR_USAGE);
    expect_err(rp_keys_trust(dir, "", a.public_text), RP_ERR_USAGE);
    expect_err(rp_keys_trust(dir, "x", "no key"), RP_ERR_USAGE);
    char line[128];
    snprintf(line, sizeof line, "host %.39s\n", a.public_text);
    write_file("trusted", line);
    expect_err(rp_keys_trusted(&arena, dir, &texts, &count), RP_ERR_FORMAT);
    expect_err(rp_keys_trust(dir, "x", a.public_text), RP_ERR_FORMAT); /* and nothing is changed */
    snprintf(line, sizeof line, "host %s more\n", a.public_text);
    write_file("trusted", line);
    expect_err(rp_keys_trusted(&arena, dir, &texts, &count), RP_ERR_FORMAT);
    rp_arena_finish(&arena);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(a_pair_is_made_and_read),   WITH_FOLDER(nothing_is_overwritten),
        WITH_FOLDER(an_open_secret_is_refused), WITH_FOLDER(damaged_files_are_told),
        WITH_FOLDER(trusted_keys_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
