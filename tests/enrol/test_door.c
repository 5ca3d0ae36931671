#include "enrol/door.h"

#include "expect.h"

static void an_address_gets_a_port(void **state) {
    (void)state;
    static const struct {
        const char *host, *want;
    } cases[] = {
        {"10.0.0.2", "10.0.0.2:7900"},
        {"10.0.0.2:81", "10.0.0.2:81"},
        {"desk.local", "desk.local:7900"},
        {"desk.local:65533", "desk.local:65533"},
    };
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *door = NULL;
        expect_ok(rp_enrol_door(&arena, "--host", cases[i].host, "tcp://0.0.0.0:7900", &door));
        assert_string_equal(door, cases[i].want);
    }
    rp_arena_finish(&arena);
}

static void what_is_none_is_named(void **state) {
    (void)state;
    static const char *const wrong[] = {"",           ":81",     "10.0.0.2:",     "10.0.0.2:65534",
                                        "10.0.0.2:x", "fe80::1", "[fe80::1]:7900"};
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *door;
        expect_err(rp_enrol_door(&arena, "--host", wrong[i], "tcp://0.0.0.0:7900", &door),
                   RP_ERR_USAGE);
        assert_non_null(strstr(rp_err_message(), "--host: expected ADDRESS[:PORT]"));
        assert_non_null(strstr(rp_err_message(), wrong[i]));
    }
    rp_arena_finish(&arena);
}

/* The word that manuals show is no address. */
static void an_example_is_refused(void **state) {
    (void)state;
    static const char *const words[] = {"HOST", "ADDRESS", "HOST:7900"};
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *door;
        expect_err(rp_enrol_door(&arena, "--host", words[i], "tcp://0.0.0.0:7900", &door),
                   RP_ERR_USAGE);
        assert_non_null(strstr(rp_err_message(), "the manual's example"));
    }
    rp_arena_finish(&arena);
}

static void expect_dial(const char *text, const char *said) {
    expect_err(rp_enrol_check_dial("--dial", text), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), said));
}

static void an_address_to_dial_is_checked(void **state) {
    (void)state;
    expect_ok(rp_enrol_check_dial("--dial", "10.0.0.2:7100"));
    expect_ok(rp_enrol_check_dial("--dial", "desk@desk.local:7100"));
    expect_ok(rp_enrol_check_dial("--dial", "desk@tcp://10.0.0.2:7100"));
    static const char *const wrong[] = {"", "10.0.0.2", "@10.0.0.2:7100", "a@b@c:1", "x:1 --slots"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect_dial(wrong[i], "--dial: expected [NAME@]ADDRESS:PORT");
    }
    expect_dial("ADDRESS:7100", "'ADDRESS:7100' is the manual's example");
    expect_dial("desk@HOST:7100", "'HOST:7100' is the manual's example");
    expect_dial("tcp://HOST:7100", "'HOST:7100' is the manual's example");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_gets_a_port), cmocka_unit_test(what_is_none_is_named),
        cmocka_unit_test(an_example_is_refused), cmocka_unit_test(an_address_to_dial_is_checked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
