#include <unistd.h>

#include "folder.h"
#include "transport/keytext.h"
#include "transport/trusted.h"

/* The file is `begin`, then `new WORD` when there is a word. */
static void expect_text(const char *name, const char *begin, const char *word) {
    char wanted[512];
    char text[512] = "";
    const char *path = in_folder(name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    (void)!fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    (void)snprintf(wanted, sizeof wanted, word[0] ? "%snew %s\n" : "%s%s", begin, word);
    assert_string_equal(text, wanted);
}

static void trusted_keys_are_listed(void **state) {
    (void)state;
    const rp_trusted *list;
    const char *const *texts;
    uint32_t count;
    rp_keypair a;
    rp_keypair b;
    rp_keypair c;
    expect_ok(rp_keys_make(&a));
    expect_ok(rp_keys_make(&b));
    expect_ok(rp_keys_make(&c));
    expect_ok(rp_trusted_read(&arena, folder, &list, &count));
    assert_int_equal(count, 0);
    write_text("trusted", "# who may connect\n\n");
    expect_ok(rp_trusted_add(folder, "host", a.public_text));
    expect_ok(rp_trusted_add(folder, "board-2.lab", b.public_text));
    expect_ok(rp_trusted_add(folder, "host", c.public_text)); /* replaces */
    expect_ok(rp_trusted_read(&arena, folder, &list, &count));
    assert_int_equal(count, 2);
    expect_ok(rp_trusted_keys(&arena, list, count, &texts));
    assert_string_equal(texts[0], b.public_text);
    assert_string_equal(texts[1], c.public_text);
    expect_err(rp_trusted_add(folder, "a b", a.public_text), RP_ERR_USAGE);
    expect_err(rp_trusted_add(folder, "", a.public_text), RP_ERR_USAGE);
    expect_err(rp_trusted_add(folder, "x", "no key"), RP_ERR_USAGE);
    char line[128];
    snprintf(line, sizeof line, "host %.39s\n", a.public_text);
    write_text("trusted", line);
    expect_err(rp_trusted_read(&arena, folder, &list, &count), RP_ERR_FORMAT);
    expect_err(rp_trusted_add(folder, "x", a.public_text),
               RP_ERR_FORMAT); /* and nothing is changed */
    snprintf(line, sizeof line, "host %s more\n", a.public_text);
    write_text("trusted", line);
    expect_err(rp_trusted_read(&arena, folder, &list, &count), RP_ERR_FORMAT);
}

/* Lines of before have Z85 text; what is added is a word; a secret key gets nowhere. */
static void both_forms_are_listed(void **state) {
    (void)state;
    const rp_trusted *list;
    uint32_t count;
    rp_keypair a;
    rp_keypair b;
    char line[128];
    char word[RP_KEY_WORD];
    char secret[RP_KEY_SECRET_WORD];
    expect_ok(rp_keys_make(&a));
    expect_ok(rp_keys_make(&b));
    (void)snprintf(line, sizeof line, "old %s\n# a line that stays\n", a.public_text);
    write_text("trusted", line);
    rp_key_write(b.public_text, word);
    rp_key_write_secret(b.secret_text, secret);
    expect_ok(rp_trusted_add(folder, "new", word));
    expect_err(rp_trusted_add(folder, "other", secret), RP_ERR_USAGE);
    assert_null(strstr(rp_err_message(), secret));
    expect_ok(rp_trusted_read(&arena, folder, &list, &count));
    assert_int_equal(count, 2);
    assert_string_equal(list[0].name, "old");
    assert_string_equal(list[0].key, a.public_text);
    assert_string_equal(list[1].name, "new");
    assert_string_equal(list[1].key, b.public_text);
    expect_text("trusted", line, word);
}

static void a_name_is_taken_off(void **state) {
    (void)state;
    const rp_trusted *list;
    uint32_t count;
    rp_keypair keys;
    expect_ok(rp_keys_make(&keys));
    expect_err(rp_trusted_remove(folder, "one"), RP_ERR_USAGE); /* no list */
    write_text("trusted", "# mine\n");
    expect_ok(rp_trusted_add(folder, "one", keys.public_text));
    expect_ok(rp_trusted_add(folder, "two", keys.public_text));
    expect_err(rp_trusted_remove(folder, "three"), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "one two"));
    expect_ok(rp_trusted_remove(folder, "one"));
    expect_ok(rp_trusted_read(&arena, folder, &list, &count));
    assert_int_equal(count, 1);
    assert_string_equal(list[0].name, "two");
    expect_ok(rp_trusted_remove(folder, "two"));
    expect_text("trusted", "# mine\n", "");
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(trusted_keys_are_listed),
        WITH_FOLDER(both_forms_are_listed),
        WITH_FOLDER(a_name_is_taken_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
