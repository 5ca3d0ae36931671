#include "expect.h"

#include <unistd.h>

#include "agent/roster.h"

static char path[] = "/tmp/ringpipe-test-roster-XXXXXX";
#define KEY "0123456789012345678901234567890123456789"

static rp_err read_text(const char *text, uint32_t *count, char *last, size_t last_bytes) {
    static const char *const before[] = {"first"};
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    const char *const *keys = before;
    *count = 1;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
    rp_err err = rp_roster_hosts(&arena, path, &keys, count);
    (void)snprintf(last, last_bytes, "%s", keys[*count - 1]);
    assert_string_equal(keys[0], "first");
    rp_arena_finish(&arena);
    return err;
}

static void hosts_are_added(void **state) {
    (void)state;
    uint32_t count;
    char last[64];
    expect_ok(read_text("hosts:\n  - {name: desk, key: \"" KEY "\"}\nboards: [1, 2]\n", &count,
                        last, sizeof last));
    assert_int_equal(count, 2);
    assert_string_equal(last, KEY);
}

static void bad_rosters_are_refused(void **state) {
    (void)state;
    uint32_t count;
    char last[64];
    static const char *const bad[] = {
        "boards: []\n",
        "hosts: desk\n",
        "hosts: [desk]\n",
        "hosts: [{name: desk}]\n",
        "hosts: [{name: desk, key: short}]\n",
        "hosts: [{name: desk, key: \"" KEY "\", port: 1}]\n",
        "hosts: []\nhost: x\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_err(read_text(bad[i], &count, last, sizeof last), RP_ERR_USAGE);
        assert_int_equal(count, 1);
    }
}

int main(void) {
    int file = mkstemp(path);
    if (file < 0) {
        return 1;
    }
    (void)close(file);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_are_added),
        cmocka_unit_test(bad_rosters_are_refused),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)remove(path);
    return failed;
}
