#include "expect.h"

#include <unistd.h>

#include "agent/hosts.h"

static char path[] = "/tmp/ringpipe-test-roster-XXXXXX";
#define KEY "0123456789012345678901234567890123456789"

static rp_err read_text(const char *text, uint32_t *count, char *last, size_t last_bytes) {
    static const rp_trusted before[] = {{"old", "first"}};
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    const rp_trusted *hosts = before;
    *count = 1;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
    rp_err err = rp_hosts_read(&arena, path, &hosts, count);
    (void)snprintf(last, last_bytes, "%s %s", hosts[*count - 1].name, hosts[*count - 1].key);
    assert_string_equal(hosts[0].key, "first");
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
    assert_string_equal(last, "desk " KEY);
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

/* Whom a board dials: of one host that is trusted, or by its name. */
static void a_host_is_found(void **state) {
    (void)state;
    static const rp_trusted hosts[] = {{"desk", "key of desk"}, {"attic", "key of attic"}};
    static const struct {
        const char *text;
        uint32_t count;
        const char *endpoint, *key, *why;
    } cases[] = {
        {"10.0.0.2:7100", 1, "tcp://10.0.0.2:7100", "key of desk", NULL},
        {"tcp://a.lab:7100", 1, "tcp://a.lab:7100", "key of desk", NULL},
        {"attic@10.0.0.2:7100", 2, "tcp://10.0.0.2:7100", "key of attic", NULL},
        {"attic@tcp://10.0.0.2:1", 2, "tcp://10.0.0.2:1", "key of attic", NULL},
        {"desk@10.0.0.2:65533", 1, "tcp://10.0.0.2:65533", "key of desk", NULL},
        {"10.0.0.2:7100", 2, NULL, NULL, "desk@10.0.0.2:7100"},
        {"10.0.0.2:7100", 0, NULL, NULL, "`ringpipe keys trust NAME KEY`"},
        {"cellar@10.0.0.2:7100", 2, NULL, NULL, "trusted are: desk, attic"},
        {"@10.0.0.2:7100", 2, NULL, NULL, "called ''"},
        {"10.0.0.2", 1, NULL, NULL, "ADDRESS:PORT"},
        {"10.0.0.2:0", 1, NULL, NULL, "ADDRESS:PORT"},
        {"10.0.0.2:65534", 1, NULL, NULL, "ADDRESS:PORT"},
        {"10.0.0.2:71x", 1, NULL, NULL, "ADDRESS:PORT"},
        {":7100", 1, NULL, NULL, "ADDRESS:PORT"},
        {"*:7100", 1, NULL, NULL, "ADDRESS:PORT"},
        {"a@b@c:1", 1, NULL, NULL, "ADDRESS:PORT"},
        {"[::1]:7100", 1, NULL, NULL, "a name or an IPv4 address"},
        {"fe80::1:7100", 1, NULL, NULL, "a name or an IPv4 address"},
    };
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *endpoint = NULL;
        const char *key = NULL;
        const rp_err err =
            rp_hosts_find(&arena, cases[i].text, hosts, cases[i].count, &endpoint, &key);
        if (cases[i].why) {
            expect_err(err, RP_ERR_USAGE);
            assert_non_null(strstr(rp_err_message(), cases[i].why));
            continue;
        }
        expect_ok(err);
        assert_string_equal(endpoint, cases[i].endpoint);
        assert_string_equal(key, cases[i].key);
    }
    rp_arena_finish(&arena);
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
        cmocka_unit_test(a_host_is_found),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)remove(path);
    return failed;
}
